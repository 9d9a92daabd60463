"""What every store must do with reservations: a fixed batch, hidden, read again, settled, given back, and restarts."""

from __future__ import annotations

import pytest

from trigmon.mq.calls import (
    Alter,
    Clear,
    Close,
    DeadLetters,
    Delete,
    Disconnect,
    Display,
    Explain,
    Get,
    Open,
    Put,
    PutMany,
    ReadReserved,
    Refresh,
    Reject,
    Release,
    Reservations,
    Reserve,
    RetryDeadLetters,
    Settle,
)
from trigmon.mq.descriptors import FORMAT_DEAD_LETTER, MessageDescriptor, padded_id, unpack_dlh
from trigmon.mq.enums import CloseOption, GetOption, MsgFlag, OpenOption, ReportOption
from trigmon.mq.reasons import Reason
from trigmon.mq.rejection import Rejection, with_rejection, without_rejection
from trigmon.mq.replies import Refused, WasGot
from trigmon.qmgr.sessions import Identity
from trigmon.rules.model.stored_messages import SLICE
from trigmon.store.base import KEPT_RESERVATIONS

IN, OUT, BROWSE = OpenOption.INPUT_SHARED, OpenOption.OUTPUT, OpenOption.BROWSE


@pytest.fixture
def q(world):
    world.define("Q", def_persistence="persistent", max_q_depth=999_999)
    return "Q"


def fill(world, count, q_name="Q", **fields):
    for number in range(count):
        world.put(q_name, b"%d" % number, **fields)


def reserve(world, as_="job", consumer="JOB", q_name="Q", **wanted):
    """The whole batch."""
    handle = world.open(q_name, IN, as_=as_)
    while (made := world.did(Reserve(handle=handle, consumer=consumer, **wanted), as_)).more:
        pass
    return made


def read(world, made, as_="reader", ordinal=0, count=100_000):
    """What is left, as (ordinal, body, backout count)."""
    found = []
    while True:
        reply = world.did(ReadReserved(reservation=made.reservation, ordinal=ordinal, count=count), as_)
        messages = zip(reply.ordinals, reply.messages, strict=True)
        found += [(at, message.data.decode(), message.descriptor.backout_count) for at, message in messages]
        if not reply.more:
            return found
        count, ordinal = ordinal + count - reply.ordinal, reply.ordinal


def bodies(world, made, **how):
    return [body for _, body, _ in read(world, made, **how)]


def got(world, as_="getter", q_name="Q"):
    """What a getter finds."""
    handle = world.open(q_name, IN, as_=as_)
    found = []
    while isinstance(reply := world.do(Get(handle=handle), as_), WasGot):
        found.append((reply.data.decode(), reply.descriptor.backout_count))
    world.did(Close(handle=handle), as_)
    return found


def lose(world, *names):
    for name in names:
        world.qm.lost([world.sessions.pop(name)])


def sweep(world):
    while world.qm.housekeeping.is_scanning:
        world.qm.housekeeping.scan()


def reason_of(reply):
    assert isinstance(reply, Refused), reply
    return Reason(reply.reason)


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
        world.did(PutMany(q_name=q, bodies=[b"%d" % n for n in range(2 * SLICE + 10)]))
        handle = world.open(q, IN, as_="job")
        call = Reserve(handle=handle, consumer="JOB")
        first = world.did(call, "job")
        assert (first.more, first.count) == (True, SLICE)
        early = world.do(ReadReserved(reservation=first.reservation), "reader")
        assert reason_of(early) is Reason.COMMAND_FAILED
        assert [world.did(call, "job").count for _ in range(2)] == [2 * SLICE, 2 * SLICE + 10]
        again = world.did(call, "job")
        assert (again.again, again.more, again.offers) == (True, False, 0)
        assert bodies(world, first) == [str(n) for n in range(2 * SLICE + 10)]

    def test_one_that_was_being_made_goes_on_with_the_next_connection_and_is_not_offered_anew(self, world, q):
        world.did(PutMany(q_name=q, bodies=[b"x"] * (SLICE + 1)))
        handle = world.open(q, IN, as_="job")
        first = world.did(Reserve(handle=handle, consumer="JOB"), "job")
        lose(world, "job")
        made = reserve(world, "other")
        assert (made.reservation, made.count, made.offers) == (first.reservation, SLICE + 1, 0)

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


class TestSettling:
    def test_it_removes_the_batch_and_nothing_else_and_is_as_good_twice(self, world, q):
        fill(world, 4)
        made = reserve(world, max_messages=3)
        call = Settle(reservation=made.reservation)
        assert [(r.count, r.left, r.already) for r in (world.did(call, "job"), world.did(call, "any"))] == [
            (3, 0, False),
            (0, 0, True),
        ]
        assert got(world) == [("3", 0)]
        assert world.did(Reservations()).rows == []

    def test_a_part_of_it_is_settled_and_the_rest_keeps_its_ordinals(self, world, q):
        fill(world, 6)
        made = reserve(world)
        part = Settle(reservation=made.reservation, ordinal=1, count=3)
        assert (world.did(part, "job").count, world.did(part, "job").already) == (3, True)
        assert read(world, made) == [(0, "0", 0), (4, "4", 0), (5, "5", 0)]
        lose(world, "job", "reader")
        assert world.queue_depth(q) == 3
        assert reserve(world).left_ordinals == [[0, 1], [4, 6]]
        assert world.did(Settle(reservation=made.reservation), "job").left == 0

    def test_it_falls_into_no_more_pieces_than_can_be_written_at_each_step(self, world, q, monkeypatch):
        monkeypatch.setattr("trigmon.rules.reservations.find_reservation.MOST_STRETCHES", 2)
        world.define("ASIDE")
        world.did(Alter(object_type="QLOCAL", name=q, attributes={"boqname": "ASIDE"}), "operator")
        fill(world, 7)
        made = reserve(world)
        for ordinal in (1, 3):
            world.did(Settle(reservation=made.reservation, ordinal=ordinal, count=1), "job")
        one_more = {"reservation": made.reservation, "ordinal": 5}
        for call in (Settle(count=1, **one_more), Release(count=1, **one_more), Reject(**one_more)):
            assert reason_of(world.do(call, "job")) is Reason.SYNCPOINT_LIMIT_REACHED
        assert bodies(world, made) == ["0", "2", "4", "5", "6"]
        assert world.did(Settle(reservation=made.reservation), "job").left == 0

    def test_a_large_one_is_settled_at_once_and_its_rows_go_slice_by_slice_over_a_restart(self, world, q):
        count = 3 * SLICE
        world.did(PutMany(q_name=q, bodies=[b"x"] * count))
        made = reserve(world)
        reply = world.did(Settle(reservation=made.reservation), "job")
        assert (reply.count, reply.left) == (count, 0)
        assert world.qm.housekeeping.is_scanning
        world.crash()
        assert world.did(Settle(reservation=made.reservation), "job").already
        assert (world.queue_depth(q), got(world)) == (0, [])
        sweep(world)
        assert world.store.standing.reservations == {}
        world.restart()
        assert world.queue_depth(q) == 0

    def test_an_ended_one_is_remembered_and_others_were_never_there(self, world, q):
        made = []
        for _ in range(KEPT_RESERVATIONS + 1):
            fill(world, 1)
            made.append(reserve(world).reservation)
            world.did(Settle(reservation=made[-1]), "job")
        assert reason_of(world.do(Settle(reservation=made[0]))) is Reason.UNKNOWN_OBJECT_NAME
        world.crash()
        assert all(world.did(Settle(reservation=number)).already for number in made[1:])
        assert reason_of(world.do(Settle(reservation=12345))) is Reason.UNKNOWN_OBJECT_NAME
        assert reason_of(world.do(ReadReserved(reservation=made[-1]))) is Reason.UNIT_OF_WORK_NOT_STARTED
        assert reason_of(world.do(Release(reservation=made[-1]))) is Reason.UNIT_OF_WORK_NOT_STARTED


class TestGivingBack:
    def test_messages_go_to_their_places_and_their_counts_rise_by_one_and_each_offer(self, world, q):
        fill(world, 3)
        reserve(world, max_messages=2)
        lose(world, "job")
        made = reserve(world, "job again")
        assert world.did(Release(reservation=made.reservation), "job again").count == 2
        assert got(world) == [("0", 2), ("1", 2), ("2", 0)]

    def test_or_do_not_rise(self, world, q):
        fill(world, 2)
        reserve(world)
        lose(world, "job")
        made = reserve(world, "job again")
        world.did(Release(reservation=made.reservation, counts=False), "job again")
        assert got(world) == [("0", 0), ("1", 0)]

    def test_a_part_of_it_goes_back_and_the_rest_stays_reserved(self, world, q):
        fill(world, 4)
        made = reserve(world)
        world.did(Release(reservation=made.reservation, ordinal=2, count=1), "job")
        assert (world.queue_depth(q), got(world)) == (1, [("2", 1)])
        assert bodies(world, made) == ["0", "1", "3"]

    def test_who_waits_for_a_message_is_given_it(self, world, q):
        fill(world, 1)
        made = reserve(world)
        handle = world.open(q, IN, as_="waiter")
        assert world.do(Get(handle=handle, options=GetOption.WAIT, wait_interval_ms=-1), "waiter") is None
        world.did(Release(reservation=made.reservation), "job")
        assert [answer.reply.data for answer in world.ended_waits] == [b"0"]

    def test_a_large_one_goes_back_slice_by_slice_over_a_crash_and_nothing_comes_twice(self, world, q):
        count = 3 * SLICE
        world.did(PutMany(q_name=q, bodies=[b"%d" % n for n in range(count)]))
        made = reserve(world)
        world.did(Release(reservation=made.reservation), "job")
        assert world.queue_depth(q) == count
        first = got(world)
        world.crash()
        sweep(world)
        assert [body for body, _ in first + got(world)] == [str(n) for n in range(count)]

    def test_it_cannot_be_settled_any_more(self, world, q):
        fill(world, 1)
        made = reserve(world)
        world.did(Release(reservation=made.reservation), "job")
        assert reason_of(world.do(Settle(reservation=made.reservation), "job")) is Reason.BACKED_OUT
        assert world.did(Release(reservation=made.reservation), "job").already

    def test_only_its_holder_or_an_administrator_gives_back_what_is_held(self, world, q):
        fill(world, 2)
        made = reserve(world)
        stranger = "stranger"
        world.sessions[stranger] = world.qm.connect(Identity(client_id=stranger, application=stranger))
        call = Release(reservation=made.reservation, ordinal=0, count=1)
        assert reason_of(world.do(call, stranger)) is Reason.NOT_AUTHORIZED
        assert world.did(call, "operator").count == 1
        lose(world, "job")
        assert world.did(Release(reservation=made.reservation), stranger).count == 1


class TestRejecting:
    def test_one_message_goes_to_the_backout_queue_as_poison_does_and_the_rest_stays(self, world, q):
        world.define("ASIDE")
        world.did(Alter(object_type="QLOCAL", name=q, attributes={"backout_requeue_q_name": "ASIDE"}), "operator")
        fill(world, 3)
        reserve(world)
        lose(world, "job")
        made = reserve(world, "job again")
        reply = world.did(Reject(reservation=made.reservation, ordinal=1, why="no such airline"), "job again")
        assert (reply.count, reply.left) == (1, 2)
        assert [(at, body) for at, body, _ in read(world, made)] == [(0, "0"), (2, "2")]
        handle = world.open("ASIDE", IN)
        aside = world.did(Get(handle=handle))
        before, data, said = without_rejection(aside.descriptor, aside.data)
        assert (data, before.backout_count, before.appl_origin_data) == (b"1", 0, "BO1")
        assert (said.why, said.q_name, said.ms) == ("no such airline", q, world.clock.now())
        assert world.telling.aside[-1].why == "no such airline"
        lose(world, "job again", "reader")
        assert world.queue_depth(q) == 2

    def test_without_one_it_goes_to_the_dead_letter_queue_behind_its_header(self, world, q):
        world.define("DEAD")
        world.did(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": "DEAD"}), "operator")
        fill(world, 1)
        made = reserve(world)
        assert world.did(Reject(reservation=made.reservation, ordinal=0, why="no such airline"), "job").left == 0
        dead = world.did(Get(handle=world.open("DEAD", IN)))
        header, rest = unpack_dlh(dead.data)
        assert dead.descriptor.format.rstrip() == FORMAT_DEAD_LETTER
        assert (header.reason, header.dest_q_name) == (Reason.BACKOUT_THRESHOLD_REACHED, q)
        behind = MessageDescriptor(
            format=header.format, encoding=header.encoding, coded_char_set_id=header.coded_char_set_id
        )
        _, data, said = without_rejection(behind, rest)
        assert (data, said.why) == (b"0", "no such airline")
        assert world.did(Settle(reservation=made.reservation), "job").already

    @pytest.mark.parametrize("boq", ["ASIDE", ""])
    def test_the_reason_given_is_shown_and_the_message_goes_back_exactly_as_it_was(self, world, q, boq):
        world.define("ASIDE")
        world.define("DEAD")
        world.did(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": "DEAD"}), "operator")
        world.did(Alter(object_type="QLOCAL", name=q, attributes={"backout_requeue_q_name": boq}), "operator")
        put = MessageDescriptor(format="MQHRF2", encoding=0x111, coded_char_set_id=819, correl_id=b"c" * 24)
        body = with_rejection(put, b"a header of its own", Rejection(why="theirs", q_name="X", ms=1))[1]
        world.did(Put(q_name=q, data=body, descriptor=put), "loader")
        made = reserve(world)
        world.did(Reject(reservation=made.reservation, ordinal=0, why="no such airline"), "job")
        call = DeadLetters(q_name=boq, with_data=True)
        (row,) = world.did(call, "operator").rows
        assert (row["said"], row["data"], row["length"]) == ("no such airline", body, len(body))
        assert (row["format"], row["dest_q_name"], row["dead_ms"]) == ("MQHRF2", q, world.clock.now())
        assert world.did(RetryDeadLetters(q_name=boq), "operator").count == 1
        lose(world, "job")
        back = world.did(Get(handle=world.open(q, IN)))
        kept = ("format", "encoding", "coded_char_set_id", "correl_id", "appl_origin_data", "backout_count")
        assert back.data == body
        assert [getattr(back.descriptor, name) for name in kept] == ["MQHRF2", 0x111, 819, b"c" * 24, "", 0]

    def test_a_reason_for_which_the_backout_queue_has_no_room_stands_in_the_log_alone(self, world, q):
        world.define("ASIDE", max_msg_length=10)
        world.did(Alter(object_type="QLOCAL", name=q, attributes={"backout_requeue_q_name": "ASIDE"}), "operator")
        fill(world, 1)
        made = reserve(world)
        world.did(Reject(reservation=made.reservation, ordinal=0, why="no such airline"), "job")
        assert world.did(Get(handle=world.open("ASIDE", IN))).data == b"0"
        assert world.telling.aside[-1].why == "no such airline"

    def test_a_segment_is_set_aside_as_it_is_for_its_length_is_the_next_one_s_offset(self, world, q):
        world.define("ASIDE")
        world.did(Alter(object_type="QLOCAL", name=q, attributes={"backout_requeue_q_name": "ASIDE"}), "operator")
        for offset, body, flags in ((0, b"one", MsgFlag.SEGMENT), (3, b"two", MsgFlag.LAST_SEGMENT)):
            part = MessageDescriptor(group_id=b"g" * 24, offset=offset, msg_flags=int(flags))
            world.did(Put(q_name=q, data=body, descriptor=part), "loader")
        made = reserve(world)
        for ordinal in range(2):
            world.did(Reject(reservation=made.reservation, ordinal=ordinal, why="bad"), "job")
        whole = Get(handle=world.open("ASIDE", IN), options=int(GetOption.COMPLETE_MSG))
        assert world.did(whole).data == b"onetwo"

    def test_where_no_queue_takes_it_it_stays(self, world, q):
        fill(world, 1)
        made = reserve(world)
        refused = world.do(Reject(reservation=made.reservation, ordinal=0), "job")
        assert reason_of(refused) is Reason.COMMAND_FAILED
        assert bodies(world, made) == ["0"]

    def test_what_is_not_there_any_more_cannot_be_rejected(self, world, q):
        fill(world, 2)
        made = reserve(world)
        world.did(Settle(reservation=made.reservation, ordinal=0, count=1), "job")
        for ordinal in (0, 2, -1):
            refused = world.do(Reject(reservation=made.reservation, ordinal=ordinal), "job")
            assert reason_of(refused) is Reason.OPTIONS_ERROR

    def test_poison_is_put_aside_on_the_way_where_the_queue_says_so_and_else_reserved(self, world):
        world.define("ASIDE", max_q_depth=1)
        poisoned = {"backout_threshold": 1, "backout_requeue_q_name": "ASIDE", "backout_requeue": "qmgr"}
        world.define("Q", def_persistence="persistent", **poisoned)
        fill(world, 3)
        made = reserve(world, max_messages=2)
        world.did(Release(reservation=made.reservation), "job")
        assert bodies(world, reserve(world)) == ["1", "2"]
        assert world.queue_depth("ASIDE") == 1


class TestTheQueue:
    def test_clear_and_delete_are_refused_while_it_is_reserved_and_purge_takes_what_nobody_holds(self, world, q):
        fill(world, 2)
        reserve(world, max_messages=1)
        world.did(Close(handle=world.store.standing.connections[world.session("job").connection].handles[0]), "job")
        purge = Delete(object_type="QLOCAL", name=q, purge=True)
        assert reason_of(world.do(purge, "operator")) is Reason.Q_NOT_EMPTY
        lose(world, "job")
        assert reason_of(world.do(Clear(q_name=q), "operator")) is Reason.Q_NOT_EMPTY
        world.did(purge, "operator")
        assert world.did(Reservations()).rows == []
        world.restart()
        world.define(q)
        assert world.queue_depth(q) == 0

    def test_what_was_settled_and_not_swept_goes_with_its_queue(self, world, q):
        world.did(PutMany(q_name=q, bodies=[b"x"] * 3 * SLICE))
        made = reserve(world)
        world.did(Settle(reservation=made.reservation), "job")
        lose(world, "job")
        world.did(Delete(object_type="QLOCAL", name=q), "operator")
        sweep(world)
        assert world.store.standing.reservations == {}

    def test_a_permanent_dynamic_queue_is_not_deleted_by_closing_while_it_is_reserved(self, world):
        world.define("M", "QMODEL", definition_type="permanent_dynamic", def_persistence="persistent")
        options = int(IN | OUT)
        handle = world.did(Open(object_name="M", options=options, dynamic_q_name="DYN"), "job").handle
        world.did(Put(handle=handle, data=b"x"), "job")
        world.did(Reserve(handle=handle, consumer="JOB"), "job")
        refused = world.do(Close(handle=handle, options=int(CloseOption.DELETE_PURGE)), "job")
        assert reason_of(refused) is Reason.Q_NOT_EMPTY

    def test_a_temporary_dynamic_queue_has_no_reservations(self, world):
        world.define("M", "QMODEL")
        handle = world.did(Open(object_name="M", options=int(IN | OUT), dynamic_q_name="T"), "job").handle
        world.did(Put(handle=handle, data=b"x"), "job")
        assert reason_of(world.do(Reserve(handle=handle, consumer="JOB"), "job")) is Reason.Q_TYPE_ERROR

    def test_the_row_of_display_says_that_work_is_uncommitted(self, world, q):
        fill(world, 1)
        reserve(world)
        assert world.did(Display(object_type="QLOCAL", name=q)).rows[0]["uncommitted_msgs"] == 1


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
