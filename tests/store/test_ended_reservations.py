"""What every store must do as a reservation ends: settled, given back, set aside, or gone with its queue."""

from __future__ import annotations

import pytest

from tests.store.reserving import IN, OUT, bodies, fill, got, lose, read, reason_of, reserve, sweep
from trigmon.mq.calls import (
    Alter,
    Clear,
    Close,
    DeadLetters,
    Delete,
    Display,
    Get,
    Open,
    Put,
    PutMany,
    ReadReserved,
    Reject,
    Release,
    Reservations,
    Reserve,
    RetryDeadLetters,
    Settle,
)
from trigmon.mq.descriptors import FORMAT_DEAD_LETTER, MessageDescriptor, unpack_dlh
from trigmon.mq.enums import CloseOption, GetOption, MsgFlag
from trigmon.mq.reasons import Reason
from trigmon.mq.rejection import Rejection, with_rejection, without_rejection
from trigmon.qmgr.sessions import Identity
from trigmon.rules.model.stored_messages import LARGE_SLICE
from trigmon.store.base import KEPT_RESERVATIONS


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
        count = 3 * LARGE_SLICE
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
        count = 3 * LARGE_SLICE
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
        world.did(PutMany(q_name=q, bodies=[b"x"] * 3 * LARGE_SLICE))
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
