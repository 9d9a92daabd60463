"""What is there from the first start: the SYSTEM objects that scripts name, and what a program asks first."""

from __future__ import annotations

import re

import pytest

from tests.in_process import InProcess
from tests.worlds import World
from trigmon.mq.attributes import ATTRIBUTES
from trigmon.mq.calls import Alter, Define, Display, Inquire, Open
from trigmon.mq.enums import ObjectType, OpenOption
from trigmon.mq.errors import AttrValueFixed
from trigmon.mqsc.script import run

NAMED_BY_SCRIPTS = [
    "SYSTEM.ADMIN.COMMAND.QUEUE",
    "SYSTEM.BROKER.DEFAULT.STREAM",
    "SYSTEM.BROKER.CONTROL.QUEUE",
    "SYSTEM.CICS.INITIATION.QUEUE",
    "SYSTEM.ADMIN.STATISTICS.QUEUE",
]
MODELS_FOR_REPLIES = ["SYSTEM.MQSC.REPLY.QUEUE", "SYSTEM.MQEXPLORER.REPLY.MODEL", "SYSTEM.JMS.TEMPQ.MODEL"]


def said_by(qm: InProcess, *commands: str) -> tuple[int, str]:
    lines: list[str] = []
    code = run(commands, qm, lines.append, "QM1")
    return code, "\n".join(lines)


@pytest.mark.parametrize("name", NAMED_BY_SCRIPTS)
def test_a_queue_can_be_defined_like_a_default_object_that_scripts_name(name: str):
    qm = InProcess()
    qm(Define(object_type="QLOCAL", name="MINE", attributes={}, like=name))
    assert [row["name"] for row in qm.rows("QLOCAL") if row["name"] == "MINE"]


@pytest.mark.parametrize("name", MODELS_FOR_REPLIES)
def test_opening_a_model_for_replies_makes_a_temporary_queue(name: str):
    qm = InProcess()
    opened = qm(Open(object_name=name, options=int(OpenOption.INPUT_SHARED), dynamic_q_name="REPLY.*"))
    (made,) = [row for row in qm.rows("QLOCAL") if row["name"] == opened.q_name]
    assert made["definition_type"] == "temporary_dynamic"


def test_the_queue_manager_says_what_tools_ask_first():
    qm = InProcess()
    code, text = said_by(qm, "DISPLAY QMGR QMNAME VERSION CMDLEVEL PLATFORM QMID CCSID COMMANDQ")
    assert code == 0
    for shown in ("QMNAME(", "CMDLEVEL(940)", "VERSION(09040000)", "PLATFORM(UNIX)", "CCSID(1208)"):
        assert shown in text
    assert "COMMANDQ(SYSTEM.ADMIN.COMMAND.QUEUE)" in text
    assert "Skipped" not in text


def test_mqinq_answers_the_same_by_mqs_selectors():
    qm = InProcess()
    (row,) = qm.rows("QMGR")
    handle = qm(Open(object_type="QMGR", object_name="", options=int(OpenOption.INQUIRE))).handle
    values = qm(Inquire(handle=handle, names=[31, 32, 2, 2003, 2015, 2032, 2120])).values
    assert values == {
        "command_level": 940,
        "platform": "unix",
        "coded_char_set_id": 1208,
        "command_input_q_name": "SYSTEM.ADMIN.COMMAND.QUEUE",
        "name": row["name"],
        "q_mgr_identifier": row["q_mgr_identifier"],
        "version": "09040000",
    }


def test_no_command_changes_what_the_queue_manager_is():
    qm = InProcess()
    for word in ("CMDLEVEL", "VERSION", "PLATFORM", "QMID", "COMMANDQ"):
        assert any(a.mqsc == word and a.read_only for a in ATTRIBUTES[ObjectType.QMGR].values())
        code, text = said_by(qm, f"ALTER QMGR {word}(1)")
        assert code == 10, text
    with pytest.raises(AttrValueFixed):
        qm(Alter(object_type="QMGR", name="", attributes={"command_level": 800}))


def test_the_identifier_of_a_queue_manager_outlasts_its_restart(world: World):
    (before,) = world.did(Display(object_type="QMGR")).rows
    assert re.fullmatch(r"\w+_\d{4}-\d\d-\d\d_\d\d\.\d\d\.\d\d", before["q_mgr_identifier"])
    assert "1970" not in before["q_mgr_identifier"]
    world.did(Alter(object_type="QMGR", name="", attributes={"description": "altered"}))
    world.clock.advance(86_400_000)
    world.crash()
    (after,) = world.did(Display(object_type="QMGR")).rows
    assert after["description"] == "altered"
    assert after["q_mgr_identifier"] == before["q_mgr_identifier"]


def test_a_script_that_sets_the_character_set_goes_on_and_says_that_it_is_left_out():
    code, text = said_by(InProcess(), "ALTER QMGR CCSID(819) DESCR('moved')", "DISPLAY QMGR CCSID DESCR")
    assert code == 0
    assert "CCSID(819): the queue manager's own text is UTF-8" in text
    assert "CCSID(1208)" in text
    assert "DESCR(moved)" in text
