"""What every store must do with messages: order, look-ups, units of work, taking back, restart."""

from __future__ import annotations

import pytest

from tests.store.reading import BROWSE, IN, SYNC, depth, drained, names
from trigmon.mq.calls import (
    Alter,
    Backout,
    Commit,
    Disconnect,
    Display,
    Get,
    GetMany,
    LostConnection,
    Outcome,
    PutMany,
)
from trigmon.mq.descriptors import padded_id
from trigmon.mq.enums import GetOption, MatchOption, OpenOption, UnitOutcome
from trigmon.mq.reasons import Reason


def test_messages_come_by_priority_and_then_by_arrival(world):
    world.define("Q")
    for data, priority in (("a", 3), ("b", 9), ("c", 3), ("d", 0), ("e", 9)):
        world.put("Q", data.encode(), priority=priority)
    assert names(world, "Q") == ["b", "e", "a", "c", "d"]


def test_a_fifo_queue_ignores_priority_and_keeps_it_in_the_descriptor(world):
    world.define("Q", msg_delivery_sequence="fifo", def_priority=4)
    world.put("Q", b"a", priority=1)
    world.put("Q", b"b", priority=9)
    handle = world.open("Q", IN)
    first = world.did(Get(handle=handle))
    assert (first.data, first.descriptor.priority) == (b"a", 1)


def test_a_priority_above_the_maximum_is_warned_of_and_lands_at_the_maximum(world):
    world.define("Q")
    reply = world.put("Q", b"x", priority=12)
    assert reply.warning == Reason.PRIORITY_EXCEEDS_MAXIMUM
    handle = world.open("Q", IN)
    assert world.did(Get(handle=handle)).descriptor.priority == 12


def test_messages_are_found_by_message_and_correlation_id(world):
    world.define("Q")
    for number in range(5):
        world.put("Q", str(number).encode(), msg_id=padded_id(f"M{number}"), correl_id=padded_id(f"C{number % 2}"))
    handle = world.open("Q", IN)
    by_msg = world.did(Get(handle=handle, match=MatchOption.MSG_ID, msg_id=padded_id("M3")))
    by_correl = world.did(Get(handle=handle, match=MatchOption.CORREL_ID, correl_id=padded_id("C1")))
    both = Get(
        handle=handle,
        match=MatchOption.MSG_ID | MatchOption.CORREL_ID,
        msg_id=padded_id("M2"),
        correl_id=padded_id("C1"),
    )
    assert (by_msg.data, by_correl.data) == (b"3", b"1")
    assert world.do(both).reason == Reason.NO_MSG_AVAILABLE
    assert names(world, "Q") == ["0", "2", "4"]


def test_a_browse_walks_and_takes_what_it_stands_on(world):
    world.define("Q")
    for data in (b"a", b"b", b"c"):
        world.put("Q", data)
    handle = world.open("Q", IN, BROWSE)

    def browse(option):
        return world.did(Get(handle=handle, options=option)).data

    assert [browse(GetOption.BROWSE_FIRST), browse(GetOption.BROWSE_NEXT)] == [b"a", b"b"]
    assert browse(GetOption.BROWSE_MSG_UNDER_CURSOR) == b"b"
    assert browse(GetOption.MSG_UNDER_CURSOR) == b"b"
    gone = world.do(Get(handle=handle, options=GetOption.BROWSE_MSG_UNDER_CURSOR))
    assert gone.reason == Reason.NO_MSG_UNDER_CURSOR
    assert browse(GetOption.BROWSE_NEXT) == b"c"
    assert world.do(Get(handle=handle, options=GetOption.BROWSE_NEXT)).reason == Reason.NO_MSG_AVAILABLE
    assert browse(GetOption.BROWSE_FIRST) == b"a"


def test_a_browse_goes_on_from_higher_to_lower_priority(world):
    world.define("Q")
    for data, priority in ((b"low", 1), (b"high", 8), (b"mid", 5)):
        world.put("Q", data, priority=priority)
    handle = world.open("Q", BROWSE)
    options = [GetOption.BROWSE_FIRST, GetOption.BROWSE_NEXT, GetOption.BROWSE_NEXT]
    assert [world.did(Get(handle=handle, options=o)).data for o in options] == [b"high", b"mid", b"low"]


class TestUnitsOfWork:
    def test_puts_are_seen_by_others_from_the_commit_on_and_by_their_own_unit_at_once(self, world):
        world.define("Q")
        world.put("Q", b"mine", as_="writer", unit=1)
        assert names(world, "Q") == []
        handle = world.open("Q", BROWSE, as_="writer")
        assert world.did(Get(handle=handle, options=GetOption.BROWSE_FIRST), "writer").data == b"mine"
        world.did(Commit(unit=1), "writer")
        assert names(world, "Q") == ["mine"]

    def test_backout_takes_puts_away_and_brings_gets_back_to_their_place(self, world):
        world.define("Q")
        for data in (b"a", b"b"):
            world.put("Q", data)
        handle = world.open("Q", IN, as_="worker")
        assert world.did(Get(handle=handle, options=SYNC, unit=1), "worker").data == b"a"
        world.put("Q", b"c", as_="worker", unit=1)
        assert depth(world, "Q") == 2
        world.did(Backout(unit=1), "worker")
        assert depth(world, "Q") == 2
        assert drained(world, "Q") == [("a", 1), ("b", 0)]

    def test_own_puts_take_their_places_among_committed_messages(self, world):
        world.define("Q")
        world.put("Q", b"theirs", priority=5)
        world.put("Q", b"mine", as_="worker", unit=1, priority=9)
        handle = world.open("Q", IN, as_="worker")
        got = world.did(GetMany(handle=handle, count=9, options=SYNC, unit=1), "worker")
        assert [m.data for m in got.messages] == [b"mine", b"theirs"]
        world.did(Commit(unit=1), "worker")
        assert depth(world, "Q") == 0

    def test_a_put_got_in_its_own_unit_is_gone_either_way(self, world):
        world.define("Q")
        handle = world.open("Q", IN)
        for unit, end in ((1, Commit), (2, Backout)):
            world.put("Q", b"x", unit=unit)
            world.did(Get(handle=handle, options=SYNC, unit=unit))
            world.did(end(unit=unit))
            assert depth(world, "Q") == 0

    def test_an_ended_unit_is_refused_by_name(self, world):
        world.define("Q")
        world.put("Q", unit=1)
        world.did(Commit(unit=1))
        for call in (Commit(unit=1), Backout(unit=1)):
            assert world.do(call).reason == Reason.UNIT_OF_WORK_NOT_STARTED

    def test_the_outcome_of_the_last_units_is_known_to_anybody(self, world):
        world.define("Q")
        for unit, end in ((1, Commit), (2, Backout), (3, Commit)):
            world.put("Q", unit=unit, as_="worker")
            world.did(end(unit=unit), "worker")
        world.put("Q", unit=4, as_="worker")
        seen = [world.did(Outcome(client_id="client-worker", unit=unit)).outcome for unit in (1, 2, 3, 4, 9)]
        assert seen == [
            UnitOutcome.UNKNOWN,
            UnitOutcome.BACKED_OUT,
            UnitOutcome.COMMITTED,
            UnitOutcome.OPEN,
            UnitOutcome.OPEN,
        ]

    def test_disconnect_commits_and_a_lost_connection_backs_out(self, world):
        world.define("Q")
        world.put("Q", b"kept", as_="one", unit=1)
        world.did(Disconnect(), "one")
        world.put("Q", b"gone", as_="two", unit=1)
        world.qm.lost([world.session("two")])
        assert names(world, "Q") == ["kept"]

    def test_too_many_uncommitted_messages_are_refused_and_the_unit_stays(self, world):
        world.did(Alter(object_type="QMGR", name="QM1", attributes={"max_uncommitted_msgs": 2}))
        world.define("Q")
        world.put("Q", b"a", unit=1)
        world.put("Q", b"b", unit=1)
        many = PutMany(q_name="Q", bodies=[b"c"], options=2, unit=1)
        assert world.do(many).reason == Reason.SYNCPOINT_LIMIT_REACHED
        world.did(Commit(unit=1))
        assert names(world, "Q") == ["a", "b"]


def test_many_puts_in_a_frame_are_all_or_none(world):
    world.define("Q", max_q_depth=3)
    assert world.do(PutMany(q_name="Q", bodies=[b"1", b"2", b"3", b"4"])).reason == Reason.Q_FULL
    assert depth(world, "Q") == 0
    assert len(world.did(PutMany(q_name="Q", bodies=[b"1", b"2", b"3"])).msg_ids) == 3
    assert names(world, "Q") == ["1", "2", "3"]


class TestRestart:
    @pytest.mark.parametrize("how", ["restart", "crash"])
    def test_persistent_messages_and_definitions_are_there_and_the_rest_is_gone(self, world, how):
        world.define("Q", def_persistence="persistent", trigger_data="kept")
        world.put("Q", b"lasting")
        world.put("Q", b"fleeting", persistence=0)
        getattr(world, how)()
        row = world.did(Display(object_type="QLOCAL", name="Q")).rows[0]
        assert (row["trigger_data"], row["current_q_depth"]) == ("kept", 1)
        assert names(world, "Q") == ["lasting"]

    @pytest.mark.parametrize("how", ["restart", "crash"])
    def test_units_in_flight_are_backed_out_with_the_count_raised(self, world, how):
        world.define("Q", def_persistence="persistent")
        world.put("Q", b"got")
        handle = world.open("Q", IN, as_="worker")
        world.did(Get(handle=handle, options=SYNC, unit=1), "worker")
        world.put("Q", b"put", as_="worker", unit=1)
        getattr(world, how)()
        assert world.did(Outcome(client_id="client-worker", unit=1)).outcome is UnitOutcome.BACKED_OUT
        assert drained(world, "Q") == [("got", 1)]

    def test_a_committed_unit_is_still_committed(self, world):
        world.define("Q", def_persistence="persistent")
        world.put("Q", b"x", as_="worker", unit=1)
        world.did(Commit(unit=1), "worker")
        world.crash()
        assert world.did(Outcome(client_id="client-worker", unit=1)).outcome is UnitOutcome.COMMITTED
        assert names(world, "Q") == ["x"]

    def test_message_ids_are_never_used_again(self, world):
        world.define("Q")
        first = world.put("Q").msg_id
        world.crash()
        assert world.put("Q").msg_id > first

    def test_the_order_of_messages_is_kept(self, world):
        world.define("Q", def_persistence="persistent")
        for data, priority in ((b"a", 1), (b"b", 7), (b"c", 1)):
            world.put("Q", data, priority=priority)
        world.restart()
        assert names(world, "Q") == ["b", "a", "c"]


class TestExpiry:
    def test_an_expired_message_counts_until_a_get_would_have_returned_it(self, world):
        world.define("Q")
        world.put("Q", b"short", expiry=10)
        world.put("Q", b"long")
        world.clock.advance(1000)
        assert depth(world, "Q") == 2
        handle = world.open("Q", IN)
        assert world.did(Get(handle=handle)).data == b"long"
        assert depth(world, "Q") == 0

    def test_a_get_for_another_message_discards_nothing(self, world):
        world.define("Q")
        world.put("Q", b"short", expiry=10)
        world.put("Q", b"named", msg_id=padded_id("N"))
        world.clock.advance(1000)
        handle = world.open("Q", IN)
        world.did(Get(handle=handle, match=MatchOption.MSG_ID, msg_id=padded_id("N")))
        assert depth(world, "Q") == 1

    def test_the_time_left_is_returned(self, world):
        world.define("Q")
        world.put("Q", b"x", expiry=100)
        world.clock.advance(4000)
        handle = world.open("Q", IN)
        assert world.did(Get(handle=handle)).descriptor.expiry == 60

    def test_any_number_of_expired_messages_may_lie_in_front(self, world):
        world.define("Q")
        for _ in range(600):
            world.put("Q", b"old", expiry=1)
        world.put("Q", b"new")
        world.clock.advance(100)
        assert names(world, "Q") == ["new"]


def test_a_refused_call_changes_nothing(world):
    world.define("Q", max_q_depth=1)
    world.put("Q", b"x")
    before = world.did(Display(object_type="queue")).rows
    assert world.do(PutMany(q_name="Q", bodies=[b"y"], options=2, unit=5)).reason == Reason.Q_FULL
    assert world.did(Display(object_type="queue")).rows == before
    assert world.do(Commit(unit=1)).warning == 0


def test_a_lost_connection_that_waits_is_forgotten(world):
    world.define("Q")
    handle = world.open("Q", IN, as_="reader")
    assert world.do(Get(handle=handle, options=GetOption.WAIT, wait_interval_ms=-1), "reader") is None
    world.qm.turn([(world.session("reader"), 0, LostConnection())])
    world.put("Q", b"x")
    assert names(world, "Q") == ["x"]


def test_one_reply_carries_no_more_than_it_has_room_for(world):
    world.define("BIG", max_msg_length=4 << 20)
    for _ in range(3):
        world.put("BIG", b"x" * (3 << 20))
    handle = world.open("BIG", OpenOption.INPUT_SHARED)
    sizes = [len(world.did(GetMany(handle=handle, count=10)).messages) for _ in range(3)]
    assert sizes == [1, 1, 1]


def test_many_expired_messages_do_not_bring_a_units_own_put_forward(world):
    world.define("Q")
    for _ in range(300):
        world.put("Q", b"old", expiry=1)
    world.clock.advance(1000)
    world.put("Q", b"committed", as_="other")
    world.put("Q", b"own", unit=1)
    handle = world.open("Q", IN)
    got = [world.did(Get(handle=handle, options=SYNC, unit=1)).data for _ in range(2)]
    assert got == [b"committed", b"own"]


def test_a_unit_that_has_not_begun_is_open_while_its_client_is_there(world):
    world.put("SYSTEM.DEFAULT.LOCAL.QUEUE", unit=1)
    world.did(Commit(unit=1))
    asked = Outcome(client_id="client-app", unit=2)
    assert world.did(asked, "asker").outcome is UnitOutcome.OPEN
    world.did(Disconnect())
    assert world.did(asked, "asker").outcome is UnitOutcome.BACKED_OUT


def got_many(world, handle, unit):
    """Gets up to nine messages in a unit of work as the client does, and returns their data."""
    reply = world.did(GetMany(handle=handle, count=9, options=SYNC, unit=unit, fewer_if_backed_out=True))
    return [message.data.decode() for message in reply.messages]


def test_of_several_those_that_were_backed_out_before_come_apart_and_alone_before_the_threshold(world):
    world.define("Q", backout_threshold=2)
    for data in "abc":
        world.put("Q", data.encode(), priority=4)
    handle = world.open("Q", IN)
    assert got_many(world, handle, 1) == ["a", "b", "c"]
    world.did(Backout(unit=1))
    world.put("Q", b"first", priority=5)
    world.put("Q", b"second", priority=5)
    world.put("Q", b"last", priority=3)
    assert got_many(world, handle, 2) == ["first", "second"]
    assert [got_many(world, handle, 2) for _ in range(4)] == [["a"], ["b"], ["c"], ["last"]]
