"""Commands about what trigmon has not, and acts of the queue manager: each has the reason that MQ has for it."""

from pathlib import Path

import pytest

from tests.command_server.commands import command, integer, text
from trigmon.mq.calls import Define, Display, Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.pcf.absent_objects import LISTS, REASONS

NAME = "SYSTEM.DEFAULT.LOCAL.QUEUE"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (command(25, text(3501, "*")), 4032),
        (command(42, text(3501, "*"), integer(1523, 1011)), 3065),
        (command(98, text(3554, "*")), 3250),
        (command(154, text(2077, "*")), 3252),
        (command(70, text(2031, "QM1")), 2085),
        (command(183, text(2094, "#")), 3308),
        (command(176, text(3152, "S_*"), integer(175, 1)), 2428),
        (command(182, text(3152, "*")), 2428),
        (command(204, text(3501, "*")), 3338),
    ],
)
def test_an_inquiry_of_what_a_queue_manager_of_this_kind_has_not_finds_none(program, asked, reason):
    refused = program.one(asked)
    assert (refused.comp_code, refused.reason, refused.control, refused.values) == (2, reason, 1, {})


def test_a_list_of_names_of_what_is_not_here_is_empty(program):
    assert program.one(command(20, text(3501, "*"))).values == {3512: []}
    assert program.one(command(175, text(2092, "*"))).values == {3151: []}


def test_the_reference_says_what_each_inquiry_of_what_is_not_here_answers():
    page = (Path(__file__).parents[2] / "docs/reference/command-server.md").read_text()
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `MQCMD_")}
    for asks, reason in REASONS.items():
        assert str(int(reason)) in rows[f"MQCMD_{asks.name}"].split("|")[3]
    for asks in LISTS:
        assert "empty list" in rows[f"MQCMD_{asks.name}"]


def test_a_command_that_would_make_a_channel_is_none(program):
    assert program.one(command(24, text(3501, "C"), integer(1511, 7))).reason == 3007


def test_expired_messages_are_discarded_by_a_refresh(stage, program):
    program.ask(Define(object_type="QLOCAL", name="OLD"))
    program.ask(Put(q_name="OLD", data=b"m", descriptor=MessageDescriptor(expiry=1)))
    stage._clock.advance(1000)
    done = program.one(command(16, integer(1078, 2), text(3046, "OLD")))
    assert (done.comp_code, done.values) == (0, {})
    program.one(command(40))
    assert program.ask(Display(object_type="queue", name="OLD")).rows[0]["current_q_depth"] == 0


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (command(16), 3019),
        (command(16, integer(1078, 1)), 2298),
        (command(16, integer(1078, 4)), 2298),
        (command(16, integer(1078, 77)), 3229),
        (command(92), 3019),
        (command(92, integer(1086, 2)), 3175),
        (command(92, integer(1086, 3)), 2298),
        (command(92, integer(1086, 77)), 3091),
    ],
)
def test_an_act_that_is_not_here_has_mqs_reason(program, asked, reason):
    assert program.one(asked).reason == reason


def test_security_is_as_it_was_read_since_rights_count_at_once(program):
    assert program.one(command(78, integer(1106, 1))).comp_code == 0
