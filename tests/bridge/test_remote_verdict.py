"""The verdict on a queue elsewhere, from facts that a source shows: each condition, and what could not be seen."""

from __future__ import annotations

import pytest

from trigmon.bridge.remote_verdict import RESTS_ON, explain_seen, rehearse_seen
from trigmon.bridge.seen_queue import ZOS, Fact, NotSeen, ObjectValues, Source, seen_queue
from trigmon.mq.errors import PriorityError

NOW = 1_000_000
QUEUE = {
    "TRIGGER": 1,
    "TRIGTYPE": "FIRST",
    "TRIGMPRI": 0,
    "TRIGDPTH": 1,
    "PROCESS": "P",
    "INITQ": "IQ",
    "GET": "ENABLED",
    "PUT": "ENABLED",
    "USAGE": "NORMAL",
    "DEFPRTY": 0,
    "MSGDLVSQ": "PRIORITY",
    "CURDEPTH": 0,
    "IPPROCS": 0,
    "OPPROCS": 0,
    "uncommitted_msgs": 0,
}
INITIATION = {"GET": "ENABLED", "PUT": "ENABLED", "USAGE": "NORMAL", "IPPROCS": 1}


def source(queue=(), **more):
    known = {
        "processes": {"P": ObjectValues("P", {"APPLICID": "/bin/true"})},
        "initiations": {"IQ": ObjectValues("IQ", dict(INITIATION))},
        "trigger_interval_ms": 60_000,
    }
    return Source("Q", "QM2", ObjectValues("Q", QUEUE | dict(queue)), **(known | more))


def verdict(queue=(), priority=-1, **more):
    return explain_seen(seen_queue(source(queue, **more)), priority, NOW)


def by_number(explained):
    return {each.number: each for each in explained.conditions}


def test_the_fourteen_conditions_are_shown_in_their_order():
    assert [each.number for each in verdict().conditions] == [str(number) for number in range(1, 15)]
    assert set(RESTS_ON) >= {str(number) for number in range(1, 15)}


def test_a_put_fires_where_all_was_seen_and_holds():
    explained = verdict()
    assert explained.fires
    assert explained.headline == "A put on Q@QM2 with priority 0 would write a trigger message (by condition 1)."
    assert not explained.values["unseen"]


@pytest.mark.parametrize(
    ("number", "queue", "more"),
    [
        ("2", {"TRIGMPRI": 4}, {}),
        ("3", {"TRIGTYPE": "DEPTH", "TRIGDPTH": 5}, {}),
        ("4", {"IPPROCS": 1}, {}),
        ("5", {"GET": "DISABLED", "USAGE": "XMITQ"}, {}),
        ("6", {}, {"processes": {"P": None}}),
        ("6", {"PROCESS": ""}, {"processes": {}}),
        ("7", {}, {"initiations": {"IQ": ObjectValues("IQ", INITIATION | {"PUT": "DISABLED"})}}),
        ("8", {}, {"initiations": {"IQ": ObjectValues("IQ", INITIATION | {"IPPROCS": 0})}}),
        ("9", {"TRIGGER": 0}, {}),
        ("10", {"TRIGTYPE": "NONE"}, {}),
        ("14", {"MSGDLVSQ": "FIFO", "TRIGMPRI": 1}, {}),
    ],
)
def test_one_that_does_not_hold_is_seen(number, queue, more):
    explained = verdict(queue, priority=0, **more)
    assert not explained.fires
    assert by_number(explained)[number].holds == "NO"
    assert number in explained.fails
    assert not explained.values["not_seen"]


@pytest.mark.parametrize(
    ("fact", "numbers"),
    [
        (Fact.DEPTH, ["3"]),
        (Fact.READERS, ["4"]),
        (Fact.ATTRIBUTES, ["2", "3", "4", "5", "6", "7", "8", "9", "10", "14"]),
    ],
)
def test_what_rests_on_an_unseen_fact_is_marked_and_the_verdict_is_open(fact, numbers):
    explained = verdict(unseen={fact: "2035 MQRC_NOT_AUTHORIZED"})
    marked = {number for number, each in by_number(explained).items() if each.holds == "not seen"}
    assert not explained.fires
    assert explained.values["not_seen"] == numbers
    assert set(numbers) <= marked
    assert "could not be seen" in explained.headline
    assert all("2035" in by_number(explained)[number].seen for number in numbers)


def test_an_object_that_may_not_be_inquired_is_not_taken_for_one_that_is_not_there():
    explained = verdict(processes={"P": NotSeen("2035")}, initiations={"IQ": NotSeen("2035")})
    assert explained.values["not_seen"] == ["6", "7", "8"]
    assert "remedy: let the bridge's user inquire the process" in str(explained)


def test_what_is_seen_not_to_hold_decides_whatever_else_is_unseen():
    explained = verdict({"TRIGGER": 0}, unseen={Fact.READERS: "2035"})
    assert explained.fails == ["9"]
    assert "NOT write a trigger message" in explained.headline


def test_priorities_of_waiting_messages_are_not_seen():
    explained = verdict({"CURDEPTH": 3, "TRIGMPRI": 4, "TRIGTYPE": "DEPTH", "TRIGDPTH": 4}, priority=5)
    assert by_number(explained)["3"].holds == "not seen"
    every = by_number(verdict({"CURDEPTH": 3, "TRIGMPRI": 4, "TRIGTYPE": "EVERY"}, priority=5))
    assert (every["3"].holds, every["3"].seen) == ("does not apply", "")
    assert "TRIGMPRI is 4" in by_number(explained)["3"].seen
    fifo = verdict({"CURDEPTH": 3, "TRIGMPRI": 4, "TRIGTYPE": "DEPTH", "TRIGDPTH": 4, "MSGDLVSQ": "FIFO", "DEFPRTY": 4})
    assert fifo.fires


def test_the_last_trigger_message_of_a_first_queue_is_not_seen_unless_no_interval_asks_for_it():
    explained = verdict({"CURDEPTH": 3})
    assert by_number(explained)["11"].holds == "not seen"
    assert explained.values["not_seen"] == ["11"]
    at_once = verdict({"CURDEPTH": 3}, trigger_interval_ms=0)
    assert (at_once.fires, at_once.occasion) == (True, "11")


def test_a_trigger_message_that_was_recorded_here_shows_that_the_interval_goes_on():
    seen = seen_queue(source({"CURDEPTH": 3}))
    recent = explain_seen(seen.triggered_at(NOW - 1000), -1, NOW)
    assert (by_number(recent)["11"].holds, recent.fails) == ("NO", ["3"])
    assert "1000 ms since the last trigger message" in by_number(recent)["11"].seen
    assert by_number(explain_seen(seen.triggered_at(NOW - 60_000), -1, NOW))["11"].holds == "not seen"


def test_gets_of_a_normal_queue_are_asked_on_zos_alone():
    elsewhere = verdict({"GET": "DISABLED"})
    assert elsewhere.fires
    assert by_number(elsewhere)["5"].holds == "does not apply"
    assert verdict({"GET": "DISABLED"}, platform=ZOS).fails == ["5"]


def test_another_member_of_the_group_may_read_a_shared_queue():
    assert by_number(verdict({"QSGDISP": "SHARED"}))["4"].holds == "not seen"
    assert by_number(verdict({"QSGDISP": "SHARED", "IPPROCS": 1}))["4"].holds == "NO"


def test_twelve_and_thirteen_show_what_a_close_and_a_change_would_bring():
    waiting = by_number(verdict({"CURDEPTH": 3, "IPPROCS": 1}))
    assert waiting["12"].holds == "yes"
    assert "a trigger message would be written" in waiting["12"].seen
    assert (waiting["13"].holds, "4 would not hold" in waiting["13"].seen) == ("not yet", True)
    assert by_number(verdict())["12"].holds == "NO"
    assert by_number(verdict({"TRIGTYPE": "EVERY"}))["12"].holds == "does not apply"


def test_a_change_is_rehearsed_with_what_it_would_write_itself():
    seen = seen_queue(source({"CURDEPTH": 3, "IPPROCS": 1}))
    explained = rehearse_seen(seen, {"trigger_type": "every"}, -1, NOW)
    assert (explained.fires, explained.values["saving"]["fires"], explained.values["saving"]["occasion"]) == (
        True,
        True,
        "13",
    )
    other = rehearse_seen(seen, {"process_name": "OTHER"}, -1, NOW)
    assert by_number(other)["6"].holds == "not seen"
    assert "was not looked for" in by_number(other)["6"].seen
    unseen = seen_queue(source(unseen={Fact.DEPTH: "2035"}))
    assert rehearse_seen(unseen, {"trigger_type": "every"}, -1, NOW).values["saving"]["fires"] is None


def test_a_value_that_cannot_be_read_counts_as_not_seen():
    explained = verdict({"TRIGTYPE": "SOMETIMES"})
    assert "TRIGTYPE(SOMETIMES)" in explained.values["unseen"]["attributes"]


def test_a_priority_that_there_is_not_is_refused():
    with pytest.raises(PriorityError):
        verdict(priority=-2)
