from __future__ import annotations

from contextlib import suppress

from hypothesis import given

from tests.any_objects import commands
from tests.in_process import InProcess
from trigmon.mq.calls import Call
from trigmon.mq.errors import MQError
from trigmon.mqsc.script import run
from trigmon.mqsc.writer import script


@given(commands)
def test_what_is_exported_loads_back_equal(given_commands: list[Call]):
    here, there = InProcess(), InProcess()
    for command in given_commands:
        with suppress(MQError):  # a name that exists already, as another type perhaps
            here(command)
    said: list[str] = []
    assert run(script(here.rows()), there, said.append, "QM1") == 0, said
    assert there.rows() == here.rows()


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
