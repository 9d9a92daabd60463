"""Poison among many messages, before those who wait, and in one step: what scenarios cannot show of BOREQ(QMGR)."""

from __future__ import annotations

import pytest

from tests.worlds import World
from trigmon.mq.calls import Alter, Backout, Commit, Get, GetMany
from trigmon.mq.descriptors import DLH_LENGTH, MessageDescriptor, padded_id, unpack_dlh
from trigmon.mq.enums import GetOption, MatchOption, MsgFlag, OpenOption, ReportOption
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused, WasGot
from trigmon.rules.model.internal_calls import Deliver

IN, SYNC, WAIT = OpenOption.INPUT_SHARED, GetOption.SYNCPOINT.value, GetOption.WAIT.value


@pytest.fixture
def q(world: World) -> int:
    """A handle of Q, whose poison goes to ASIDE."""
    world.define("ASIDE")
    world.define("Q", backout_threshold=1, backout_requeue="qmgr", backout_requeue_q_name="ASIDE")
    return world.open("Q", IN)


def poisoned(world: World, q: int, *bodies: bytes, unit: int = 1, **fields: object) -> None:
    for body in bodies:
        world.put("Q", body, **fields)
        world.did(Get(handle=q, options=SYNC, unit=unit))
    world.did(Backout(unit=unit))


def many(world: World, q: int, count: int = 100, unit: int = 0) -> list[bytes]:
    reply = world.do(GetMany(handle=q, count=count, options=SYNC if unit else 0, unit=unit))
    return [] if isinstance(reply, Refused) else [message.data for message in reply.messages]


def on(world: World, name: str) -> list[WasGot]:
    handle = world.open(name, IN, as_="looker")
    return world.did(GetMany(handle=handle, count=100), "looker").messages


def test_a_batch_ends_before_poison_and_the_next_begins_behind_it(world, q):
    poisoned(world, q, b"bad", b"worse", priority=4)
    for body, priority in ((b"1", 5), (b"2", 3), (b"3", 3)):
        world.put("Q", body, priority=priority)
    assert many(world, q, unit=2) == [b"1"]
    assert world.queue_depth("Q") == 4
    assert many(world, q, unit=2) == [b"2", b"3"]
    assert [m.data for m in on(world, "ASIDE")] == [b"bad", b"worse"]
    world.did(Commit(unit=2))
    assert many(world, q) == []


def test_a_batch_of_those_that_can_go_nowhere_begins_anew_at_each(world, q):
    poisoned(world, q, b"bad", b"worse")
    world.put("Q", b"good")
    world.did(Alter(object_type="QLOCAL", name="ASIDE", attributes={"inhibit_put": "inhibited"}))
    assert [many(world, q) for _ in range(3)] == [[b"bad"], [b"worse", b"good"], []]
    assert world.queue_depth("ASIDE") == 0


def test_a_waiting_get_is_not_given_what_another_backed_out(world, q):
    waiting = world.open("Q", IN, as_="waits")
    world.put("Q", b"bad")
    world.did(Get(handle=q, options=SYNC, unit=1))
    assert world.do(Get(handle=waiting, options=WAIT, wait_interval_ms=1000), "waits") is None
    world.did(Backout(unit=1))
    assert world.ended_waits == []
    assert [m.data for m in on(world, "ASIDE")] == [b"bad"]
    world.put("Q", b"good")
    (answer,) = world.ended_waits
    assert answer.reply.data == b"good"


def test_a_waiting_get_on_the_backout_queue_is_given_it(world, q):
    aside = world.open("ASIDE", IN, as_="repairs")
    assert world.do(Get(handle=aside, options=WAIT, wait_interval_ms=1000), "repairs") is None
    poisoned(world, q, b"bad")
    assert world.ended_waits == []
    world.do(Get(handle=q))
    (answer,) = world.ended_waits
    assert answer.reply.data == b"bad"


def test_each_one_is_reported_with_its_id_its_count_and_its_way(world, q):
    poisoned(world, q, b"bad", msg_id=b"m" * 24)
    world.did(Alter(object_type="QLOCAL", name="ASIDE", attributes={"inhibit_put": "inhibited"}))
    world.did(Get(handle=q, options=SYNC, unit=2))
    world.did(Backout(unit=2))
    (kept,) = world.telling.not_aside
    assert (kept.q_name, kept.msg_id, kept.backout_count) == ("Q", b"m" * 24, 1)
    assert "PUT_INHIBITED (2051): ASIDE" in kept.why and "the dead-letter queue: none is named (DEADQ)" in kept.why
    world.did(Alter(object_type="QLOCAL", name="ASIDE", attributes={"inhibit_put": "allowed"}))
    world.do(Get(handle=q))
    (aside,) = world.telling.aside
    assert (aside.q_name, aside.to_q_name, aside.msg_id, aside.backout_count, aside.why) == (
        *("Q", "ASIDE", b"m" * 24, 2, ""),
    )


def test_a_dead_letters_header_says_where_it_lay_and_what_it_was(world, q):
    world.define("DLQ")
    world.did(Alter(object_type="QMGR", name="", attributes={"dead_letter_q_name": "DLQ"}))
    world.did(Alter(object_type="QLOCAL", name="Q", attributes={"backout_requeue_q_name": ""}))
    poisoned(world, q, b"bad", format="MQSTR", encoding=0x111, coded_char_set_id=500, expiry=50)
    world.clock.advance(2000)
    world.do(Get(handle=q))
    (dead,) = on(world, "DLQ")
    header, data = unpack_dlh(dead.data)
    assert (header.reason, header.dest_q_name, header.dest_q_mgr_name) == (
        *(Reason.BACKOUT_THRESHOLD_REACHED, "Q", "QM1"),
    )
    assert (header.format, header.encoding, header.coded_char_set_id, data) == ("MQSTR", 0x111, 500, b"bad")
    assert (dead.descriptor.format, dead.descriptor.expiry, dead.data_length) == ("MQDEAD", 30, DLH_LENGTH + 3)


def test_expired_messages_behind_the_poison_are_not_looked_at(world, q):
    poisoned(world, q, b"bad", priority=5)
    world.put("Q", b"old", priority=1, expiry=1)
    world.put("Q", b"good", priority=0)
    world.put("Q", b"first", priority=9)
    world.clock.advance(1000)
    assert many(world, q) == [b"first"]
    assert world.queue_depth("Q") == 3
    assert many(world, q, count=1) == [b"good"]
    assert world.queue_depth("Q") == 0


def test_persistent_poison_is_on_one_queue_after_a_crash(world, q):
    poisoned(world, q, b"bad", persistence=1)
    world.do(Get(handle=q))
    world.crash()
    assert (world.queue_depth("Q"), [m.data for m in on(world, "ASIDE")]) == (0, [b"bad"])


def test_a_bug_in_the_middle_leaves_it_where_it_was(world, q, monkeypatch):
    poisoned(world, q, b"bad")
    follow = world.store.standing.follow

    def fails_at_the_put(change):
        if getattr(change, "q_name", "") == "ASIDE":
            raise RuntimeError("planted")
        follow(change)

    monkeypatch.setattr(world.store.standing, "follow", fails_at_the_put)
    with pytest.raises(RuntimeError, match="planted"):
        world.do(Get(handle=q))
    world.telling.bugs.clear()
    monkeypatch.undo()
    assert (world.queue_depth("Q"), world.queue_depth("ASIDE")) == (1, 0)
    assert isinstance(world.do(Get(handle=q)), Refused)
    assert [m.data for m in on(world, "ASIDE")] == [b"bad"]


def test_a_unit_of_work_is_not_made_longer_by_what_is_put_aside(world, q):
    poisoned(world, q, b"bad", b"worse")
    world.put("Q", b"good")
    world.did(Alter(object_type="QMGR", name="", attributes={"max_uncommitted_msgs": 1}))
    assert many(world, q, unit=2) == [b"good"]
    world.did(Commit(unit=2))


def segments(world: World, *bodies: bytes) -> None:
    """One logical message, put by its segments."""
    offset = 0
    for body in bodies:
        flags = MsgFlag.SEGMENT | (MsgFlag.LAST_SEGMENT if body == bodies[-1] else 0)
        descriptor = MessageDescriptor(
            group_id=b"g" * 24, msg_flags=int(flags), offset=offset, priority=0, persistence=0, msg_id=b"m" * 24
        )
        world.did(Deliver(q_name="Q", descriptor=descriptor, data=body))
        offset += len(body)


COMPLETE = GetOption.COMPLETE_MSG.value


def test_a_message_in_segments_is_put_aside_whole(world, q):
    segments(world, b"one ", b"two ", b"three")
    whole = Get(handle=q, options=SYNC | COMPLETE, unit=1)
    assert world.did(whole).data == b"one two three"
    world.did(Backout(unit=1))
    world.put("Q", b"good")
    assert world.did(Get(handle=q, options=COMPLETE)).data == b"good"
    assert world.queue_depth("Q") == 0
    aside = world.open("ASIDE", IN, as_="looker")
    assert world.did(Get(handle=aside, options=COMPLETE), "looker").data == b"one two three"


def test_a_message_in_segments_that_can_go_nowhere_is_handed_out_whole(world, q):
    segments(world, b"one ", b"two ", b"three")
    world.did(Alter(object_type="QLOCAL", name="ASIDE", attributes={"inhibit_put": "inhibited"}))
    for unit in (1, 2, 3):
        assert world.did(Get(handle=q, options=SYNC | COMPLETE, unit=unit)).data == b"one two three"
        world.did(Backout(unit=unit))
    assert world.queue_depth("Q") == 3
    world.did(Get(handle=q, options=SYNC | COMPLETE, unit=4))
    world.did(Commit(unit=4))
    assert (world.queue_depth("Q"), world.queue_depth("ASIDE")) == (0, 0)


def test_segments_that_have_no_room_together_are_not_torn(world, q):
    segments(world, b"one ", b"two ", b"three")
    world.did(Get(handle=q, options=SYNC | COMPLETE, unit=1))
    world.did(Backout(unit=1))
    world.did(Alter(object_type="QLOCAL", name="ASIDE", attributes={"max_q_depth": 2}))
    assert world.did(Get(handle=q, options=COMPLETE)).data == b"one two three"
    assert (world.queue_depth("Q"), world.queue_depth("ASIDE")) == (0, 0)
    (kept,) = world.telling.not_aside
    assert "ASIDE: MAXDEPTH(2), and 3 go together" in kept.why


def test_the_report_on_what_is_handed_out_after_all_may_itself_find_no_queue(world, q):
    world.did(Alter(object_type="QLOCAL", name="ASIDE", attributes={"inhibit_put": "inhibited"}))
    poisoned(world, q, b"bad", report=int(ReportOption.COD), reply_to_q="NOBODY")
    assert world.did(Get(handle=q)).data == b"bad"
    assert [q_name for q_name, _ in world.telling.lost] == ["NOBODY", "NOBODY"]


def test_a_turn_puts_aside_no_more_than_a_slice_and_the_group_it_is_in(world, q):
    in_group = MsgFlag.MSG_IN_GROUP.value
    for number in range(5):
        group_id = padded_id(f"g{number}")
        for seq in range(1, 101):
            world.put("Q", b"m", group_id=group_id, msg_seq_number=seq, msg_flags=in_group)
    for number in range(5):
        match = {"match": int(MatchOption.GROUP_ID), "group_id": padded_id(f"g{number}")}
        world.did(Get(handle=q, options=SYNC, unit=1, **match))
    world.did(Backout(unit=1))
    logical = world.open("Q", IN)
    session = world.session("app")
    get = Get(handle=logical, options=GetOption.LOGICAL_ORDER.value)
    assert world.qm.turn([(session, 1, get)]) == []
    assert world.store.standing.queues["ASIDE"].depth == 200
    assert world.qm.turn([]) == []
    (answer,) = world.qm.turn([])
    assert isinstance(answer.reply, Refused)
    assert world.store.standing.queues["ASIDE"].depth == 500
