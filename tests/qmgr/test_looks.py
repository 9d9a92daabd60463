"""What explain --why-not knows: the last verdict for each kind of happening, with its time and its cause."""

from __future__ import annotations

import pytest

from trigmon.mq.calls import Alter, Backout, Close, Delete, Explain, Get, LostConnection, Move, Open, Put, PutMany, Set
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption
from trigmon.rules.explain import MOST_EXPIRED

IN, SET = OpenOption.INPUT_SHARED, OpenOption.SET
INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"


@pytest.fixture
def armed(world):
    world.define("P", "PROCESS", appl_id="/bin/true")
    world.define("Q", trigger_control="on", process_name="P", initiation_q_name=INITQ)
    return world


def explained(world, q_name="Q", **given):
    return world.did(Explain(q_name=q_name, **given), "asker")


def looks(world, q_name="Q"):
    return {look.happened: look for look in explained(world, q_name, why_not=True).last}


def test_a_put_that_did_not_fire_is_shown_with_its_cause(armed):
    armed.clock.advance(5000)
    reply = armed.put("Q", as_="loader", priority=3)
    look = looks(armed)["put"]
    assert (look.fires, look.occasion, look.fails) == (False, "", ["8"])
    assert (look.call, look.application, look.user, look.priority) == ("put", "loader", "root", 3)
    assert (look.at_ms, look.msg_id) == (armed.clock.now(), reply.msg_id)


def test_a_put_that_fired_is_shown_with_its_occasion(armed):
    armed.open(INITQ, IN, as_="monitor")
    armed.put("Q")
    look = looks(armed)["put"]
    assert (look.fires, look.occasion, look.fails) == (True, "1", [])


def test_equal_verdicts_are_one_that_says_how_often_and_since_when(armed):
    armed.put("Q")
    armed.clock.advance(1000)
    since = armed.clock.now()
    for _ in range(3):
        armed.put("Q", as_="loader")
        armed.clock.advance(1000)
    look = looks(armed)["put"]
    assert (look.times, look.since_ms, look.at_ms, look.application) == (3, since, since + 2000, "loader")


def test_a_verdict_that_differs_begins_anew(armed):
    armed.put("Q")
    armed.put("Q")
    armed.did(Alter(object_type="QLOCAL", name="Q", attributes={"inhibit_get": "inhibited"}), "operator")
    armed.put("Q")
    look = looks(armed)["put"]
    assert (look.times, look.fails) == (1, ["5", "8"])


def test_puts_while_control_is_off_are_one_row_with_what_the_last_one_met(armed):
    armed.did(Alter(object_type="QLOCAL", name="Q", attributes={"trigger_control": "off"}), "operator")
    for _ in range(3):
        armed.put("Q")
    look = looks(armed)["put"]
    assert (look.times, look.fires, look.fails) == (3, False, ["8", "9"])
    seen = {condition.number: condition.seen for condition in look.conditions}
    assert seen["3"] == "2 waiting with priority 0 or more"
    armed.did(Alter(object_type="QLOCAL", name="Q", attributes={"trigger_control": "on"}), "operator")
    armed.put("Q")
    assert looks(armed)["put"].times == 1


def test_what_was_seen_is_the_last_message_s(armed):
    for _ in range(3):
        armed.put("Q")
    third = next(c for c in looks(armed)["put"].conditions if c.number == "3")
    assert third.seen == "2 waiting with priority 0 or more"


def test_each_kind_of_happening_has_its_own_verdict_newest_first(armed):
    armed.put("Q")
    handle = armed.open("Q", IN, as_="reader")
    armed.did(Close(handle=handle), "reader")
    armed.open(INITQ, IN, as_="monitor")
    armed.did(Alter(object_type="QLOCAL", name="Q", attributes={"trigger_msg_priority": 4}), "operator")
    last = explained(armed, why_not=True).last
    assert [(look.happened, look.call, look.application) for look in last] == [
        ("change", "alter", "operator"),
        ("monitor_opened", "open", "monitor"),
        ("close", "close", "reader"),
        ("put", "put", "app"),
    ]
    found = {look.happened: look for look in last}
    assert found["monitor_opened"].occasion == "13c"
    assert found["close"].fails == ["8"]
    assert found["change"].fails == ["13"]


def test_gets_and_initiation_puts_that_become_allowed_are_shown(armed):
    armed.put("Q")
    for name, attribute in (("Q", "inhibit_get"), (INITQ, "inhibit_put")):
        handle = armed.open(name, SET, as_="operator")
        armed.did(Set(handle=handle, attributes={attribute: "inhibited"}), "operator")
        armed.did(Set(handle=handle, attributes={attribute: "allowed"}), "operator")
    found = looks(armed)
    assert [found[kind].fails for kind in ("get_allowed", "initiation_put_allowed")] == [["8"], ["8"]]
    assert found["get_allowed"].call == "set"


def test_a_close_with_a_reader_left_says_so(armed):
    armed.put("Q")
    first = armed.open("Q", IN, as_="reader")
    armed.open("Q", IN, as_="reader")
    armed.did(Close(handle=first), "reader")
    look = looks(armed)["close"]
    assert look.fails == ["8", "12"]
    (twelve,) = [c for c in look.conditions if c.number == "12"]
    assert twelve.seen == "IPPROCS(1) after the close, 1 waiting"


def test_the_cause_of_an_internal_call_is_the_call_that_was_made(armed):
    armed.open("Q", IN, as_="reader")
    armed.do(LostConnection(), "reader")
    assert looks(armed)["close"].call == "lost_connection"
    armed.did(PutMany(q_name="Q", bodies=[b"a", b"b"]))
    assert looks(armed)["put"].call == "put_many"
    armed.define("ASIDE")
    armed.put("ASIDE")
    armed.did(Move(q_name="ASIDE", to_q_name="Q"), "operator")
    assert (looks(armed)["put"].call, looks(armed)["put"].application) == ("move", "operator")


def test_a_put_that_was_refused_is_no_last_put(armed):
    armed.put("Q", as_="first")
    armed.did(Alter(object_type="QLOCAL", name="Q", attributes={"max_q_depth": 2}), "operator")
    armed.do(PutMany(q_name="Q", bodies=[b"a", b"b"]), "second")
    look = looks(armed)["put"]
    assert (look.application, look.times) == ("first", 1)


def test_a_put_that_is_backed_out_was_one(armed):
    armed.put("Q", unit=1, as_="loader")
    armed.did(Backout(unit=1), "loader")
    assert looks(armed)["put"].application == "loader"


def test_a_queue_that_is_deleted_is_forgotten(armed):
    armed.put("Q")
    armed.did(Delete(object_type="QLOCAL", name="Q", purge=True), "operator")
    armed.define("Q")
    assert looks(armed) == {}


def test_nothing_outlives_a_restart_and_the_answer_says_since_when(armed):
    armed.put("Q")
    armed.clock.advance(60_000)
    armed.restart()
    reply = explained(armed, why_not=True)
    assert reply.last == []
    assert reply.values["started_ms"] == armed.clock.now()
    assert str(reply).startswith("Nothing has happened to Q since 2026-01-01 00:01:00 UTC (start).\n\nA put on Q")


def test_nothing_is_shown_unless_it_is_asked_for(armed):
    armed.put("Q")
    reply = explained(armed)
    assert reply.last == []
    assert str(reply).startswith("A put on Q")


def test_the_text_names_what_happened_and_shows_only_what_failed(armed):
    armed.put("Q", as_="loader")
    armed.put("Q", as_="loader")
    armed.put("Q", as_="loader")
    first, repeated, *rest = str(explained(armed, why_not=True)).partition("\n\n")[0].splitlines()
    assert first == (
        "2026-01-01 00:00:00 UTC  put by loader (put), priority 0: NO trigger message, since 8 does not hold"
    )
    assert repeated.strip() == "the same 2 times on end, since 2026-01-01 00:00:00 UTC"
    assert rest[0].split()[:2] == ["8", "NO"]
    assert len(rest) == 3


@pytest.mark.parametrize(
    ("dead_letter_q", "fate"),
    [
        ("SYSTEM.DEAD.LETTER.QUEUE", "(MQRC_Q_FULL) and it went to the dead-letter queue"),
        ("", "it was dropped: "),
    ],
)
def test_a_trigger_message_that_came_to_nothing_is_shown_with_its_fate(armed, dead_letter_q, fate):
    armed.did(Alter(object_type="QMGR", name="", attributes={"dead_letter_q_name": dead_letter_q}), "operator")
    armed.did(Alter(object_type="QLOCAL", name=INITQ, attributes={"max_q_depth": 0}), "operator")
    armed.open(INITQ, IN, as_="monitor")
    armed.put("Q")
    look = looks(armed)["put"]
    assert look.fires
    assert fate in look.fate
    assert look.headline.endswith(f"a trigger message was written (by condition 1), but {look.fate}")
    armed.did(Alter(object_type="QLOCAL", name=INITQ, attributes={"max_q_depth": 9}), "operator")
    drain = armed.open("Q", IN, as_="reader")
    armed.did(Get(handle=drain), "reader")
    armed.did(Close(handle=drain), "reader")
    armed.put("Q")
    again = looks(armed)["put"]
    assert (again.fires, again.times, again.fate) == (True, 2, "")


def test_explain_through_an_alias_tells_of_its_queue(armed):
    armed.define("A", "QALIAS", base_q_name="Q")
    armed.put("A")
    assert looks(armed, "A")["put"].fails == ["8"]


# -- the numbers --------------------------------------------------------------------------------------------


def numbers(world, q_name="Q"):
    values = explained(world, q_name).values
    names = ("available_msgs", "uncommitted_puts", "uncommitted_gets", "expired_msgs", "qualifying_depth")
    return [values[name] for name in names]


def test_each_of_the_five_numbers_counts_its_own(armed):
    armed.did(Alter(object_type="QLOCAL", name="Q", attributes={"trigger_msg_priority": 5}), "operator")
    armed.put("Q", b"taken", priority=9)
    armed.put("Q", b"low", priority=1)
    armed.put("Q", b"short", priority=6, expiry=10)
    armed.put("Q", b"long", priority=6, expiry=10_000)
    armed.put("Q", b"uncommitted", priority=5, unit=1, as_="writer")
    handle = armed.open("Q", IN, as_="reader")
    assert armed.did(Get(handle=handle, options=2, unit=1), "reader").data == b"taken"
    assert numbers(armed) == [3, 1, 1, 0, 3]
    armed.clock.advance(1000)
    assert numbers(armed) == [2, 1, 1, 1, 3]


def test_what_expires_in_a_unit_of_work_is_not_counted_twice(armed):
    armed.put("Q", expiry=1, unit=1, as_="writer")
    armed.put("Q", b"got", expiry=1)
    handle = armed.open("Q", IN, as_="reader")
    assert armed.did(Get(handle=handle, options=2, unit=1), "reader").data == b"got"
    armed.clock.advance(1000)
    assert numbers(armed) == [0, 1, 1, 0, 1]


def test_expired_messages_are_counted_up_to_a_thousand(armed):
    armed.did(Open(object_name="Q", options=OpenOption.OUTPUT.value))
    for _ in range(MOST_EXPIRED + 1):
        armed.did(Put(q_name="Q", descriptor=MessageDescriptor(expiry=1), data=b"x"))
    armed.clock.advance(1000)
    reply = explained(armed)
    assert (reply.values["expired_msgs"], reply.values["expired_is_capped"]) == (MOST_EXPIRED, True)
    text = str(reply).splitlines()
    assert "at least 1000 expired and not yet discarded" in text
    assert "at most 1 available: committed, not got, not expired" in text


def test_three_expired_messages_are_three(armed):
    for _ in range(3):
        armed.put("Q", expiry=1)
    armed.clock.advance(1000)
    values = explained(armed).values
    assert (values["expired_msgs"], values["expired_is_capped"]) == (3, False)
