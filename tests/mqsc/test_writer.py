from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given

from tests.any_objects import changed_defaults, commands
from tests.in_process import InProcess
from trigmon.mq.attributes import ATTRIBUTES
from trigmon.mq.calls import Alter, Call, Define
from trigmon.mq.errors import MQError
from trigmon.mqsc.mqsc_dump import script
from trigmon.mqsc.script import run


@given(commands)
def test_what_is_exported_loads_back_equal(given_commands: list[Call]):
    here, there = InProcess(), InProcess()
    for command in given_commands:
        with suppress(MQError):  # a name that exists already, as another type perhaps
            here(command)
    said: list[str] = []
    assert run(script(here.rows()), there, said.append, "QM1") == 0, said
    assert there.rows() == here.rows()


@given(changed_defaults)
def test_what_is_exported_with_the_system_objects_loads_back_equal_to_the_last_of_them(given_commands: list[Call]):
    here, there = InProcess(), InProcess()
    for command in given_commands:
        with suppress(MQError):
            here(command)
    assert run(script(here.rows(), system=True), there, lambda line: None, "QM1") == 0
    assert there.rows() == here.rows()


@given(commands, changed_defaults)
def test_a_script_means_the_same_where_the_default_objects_say_otherwise(objects: list[Call], others: list[Call]):
    here, there = InProcess(), InProcess()
    for qm, given_commands in ((here, objects), (there, others)):
        for command in given_commands:
            with suppress(MQError):
                qm(command)
    names = {row["name"] for row in here.rows("PROCESS", "queue") if not row["name"].startswith("SYSTEM.")}
    run(script(here.rows()), there, lambda line: None, "QM1")
    mine, loaded = ([_mqs(row) for row in qm.rows() if row["name"] in names] for qm in (here, there))
    assert all(row in loaded for row in mine if (row["name"], row["object_type"]) not in _taken(there, here))


def test_what_a_default_object_says_of_spark_contradicts_no_process_of_a_script():
    here, there = InProcess(), InProcess()
    here(Define(object_type="PROCESS", name="P", attributes={"appl_type": "spark", "appl_id": "load.py"}))
    here(Define(object_type="PROCESS", name="W", attributes={"spark_start": "connect"}))
    default = {"spark_class": "org.example.Load", "spark_deploy_mode": "cluster", "spark_master": "spark://m:7077"}
    there(Alter(object_type="PROCESS", name="SYSTEM.DEFAULT.PROCESS", attributes=default))
    said: list[str] = []
    assert run(script(here.rows()), there, said.append, "QM1") == 0, said
    mine, loaded = ({r["name"]: r for r in qm.rows("PROCESS") if r["name"] in "PW"} for qm in (here, there))
    spark = [name for name in mine["P"] if name.startswith("spark_")]
    assert [loaded[p][name] for p in "PW" for name in spark] == [mine[p][name] for p in "PW" for name in spark]


def _mqs(row: dict[str, Any]) -> dict[str, Any]:
    """A row without the attributes of ours, which a script leaves out where they stand at their default."""
    ours = {a.name for table in ATTRIBUTES.values() for a in table.values() if a.ours}
    return {name: value for name, value in row.items() if name not in ours}


def _taken(there: InProcess, here: InProcess) -> set[tuple[str, str]]:
    """Objects of ``here`` whose names another kind of queue has ``there``."""
    kinds = {row["name"]: row["object_type"] for row in there.rows("queue")}
    return {
        (row["name"], row["object_type"])
        for row in here.rows("queue")
        if kinds.get(row["name"], row["object_type"]) != row["object_type"]
    }


def test_a_script_has_one_attribute_a_line_and_mqs_quotes():
    qm = InProcess()
    run(["DEF PRO(P) DESCR('it''s') INSTANCES(2)"], qm, lambda line: None, "QM1")
    assert list(script(qm.rows("PROCESS"))) == [
        "DEFINE PROCESS('P') +",
        "   APPLICID(' ') +",
        "   APPLTYPE(UNIX) +",
        "   DESCR('it''s') +",
        "   ENVRDATA(' ') +",
        "   INSTANCES(2) +",
        "   USERDATA(' ') +",
        "   REPLACE",
    ]


def test_system_objects_are_written_when_asked_for():
    rows = InProcess().rows("queue")
    assert list(script(rows)) == []
    assert "DEFINE QLOCAL('SYSTEM.DEAD.LETTER.QUEUE') +" in list(script(rows, system=True))
