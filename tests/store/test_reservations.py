"""What every store must do with reservations: a fixed batch, hidden, read again, offered again, and restarts."""

from __future__ import annotations

import pytest

from tests.store.reserving import BROWSE, IN, OUT, bodies, fill, got, lose, read, reason_of, reserve, sweep
from trigmon.mq.calls import (
    Alter,
    Disconnect,
    Explain,
    Get,
    Put,
    PutMany,
    ReadReserved,
    Refresh,
    Release,
    Reservations,
    Reserve,
    Settle,
)
from trigmon.mq.descriptors import MessageDescriptor, padded_id
from trigmon.mq.enums import GetOption, ReportOption
from trigmon.mq.reasons import Reason
from trigmon.rules.model.stored_messages import LARGE_SLICE, SLICE


class TestTheBatch:
    def test_it_is_in_get_order_and_stays_what_it_is_whatever_comes(self, world, q):
        for body, priority in ((b"a", 1), (b"b", 9), (b"c", 1)):
            world.put(q, body, priority=priority)
        made = reserve(world)
        world.put(q, b"later and higher", priority=9)
        assert (made.count, made.size, made.left_ordinals) == (3, 3, [[0, 3]])
        assert read(world, made) == [(0, "b", 0), (1, "a", 0), (2, "c", 0)]

    def test_it_is_hidden_from_every_other_getter_and_browser(self, world, q):
        fill(world, 3)
        reserve(world, max_messages=2)
        browsing = world.open(q, BROWSE, as_="browser")
        assert world.did(Get(handle=browsing, options=GetOption.BROWSE_FIRST), "browser").data == b"2"
        assert got(world) == [("2", 0)]

    def test_it_is_read_from_any_connection_any_number_of_times_and_in_any_parts(self, world, q):
        fill(world, 5)
        made = reserve(world)
        parts = [bodies(world, made, as_=who, ordinal=at, count=2) for who, at in (("x", 0), ("y", 2), ("x", 0))]
        assert parts == [["0", "1"], ["2", "3"], ["0", "1"]]
        assert bodies(world, made, as_="z", ordinal=4) == ["4"]

    def test_what_was_put_and_not_committed_is_not_in_it_and_is_not_lost_by_settling(self, world, q):
        fill(world, 2)
        world.put(q, b"slow", as_="writer", unit=1)
        made = reserve(world)
        world.did(Settle(reservation=made.reservation), "job")
        lose(world, "job")
        assert made.count == 2
        assert world.queue_depth(q) == 1

    def test_it_holds_at_most_so_many_messages_and_bytes_but_one_in_any_case(self, world, q):
        fill(world, 9)
        assert reserve(world, "a", "A", max_messages=4).count == 4
        assert reserve(world, "b", "B", max_bytes=3).count == 3
        world.put(q, b"long" * 10, priority=9)
        assert reserve(world, "c", "C", max_bytes=3).count == 1

    def test_a_large_one_is_made_slice_by_slice_and_read_only_when_it_is_complete(self, world, q):
        part = SLICE if world.kind == "postgres" else LARGE_SLICE
        world.did(PutMany(q_name=q, bodies=[b"%d" % n for n in range(2 * part + 10)]))
        handle = world.open(q, IN, as_="job")
        call = Reserve(handle=handle, consumer="JOB")
        first = world.did(call, "job")
        assert (first.more, first.count) == (True, part)
        early = world.do(ReadReserved(reservation=first.reservation), "reader")
        assert reason_of(early) is Reason.COMMAND_FAILED
        assert [world.did(call, "job").count for _ in range(2)] == [2 * part, 2 * part + 10]
        again = world.did(call, "job")
        assert (again.again, again.more, again.offers) == (True, False, 0)
        assert bodies(world, first) == [str(n) for n in range(2 * part + 10)]

    def test_a_slice_of_messages_that_are_looked_at_one_by_one_is_a_small_one(self, world, q):
        fill(world, SLICE + 10)
        fill(world, SLICE + 10, expiry=9999)
        fill(world, LARGE_SLICE)
        handle = world.open(q, IN, as_="job")
        made = world.did(Reserve(handle=handle, consumer="JOB"), "job")
        counts = [made.count]
        while made.more:
            made = world.did(Reserve(handle=handle, consumer="JOB"), "job")
            counts.append(made.count)
        assert counts[-1] == made.left == 2 * SLICE + 20 + LARGE_SLICE
        if world.kind == "sqlite":
            assert counts[:-1] == [SLICE, 2 * SLICE, 3 * SLICE]  # and what is left has no message that expires

    def test_one_that_was_being_made_goes_on_with_the_next_connection_and_is_not_offered_anew(self, world, q):
        world.did(PutMany(q_name=q, bodies=[b"x"] * (LARGE_SLICE + 1)))
        handle = world.open(q, IN, as_="job")
        first = world.did(Reserve(handle=handle, consumer="JOB"), "job")
        lose(world, "job")
        made = reserve(world, "other")
        assert (made.reservation, made.count, made.offers) == (first.reservation, LARGE_SLICE + 1, 0)

    def test_with_nothing_there_nothing_is_reserved(self, world, q):
        handle = world.open(q, IN)
        assert reason_of(world.do(Reserve(handle=handle, consumer="JOB"))) is Reason.NO_MSG_AVAILABLE
        assert world.did(Reservations()).rows == []

    def test_what_has_expired_is_discarded_on_the_way_and_never_once_it_is_reserved(self, world, q):
        fill(world, SLICE + 5, expiry=5)
        world.clock.advance(1000)
        world.put(q, b"lives", expiry=5)
        made = reserve(world)
        assert world.queue_depth(q) == 0
        world.clock.advance(1000)
        world.did(Refresh(), "operator")
        sweep(world)
        assert bodies(world, made) == ["lives"]

    def test_a_message_that_another_has_locked_is_not_in_it(self, world, q):
        fill(world, 2)
        handle = world.open(q, BROWSE, as_="locker")
        world.did(Get(handle=handle, options=GetOption.BROWSE_FIRST | GetOption.LOCK), "locker")
        assert bodies(world, reserve(world)) == ["1"]

    def test_a_message_reported_as_delivered_is_reported_when_it_is_settled(self, world, q):
        world.define("REPLIES")
        world.put(q, b"x", report=int(ReportOption.COD), reply_to_q="REPLIES")
        made = reserve(world)
        assert world.queue_depth("REPLIES") == 0
        world.did(Settle(reservation=made.reservation), "job")
        assert world.queue_depth("REPLIES") == 1


class TestWholeGroups:
    def put_group(self, world, name, *bodies, last=True, priority=0):
        handle = world.open("Q", OUT, as_="grouper")
        for number, body in enumerate(bodies, 1):
            flags = 16 if last and number == len(bodies) else 8
            descriptor = MessageDescriptor(
                group_id=padded_id(name), msg_seq_number=number, msg_flags=flags, persistence=1, priority=priority
            )
            world.did(Put(handle=handle, data=body.encode(), descriptor=descriptor), "grouper")

    def test_groups_come_whole_each_in_its_order_among_messages_of_none(self, world, q):
        self.put_group(world, "A", "a1", last=False)
        self.put_group(world, "B", "b1", "b2")
        fill(world, 1)
        self.put_group(world, "C", "c1", "c2", "c3")
        assert bodies(world, reserve(world, whole_groups=True)) == ["b1", "b2", "0", "c1", "c2", "c3"]
        assert got(world) == [("a1", 0)]

    def test_a_group_for_which_there_is_no_room_waits_and_the_first_comes_whatever_its_size(self, world, q):
        self.put_group(world, "A", "a1", "a2")
        self.put_group(world, "B", "b1", "b2")
        assert bodies(world, reserve(world, "x", "X", whole_groups=True, max_messages=3)) == ["a1", "a2"]
        assert bodies(world, reserve(world, "y", "Y", whole_groups=True, max_messages=1)) == ["b1", "b2"]

    def test_groups_of_one_message_come_in_their_order_as_far_as_there_is_room(self, world, q):
        self.put_group(world, "A", "a1")
        fill(world, 1)
        self.put_group(world, "B", "b1")
        self.put_group(world, "C", "c1", "c2")
        self.put_group(world, "D", "d1")
        assert bodies(world, reserve(world, "x", "X", whole_groups=True, max_messages=2)) == ["a1", "0"]
        assert bodies(world, reserve(world, "y", "Y", whole_groups=True)) == ["b1", "c1", "c2", "d1"]
        assert got(world) == []

    def test_of_two_groups_of_one_name_each_of_one_message_both_come(self, world, q):
        self.put_group(world, "A", "low")
        self.put_group(world, "A", "high", priority=5)
        made = reserve(world, whole_groups=True)
        assert bodies(world, made) == ["high", "low"]
        world.did(Release(reservation=made.reservation), "job")
        assert bodies(world, reserve(world, "again", "AGAIN", whole_groups=True)) == ["high", "low"]

    def test_a_group_of_which_a_message_has_expired_does_not_come(self, world, q):
        self.put_group(world, "A", "a1", last=False)
        descriptor = MessageDescriptor(group_id=padded_id("A"), msg_seq_number=2, msg_flags=16, expiry=1)
        world.did(Put(handle=world.open("Q", OUT, as_="grouper"), data=b"a2", descriptor=descriptor), "grouper")
        self.put_group(world, "B", "b1", "b2")
        world.clock.advance(1000)
        assert bodies(world, reserve(world, whole_groups=True)) == ["b1", "b2"]

    def test_without_the_word_a_group_is_so_many_messages(self, world, q):
        self.put_group(world, "A", "a1", "a2", last=False)
        assert bodies(world, reserve(world, max_messages=1)) == ["a1"]

    def test_a_group_given_back_is_whole_again(self, world, q):
        self.put_group(world, "A", "a1", "a2")
        made = reserve(world, whole_groups=True)
        options = GetOption.LOGICAL_ORDER | GetOption.ALL_MSGS_AVAILABLE
        handle = world.open(q, IN, as_="getter")
        assert reason_of(world.do(Get(handle=handle, options=options), "getter")) is Reason.NO_MSG_AVAILABLE
        world.did(Release(reservation=made.reservation), "job")
        assert world.did(Get(handle=handle, options=options), "getter").data == b"a1"

    def test_one_too_large_for_a_step_is_refused_and_nothing_is_reserved(self, world, q, monkeypatch):
        monkeypatch.setattr("trigmon.rules.reservations.reserve.MOST_MESSAGES", 2)
        self.put_group(world, "A", "a1", "a2", "a3")
        handle = world.open(q, IN, as_="job")
        refused = world.do(Reserve(handle=handle, consumer="JOB", whole_groups=True), "job")
        assert reason_of(refused) is Reason.SYNCPOINT_LIMIT_REACHED
        assert world.did(Reservations()).rows == []
        assert len(got(world)) == 3


class TestWhoStandsBehind:
    def test_it_does_not_count_while_anybody_does_and_counts_as_waiting_when_nobody_does(self, world, q):
        fill(world, 4)
        made = reserve(world, max_messages=3)
        read(world, made, as_="reader")
        assert world.queue_depth(q) == 1
        lose(world, "job")
        assert world.queue_depth(q) == 1
        lose(world, "reader")
        assert world.queue_depth(q) == 4
        assert len(got(world)) == 1

    def test_an_orderly_end_lets_go_as_a_lost_connection_does(self, world, q):
        fill(world, 2)
        reserve(world)
        world.did(Disconnect(), "job")
        assert world.queue_depth(q) == 2

    def test_explain_tells_of_it_and_counts_it_as_available_to_nobody(self, world, q):
        fill(world, 3)
        reserve(world, max_messages=2)
        explained = world.did(Explain(q_name=q))
        assert (explained.values["current_q_depth"], explained.values["available_msgs"]) == (1, 1)
        assert "2 reserved for JOB, held by job" in str(explained)
        lose(world, "job")
        explained = world.did(Explain(q_name=q))
        assert (explained.values["current_q_depth"], explained.values["available_msgs"]) == (3, 1)
        assert "2 reserved for JOB alone, held by nobody, which count" in str(explained)

    def test_the_list_tells_who_has_what(self, world, q):
        fill(world, 3)
        made = reserve(world, max_messages=2, token="batch 1")
        read(world, made)
        (row,) = world.did(Reservations(q_name="Q*")).rows
        told = {key: row[key] for key in ("reservation", "q_name", "consumer", "count", "left", "size", "token")}
        assert told == {
            "reservation": made.reservation,
            "q_name": "Q",
            "consumer": "JOB",
            "count": 2,
            "left": 2,
            "size": 2,
            "token": "batch 1",
        }
        assert (row["held"], row["readers"], row["complete"], row["offers"]) == (True, 1, True, 0)
        assert world.did(Reservations(q_name="OTHER")).rows == []


class TestOfferedAgain:
    def test_the_same_consumer_gets_the_very_same_batch_with_its_counts_raised(self, world, q):
        fill(world, 3)
        first = reserve(world, token="7")
        lose(world, "job")
        world.put(q, b"new", priority=9)
        second = reserve(world, "job again", token="8", max_messages=1)
        assert (second.reservation, second.count, second.token) == (first.reservation, 3, "7")
        assert (second.again, second.offers) == (True, 1)
        assert read(world, second) == [(0, "0", 1), (1, "1", 1), (2, "2", 1)]
        assert world.queue_depth(q) == 1

    def test_the_connection_that_has_it_gets_it_again_and_no_count_rises(self, world, q):
        fill(world, 1)
        reserve(world)
        assert reserve(world).again
        assert read(world, reserve(world)) == [(0, "0", 0)]

    def test_nobody_else_of_that_name_gets_it_while_its_connection_lives(self, world, q):
        fill(world, 1)
        reserve(world)
        handle = world.open(q, IN, as_="other")
        assert reason_of(world.do(Reserve(handle=handle, consumer="JOB"), "other")) is Reason.OBJECT_IN_USE

    def test_readers_who_live_on_do_not_keep_it_from_a_new_connection(self, world, q):
        fill(world, 1)
        read(world, reserve(world), as_="reader")
        lose(world, "job")
        assert reserve(world, "other").offers == 1

    def test_each_consumer_has_its_own(self, world, q):
        fill(world, 2)
        one, two = reserve(world, "a", "A", max_messages=1), reserve(world, "b", "B", max_messages=1)
        assert (bodies(world, one), bodies(world, two)) == (["0"], ["1"])

    @pytest.mark.parametrize("orderly", [True, False])
    def test_a_restart_backs_it_out_no_more_than_a_lost_connection_does(self, world, q, orderly):
        fill(world, 3)
        first = reserve(world, max_messages=2)
        world.restart() if orderly else world.crash()
        assert world.queue_depth(q) == 3
        assert got(world) == [("2", 0)]
        second = reserve(world, "job again")
        assert (second.reservation, second.offers) == (first.reservation, 1)
        assert read(world, second) == [(0, "0", 1), (1, "1", 1)]

    def test_what_is_not_persistent_survives_a_restart_while_it_is_reserved(self, world, q):
        fill(world, 3, persistence=0)
        reserve(world, max_messages=2)
        world.crash()
        made = reserve(world, "job again")
        assert bodies(world, made) == ["0", "1"]
        world.did(Release(reservation=made.reservation), "job again")
        world.restart()
        assert world.queue_depth(q) == 0


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"max_messages": 0}, Reason.OPTIONS_ERROR),
        ({"max_messages": 2**40}, Reason.OPTIONS_ERROR),
        ({"max_bytes": 0}, Reason.OPTIONS_ERROR),
        ({"consumer": " "}, Reason.ATTR_VALUE_ERROR),
        ({"consumer": "x" * 257}, Reason.ATTR_VALUE_ERROR),
        ({"token": "two\nlines"}, Reason.ATTR_VALUE_ERROR),
        ({"handle": 99}, Reason.HOBJ_ERROR),
    ],
)
def test_what_makes_no_sense_is_refused(world, q, change, reason):
    handle = world.open(q, IN)
    assert reason_of(world.do(Reserve(**{"handle": handle, "consumer": "JOB", **change}))) is reason


def test_it_needs_the_queue_open_for_input_and_gets_allowed(world, q):
    fill(world, 1)
    browsing = world.open(q, BROWSE)
    assert reason_of(world.do(Reserve(handle=browsing, consumer="JOB"))) is Reason.NOT_OPEN_FOR_INPUT
    handle = world.open(q, IN)
    world.did(Alter(object_type="QLOCAL", name=q, attributes={"inhibit_get": "inhibited"}), "operator")
    assert reason_of(world.do(Reserve(handle=handle, consumer="JOB"))) is Reason.GET_INHIBITED
