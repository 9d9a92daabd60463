"""A namelist is an object like others: commands, MQOPEN and MQINQ, rights, files, a group's copies."""

from __future__ import annotations

import pytest

from tests.in_process import InProcess
from trigmon.definitions.apply_plan import plan
from trigmon.definitions.definition_files import DefinitionError, read_text
from trigmon.definitions.to_yaml import yaml_text
from trigmon.mq.attributes import KINDS
from trigmon.mq.calls import Alter, Define, Delete, Inquire, Open
from trigmon.mq.enums import ObjectType, OpenOption
from trigmon.mq.errors import (
    AttrValueError,
    AttrValueFixed,
    MQError,
    ObjectInUse,
    OptionNotValidForType,
    UnknownObjectName,
)
from trigmon.mqsc.mqsc_dump import script
from trigmon.mqsc.script import run

THREE = ["ORDERS", "Pay.ments", "RETURNS"]


@pytest.fixture
def qm() -> InProcess:
    made = InProcess()
    made(Define(object_type="NAMELIST", name="NIGHTLY", attributes={"names": THREE, "description": "at night"}))
    return made


def mqsc(qm: InProcess, *commands: str) -> str:
    lines: list[str] = []
    assert run(commands, qm, lines.append, "QM1") == 0, lines
    return "\n".join(lines)


def names(qm: InProcess) -> list[str]:
    return [row["name"] for row in qm.rows("NAMELIST") if not row["name"].startswith("SYSTEM.")]


def test_a_list_is_opened_for_inquire_and_says_its_names_and_how_many(qm: InProcess):
    handle = qm(Open(object_type="NAMELIST", object_name="NIGHTLY", options=int(OpenOption.INQUIRE))).handle
    values = qm(Inquire(handle=handle, names=[2020, 19, 2009, 2010])).values
    assert values == {"names": THREE, "name_count": 3, "description": "at night", "name": "NIGHTLY"}
    assert qm(Inquire(handle=handle, names=[])).values["names"] == THREE
    with pytest.raises(ObjectInUse):
        qm(Delete(object_type="NAMELIST", name="NIGHTLY"))


def test_a_list_cannot_be_opened_for_messages_and_a_missing_one_not_at_all(qm: InProcess):
    with pytest.raises(OptionNotValidForType):
        qm(Open(object_type="NAMELIST", object_name="NIGHTLY", options=int(OpenOption.OUTPUT)))
    with pytest.raises(UnknownObjectName):
        qm(Open(object_type="NAMELIST", object_name="NONE", options=int(OpenOption.INQUIRE)))


@pytest.mark.parametrize("given", [["A"] * 257, ["two words"], ["A" * 49], [7], 7, {"A": 1}])
def test_what_is_no_list_of_names_is_refused(qm: InProcess, given: object):
    with pytest.raises(AttrValueError, match="at most 256 names"):
        qm(Alter(object_type="NAMELIST", name="NIGHTLY", attributes={"names": given}))


def test_the_number_of_names_follows_from_the_names(qm: InProcess):
    with pytest.raises(AttrValueFixed):
        qm(Alter(object_type="NAMELIST", name="NIGHTLY", attributes={"name_count": 1}))
    qm(Alter(object_type="NAMELIST", name="NIGHTLY", attributes={"names": "A, B C,,D"}))
    assert [row["name_count"] for row in qm.rows("NAMELIST") if row["name"] == "NIGHTLY"] == [4]


def test_the_commands_of_mq_are_answered_by_its_numbers(qm: InProcess):
    text = mqsc(
        qm,
        "DEFINE NAMELIST(INITQS) NAMES(SYSTEM.DEFAULT.INITIATION.QUEUE, 'other.initq') DESCR('where monitors read')",
        "DEF NL(LIKEIT) LIKE(INITQS) NAMES(ONE)",
        "ALTER NAMELIST(LIKEIT) NAMES(ONE TWO)",
        "DISPLAY NAMELIST(LIKEIT) NAMCOUNT NAMES",
        "DELETE NL(LIKEIT)",
    )
    for answer in ("AMQ8552I", "AMQ8551I", "AMQ8550I", "AMQ8553I", "NAMCOUNT(2)", "NAMES(ONE,TWO)"):
        assert answer in text
    assert names(qm) == ["INITQS", "NIGHTLY"]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("NAMES CT ORDERS", ["NIGHTLY"]),
        ("NAMES EX ORDERS", ["EMPTY", "OTHER"]),
        ("NAMES CTG RET*", ["NIGHTLY", "OTHER"]),
        ("NAMES EXG RET*", ["EMPTY"]),
        ("NAMCOUNT GE 2", ["NIGHTLY", "OTHER"]),
        ("DESCR LK 'at*'", ["NIGHTLY"]),
    ],
)
def test_a_question_chooses_lists_by_what_they_contain(qm: InProcess, where: str, found: list[str]):
    mqsc(qm, "DEFINE NL(OTHER) NAMES(RETRY,B)", "DEFINE NL(EMPTY)", "DELETE NL(SYSTEM.DEFAULT.NAMELIST)")
    text = mqsc(qm, f"DISPLAY NAMELIST(*) WHERE({where})")
    assert [line.split("(")[1].split(")")[0] for line in text.splitlines() if "   NAMELIST(" in line] == found


def test_lists_leave_as_mqsc_and_as_yaml_and_load_back_equal(qm: InProcess):
    mqsc(qm, "DEFINE NL(EMPTY)")
    there, again = InProcess("QM2"), InProcess("QM3")
    mqsc(there, *script(qm.rows("NAMELIST")))
    assert there.rows("NAMELIST") == qm.rows("NAMELIST")
    for step in plan(read_text(yaml_text(qm.rows("NAMELIST"))), again.rows()):
        again(step.call)
    assert again.rows("NAMELIST") == qm.rows("NAMELIST")


def test_a_file_defines_alters_and_with_prune_deletes_lists(qm: InProcess):
    file = "- namelist: NIGHTLY\n  names: [ORDERS, '012', 7]\n- namelist: NEW\n  names: A,B\n"
    steps = plan(read_text(file), qm.rows(), prune=True)
    assert [(step.action, step.name) for step in steps] == [("alter", "NIGHTLY"), ("define", "NEW")]
    for step in steps:
        qm(step.call)
    rows = {row["name"]: row["names"] for row in qm.rows("NAMELIST")}
    assert (rows["NIGHTLY"], rows["NEW"]) == (["ORDERS", "012", "7"], ["A", "B"])
    assert plan(read_text(file), qm.rows()) == []
    (step,) = plan(read_text(file.partition("- namelist: NEW")[0]), qm.rows(), prune=True)
    assert (step.action, step.object_type, step.name) == ("delete", "NAMELIST", "NEW")
    with pytest.raises(DefinitionError, match=r"names must be at most 256 names of objects, not"):
        read_text("- namelist: BAD\n  names: [two words]\n")


def test_a_member_takes_its_copy_of_the_groups_list():
    qm = InProcess(in_group=True)
    qm(Define(object_type="NAMELIST", name="OURS", attributes={"names": THREE, "qsg_disp": "group"}))
    (copy,) = [row for row in qm.rows("NAMELIST") if row["name"] == "OURS"]
    assert (copy["qsg_disp"], copy["names"]) == ("copy", THREE)


def test_a_list_and_a_queue_may_have_one_name(qm: InProcess):
    qm(Define(object_type="QLOCAL", name="NIGHTLY"))
    assert names(qm) == ["NIGHTLY"]
    assert ObjectType.NAMELIST in KINDS
    with pytest.raises(MQError):
        qm(Define(object_type="NAMELIST", name="NIGHTLY"))
