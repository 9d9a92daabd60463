"""A remedy is a command that can be pasted as it stands, and that helps."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from tests.build import a_queue, a_situation, an_initiation_queue
from trigmon.mq.enums import Inhibit, MsgDeliverySequence, TriggerControl, TriggerType
from trigmon.mqsc.commands import read_script
from trigmon.rules.triggers.table import judge
from trigmon.rules.triggers.wording import explanations

STUCK = a_situation(queue=a_queue(waiting=1, trigger_stamp_ms=49_999))
FAILING = {
    "2": a_situation(queue=a_queue(trigger_msg_priority=5), put_priority=3),
    "3": a_situation(queue=a_queue(waiting=1, trigger_type=TriggerType.DEPTH, trigger_depth=9)),
    "4": a_situation(queue=a_queue(open_input_count=1)),
    "5": a_situation(queue=a_queue(inhibit_get=Inhibit.INHIBITED)),
    "6": a_situation(process=None),
    "7": a_situation(initiation=an_initiation_queue(inhibit_put=Inhibit.INHIBITED)),
    "9": a_situation(queue=a_queue(trigger_control=TriggerControl.OFF)),
    "10": a_situation(queue=a_queue(trigger_type=TriggerType.NONE)),
    "11": STUCK,
    "14": a_situation(
        queue=a_queue(msg_delivery_sequence=MsgDeliverySequence.FIFO, trigger_msg_priority=4, def_priority=2)
    ),
}


def remedy(situation, number):
    return next(e.remedy for e in explanations(situation, judge(situation)) if e.number == number)


@pytest.mark.parametrize("number", FAILING)
def test_an_mqsc_remedy_is_mqsc(number):
    said = remedy(FAILING[number], number)
    commands = re.findall(r"(?:ALTER|DEFINE|DISPLAY) [A-Z]+(?:\([^)]*\))?(?: [A-Z]+(?:\([^)]*\))?)*", said)
    assert commands, said
    for command in commands:
        (read,) = read_script(command)
        assert read.error is None, command


@pytest.mark.parametrize("number", ["3", "11"])
def test_a_queue_stuck_behind_trigint_is_served_by_starting_its_process(number):
    said = remedy(STUCK, number)
    process, queue = STUCK.process.name, STUCK.queue.definition.name
    assert said.startswith(f"trigmon process start {process} --queue {queue}, ")


def test_a_shorter_interval_is_named_and_is_shorter():
    for interval, shorter in [(999_999_999, 60_000), (60_000, 30_000), (1, 0)]:
        situation = replace(STUCK, trigger_interval_ms=interval, now=50_000 if interval > 1 else 49_999)
        assert f"ALTER QMGR TRIGINT({shorter})" in remedy(situation, "11")


def test_no_start_is_offered_where_there_is_nothing_to_start():
    assert "process start" not in remedy(replace(STUCK, process=None), "3")


def test_what_the_remedy_of_a_low_priority_says_makes_it_fire():
    situation = FAILING["2"]
    said = int(re.search(r"TRIGMPRI\((\d)\)", remedy(situation, "2"))[1])
    helped = replace(situation, queue=a_queue(trigger_msg_priority=said))
    assert judge(helped).fires


def test_what_the_remedy_of_a_depth_not_reached_says_makes_it_fire():
    situation = FAILING["3"]
    said = int(re.search(r"TRIGDPTH\((\d+)\)", remedy(situation, "3"))[1])
    helped = replace(situation, queue=a_queue(waiting=1, trigger_type=TriggerType.DEPTH, trigger_depth=said))
    assert judge(helped).fires
