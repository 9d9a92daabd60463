"""An open queue in the hands of an application, against a real queue manager."""

import time

import pytest

import trigmon
from tests.client.conftest import ALL
from tests.daemons import define
from trigmon.client import queue as client_queue
from trigmon.mq.calls import Define, Display
from trigmon.mq.enums import MsgType, Persistence
from trigmon.mq.reasons import Reason


def depth(queue):
    return queue.inquire("current_q_depth")["current_q_depth"]


def test_a_message_comes_with_every_field_it_was_put_with(queue):
    before = time.time()
    receipt = queue.put(
        b"\x00\xffone",
        priority=7,
        persistence="persistent",
        expiry_tenths=600,
        msg_type="request",
        format="OURS",
        correl_id="order-1",
        reply_to_q="ANSWERS",
    )
    message = queue.get()
    assert (message.data, message.data_length) == (b"\x00\xffone", 5)
    assert (message.priority, message.persistence, message.format) == (7, Persistence.PERSISTENT, "OURS")
    assert (message.msg_type, message.reply_to_q) == (MsgType.REQUEST, "ANSWERS")
    assert message.correl_id == b"order-1".ljust(24, b"\0")
    assert 0 < message.expiry_tenths <= 600
    assert message.put_appl_name == "test"
    assert before - 1 < message.put_time.timestamp() < time.time() + 1
    assert (message.group_status, message.segment_status, message.warning) == (" ", " ", Reason.NONE)
    assert receipt.msg_id == message.msg_id
    assert (receipt.correl_id, receipt.priority, receipt.persistence) == (
        message.correl_id,
        7,
        Persistence.PERSISTENT,
    )
    assert receipt.put_ms == message.put_ms


def test_text_goes_as_utf8_and_comes_as_text(queue):
    queue.put("grüße €")
    message = queue.get()
    assert (message.text, message.format, message.data) == ("grüße €", "MQSTR", "grüße €".encode())


def test_a_put_that_completes_with_a_warning_says_so(queue):
    assert queue.put(b"", priority=12).warning is Reason.PRIORITY_EXCEEDS_MAXIMUM


def test_a_message_expires_unseen(queue):
    queue.put(b"short", expiry_tenths=1)
    time.sleep(0.15)
    with pytest.raises(trigmon.NoMsgAvailable):
        queue.get()


def test_a_get_may_wait_and_says_that_nothing_came(queue):
    began = time.monotonic()
    with pytest.raises(trigmon.NoMsgAvailable):
        queue.get(wait_interval_ms=100)
    assert time.monotonic() - began >= 0.09


def test_a_get_matches_the_fields_it_names(queue):
    ids = [queue.put(b"%d" % number, correl_id=f"c{number}").msg_id for number in range(3)]
    assert queue.get(match={"correl_id": "c2"}).data == b"2"
    assert queue.get(match={"msg_id": ids[1]}).data == b"1"
    with pytest.raises(trigmon.NoMsgAvailable):
        queue.get(match={"msg_id": ids[0], "correl_id": "c1"})


def test_a_message_that_is_too_long_stays_or_is_cut_as_the_caller_says(queue):
    queue.put(b"0123456789")
    with pytest.raises(trigmon.TruncatedMsgFailed, match="the message has 10 bytes and was left there"):
        queue.get(max_length=4)
    message = queue.get(max_length=4, accept_truncated_msg=True)
    assert (message.data, message.data_length, message.warning) == (b"0123", 10, Reason.TRUNCATED_MSG_ACCEPTED)
    assert depth(queue) == 0


def test_a_browse_shows_every_message_and_takes_none(queue):
    queue.put_many([b"1", b"2", b"3"])
    assert [message.data for message in queue.browse()] == [b"1", b"2", b"3"]
    assert [message.data for message in queue.browse()] == [b"1", b"2", b"3"]
    assert depth(queue) == 3


def test_the_message_under_the_cursor_can_be_taken(queue):
    queue.put_many([b"1", b"2", b"3"])
    for message in queue.browse():
        if message.data == b"2":
            queue.get(msg_under_cursor=True)
    assert [message.data for message in queue.browse()] == [b"1", b"3"]


def test_attributes_are_set_and_inquired_by_name(queue):
    queue.set(trigger_control="on", trigger_type="every", trigger_depth=7, inhibit_put="inhibited")
    names = ("trigger_control", "trigger_type", "trigger_depth", "inhibit_put", "open_input_count")
    assert queue.inquire(*names) == {
        "trigger_control": "on",
        "trigger_type": "every",
        "trigger_depth": 7,
        "inhibit_put": "inhibited",
        "open_input_count": 1,
    }
    assert {"max_q_depth", "current_q_depth", "description"} <= queue.inquire().keys()
    with pytest.raises(trigmon.PutInhibited):
        queue.put(b"")


def test_a_closed_queue_is_closed_once_and_used_no_more(qm, queue):
    queue.close()
    queue.close()
    assert repr(queue).endswith("of QM1, closed>")
    puts = (lambda: queue.put(b""), lambda: queue.put_many([b""]), lambda: queue.put_each([]))
    for use in (*puts, queue.get, queue.browse, queue.inquire):
        with pytest.raises(trigmon.HobjError, match="was closed"):
            use()
    assert qm.alive


def test_an_exception_in_a_queues_block_closes_it_and_stays_the_same(qm, q_name):
    with pytest.raises(ZeroDivisionError), qm.open(q_name, "input_exclusive"):
        _ = 1 / 0
    qm.open(q_name, "input_exclusive").close()


# -- many at once -------------------------------------------------------------------------------------------


def test_many_messages_keep_their_order_over_several_frames(qm, queue):
    bodies = [b"%d" % number for number in range(1000)]
    ids = queue.put_many(bodies, syncpoint=True)
    qm.commit()
    assert len(set(ids)) == 1000
    messages = [message for _ in range(4) for message in queue.get_many(250)]
    assert [message.data for message in messages] == bodies
    assert [message.msg_id for message in messages] == ids


def test_many_messages_belong_to_the_unit_of_work(qm, queue):
    queue.put_many([b"x"] * 600, syncpoint=True)
    qm.backout()
    assert depth(queue) == 0


def test_many_messages_may_be_longer_together_than_a_frame(queue):
    bodies = [bytes([number]) * 1_500_000 for number in range(6)]
    queue.put_many(iter(bodies))
    assert [message.data for message in queue.browse()] == bodies


def test_text_and_bytes_may_be_mixed_and_keep_their_formats(qm, q_name):
    qm.put_many(q_name, ["a", "b", b"c", "d"])
    with qm.open(q_name, "browse") as queue:
        assert [(message.data, message.format) for message in queue.browse()] == [
            (b"a", "MQSTR"),
            (b"b", "MQSTR"),
            (b"c", ""),
            (b"d", "MQSTR"),
        ]


def test_a_frame_is_put_whole_or_not_at_all(qm, monkeypatch):
    define(qm, "SMALL", max_q_depth=7)
    monkeypatch.setattr(client_queue, "FRAME_BODIES", 5)
    with pytest.raises(trigmon.QFull):
        qm.put_many("SMALL", [b"x"] * 12)
    (row,) = qm.call(Display(object_type="QLOCAL", name="SMALL")).rows
    assert row["current_q_depth"] == 5


def test_no_messages_are_no_call(queue):
    assert queue.put_many([]) == []
    assert queue.put_each([]) == []


def test_messages_with_options_of_their_own_belong_to_the_unit_of_work_in_their_order(qm, queue):
    queue.put_each(((b"%d" % n, {}) for n in range(50)), syncpoint=True)
    assert depth(queue) == 50
    qm.backout()
    assert depth(queue) == 0
    ids = queue.put_each(((b"%d" % n, {"correl_id": b"%d" % n}) for n in range(50)), syncpoint=True, format="OURS")
    qm.commit()
    messages = queue.get_many(100)
    assert [message.msg_id for message in messages] == ids
    assert [message.data for message in messages] == [message.correl_id.rstrip(b"\0") for message in messages]
    assert [int(message.data) for message in messages] == list(range(50))
    assert {message.format for message in messages} == {"OURS"}


def test_what_one_of_them_says_itself_is_stronger_than_what_all_say(queue):
    queue.put_each([("all's", {}), ("its own", {"priority": 5})], priority=3)
    assert [(message.text, message.priority) for message in queue.browse()] == [("its own", 5), ("all's", 3)]


def test_outside_syncpoint_nothing_is_put_behind_one_that_is_refused(qm):
    define(qm, "SHORT", max_msg_length=4)
    with qm.open("SHORT", "output", "browse") as queue:
        with pytest.raises(trigmon.MsgTooBigForQ):
            queue.put_each((b"x" * n, {}) for n in (1, 2, 9, 3))
        assert [len(message.data) for message in queue.browse()] == [1, 2]


def test_a_put_to_a_name_needs_no_open(qm, q_name):
    assert qm.put(q_name, b"one").msg_id
    assert qm.put1(q_name, "two").msg_id
    with qm.open(q_name, "input_shared") as queue:
        assert [message.data for message in queue.get_many(10)] == [b"one", b"two"]
        with pytest.raises(trigmon.NoMsgAvailable):
            queue.get_many(10)


# -- draining -----------------------------------------------------------------------------------------------


def test_a_queue_is_drained_to_its_end_with_a_commit_a_batch(qm, queue):
    queue.put_many([b"%d" % number for number in range(25)])
    units = []
    for message in queue.drain(batch=10):
        units.append(qm.unit)
        assert message.data == b"%d" % (len(units) - 1)
    assert units == [1] * 10 + [2] * 10 + [3] * 5
    assert depth(queue) == 0


def test_a_batch_is_committed_only_when_its_messages_were_consumed(queue, shared_daemon):
    queue.put_many([b"1", b"2", b"3"])
    draining = queue.drain(batch=2)
    next(draining), next(draining)
    with shared_daemon.connect() as other, other.open(queue.name, "browse") as seen:
        assert [message.data for message in seen.browse()] == [b"3"]
    assert queue.connection.unit == 1
    next(draining)
    assert queue.connection.unit == 2
    draining.close()
    assert [message.data for message in queue.drain()] == [b"3"]


def test_what_is_put_while_draining_is_committed_with_its_batch(qm, queue, q_name, shared_daemon):
    define(qm, f"{q_name}.OUT")
    queue.put_many([b"1", b"2", b"3"])
    for message in queue.drain(batch=2):
        qm.put(f"{q_name}.OUT", message.data, syncpoint=True)
    with shared_daemon.connect() as other, other.open(f"{q_name}.OUT", "browse") as out:
        assert [message.data for message in out.browse()] == [b"1", b"2", b"3"]


def test_leaving_the_loop_backs_the_batch_out(queue):
    queue.put_many([b"1", b"2", b"3"])
    for message in queue.drain(batch=2):
        if message.data == b"2":
            break
    assert [(m.data, m.backout_count) for m in queue.browse()] == [(b"1", 1), (b"2", 1), (b"3", 0)]


def test_a_loop_left_but_not_forgotten_loses_nothing_when_the_connection_ends_cleanly(qm, q_name, shared_daemon):
    qm.put_many(q_name, [b"1", b"2", b"3"])
    with shared_daemon.connect() as other:
        draining = other.open(q_name, "input_shared").drain(batch=2)
        next(draining)
    draining.close()
    with qm.open(q_name, "browse") as queue:
        assert [message.data for message in queue.browse()] == [b"1", b"2", b"3"]


def test_an_exception_while_draining_backs_out_its_batch_alone(qm, q_name, shared_daemon):
    qm.put_many(q_name, [b"1", b"2", b"3", b"4"])
    with pytest.raises(ZeroDivisionError), shared_daemon.connect() as other:
        for message in other.open(q_name, "input_shared").drain(batch=2):
            _ = 1 / (message.data != b"4")
    with qm.open(q_name, "browse") as queue:
        assert [message.data for message in queue.browse()] == [b"3", b"4"]


def test_a_backout_while_draining_gives_the_batch_back_and_it_comes_again(qm, queue):
    queue.put_many([b"1", b"2", b"3"])
    seen = []
    for message in queue.drain(batch=3):
        seen.append((message.data, message.backout_count))
        if seen == [(b"1", 0), (b"2", 0)]:
            qm.backout()
    assert seen == [(b"1", 0), (b"2", 0), (b"1", 1), (b"2", 1), (b"3", 1)]
    assert depth(queue) == 0


def test_draining_may_wait_for_the_end(queue, shared_daemon):
    queue.put(b"1")
    came = []
    for message in queue.drain(wait_interval_ms=300):
        came.append(message.data)
        if len(came) == 1:
            with shared_daemon.connect() as other:
                other.put(queue.name, b"2")
    assert came == [b"1", b"2"]


def test_every_use_at_once(qm, q_name):
    with qm.open(q_name, *ALL) as queue:
        queue.put(b"kept")
        queue.put(b"taken", priority=9)
        assert next(queue.browse()).data == queue.get(syncpoint=True).data == b"taken"
        qm.backout()
        assert [message.backout_count for message in queue.browse()] == [1, 0]


class TestDynamicQueues:
    def test_a_model_is_opened_as_a_queue_of_its_own_whose_name_others_may_use(self, qm, q_name, shared_daemon):
        qm.call(Define(object_type="QMODEL", name=f"{q_name}.MODEL"))
        with qm.open(f"{q_name}.MODEL", "input_shared", dynamic_q_name=f"{q_name}.*") as replies:
            assert replies.name == f"{q_name}.MODEL"
            assert replies.q_name.startswith(f"{q_name}.")
            assert len(replies.q_name) == len(q_name) + 17
            with shared_daemon.connect() as other:
                other.put(replies.q_name, b"answer")
                with pytest.raises(trigmon.PersistentNotAllowed):
                    other.put(replies.q_name, b"lasting", persistence="persistent")
            assert replies.get(wait_interval_ms=2000).data == b"answer"
        with pytest.raises(trigmon.UnknownObjectName):
            qm.put(replies.q_name, b"too late")

    def test_without_a_name_the_queue_manager_makes_one(self, qm, q_name):
        qm.call(Define(object_type="QMODEL", name=f"{q_name}.MODEL"))
        with qm.open(f"{q_name}.MODEL", "output") as made:
            assert made.q_name.startswith("AMQ.")
        with pytest.raises(trigmon.DynamicQNameError):
            qm.open(f"{q_name}.MODEL", "output", dynamic_q_name="A*B")

    def test_a_permanent_one_stays_until_it_is_deleted_by_its_close(self, qm, q_name):
        permanent = {"definition_type": "permanent_dynamic"}
        qm.call(Define(object_type="QMODEL", name=f"{q_name}.MODEL", attributes=permanent))
        made = qm.open(f"{q_name}.MODEL", "output", "input_shared", dynamic_q_name=f"{q_name}.KEPT")
        made.put(b"one")
        made.close()
        again = qm.open(f"{q_name}.KEPT", "input_shared", "inquire")
        assert again.inquire("definition_type") == permanent
        with pytest.raises(trigmon.QNotEmpty):
            again.close(delete=True)
        assert again.get(syncpoint=True).data == b"one"
        qm.backout()
        again.close(purge=True)
        with pytest.raises(trigmon.UnknownObjectName):
            qm.put(f"{q_name}.KEPT", b"too late")
        empty = qm.open(f"{q_name}.MODEL", "output", dynamic_q_name=f"{q_name}.EMPTY")
        empty.close(delete=True)
        with pytest.raises(trigmon.UnknownObjectName):
            qm.put(f"{q_name}.EMPTY", b"too late")

    def test_a_predefined_queue_is_not_deleted_by_its_close(self, queue):
        with pytest.raises(trigmon.OptionNotValidForType):
            queue.close(delete=True)
        assert depth(queue) == 0

    def test_it_ends_with_a_broken_link(self, qm, q_name, shared_daemon):
        qm.call(Define(object_type="QMODEL", name=f"{q_name}.MODEL"))
        other = shared_daemon.connect()
        made = other.open(f"{q_name}.MODEL", "input_shared", dynamic_q_name=f"{q_name}.LOST")
        mine = qm.open(made.q_name, "output")
        other.drop()
        deadline = time.monotonic() + 10
        with pytest.raises(trigmon.QDeleted):
            while time.monotonic() < deadline:
                mine.put(b"m")
        mine.close()
        with pytest.raises(trigmon.UnknownObjectName):
            qm.put(made.q_name, b"m")


def test_a_remote_queue_is_put_to_by_its_name_and_lies_on_its_transmission_queue(qm, q_name):
    define(qm, f"{q_name}.XMITQ", usage="transmission")
    to = {"remote_q_name": "ORDERS", "remote_q_mgr_name": "QM9", "xmit_q_name": f"{q_name}.XMITQ"}
    qm.call(Define(object_type="QREMOTE", name=f"{q_name}.R", attributes=to))
    receipt = qm.put(f"{q_name}.R", "hello", expiry_tenths=600)
    with qm.open(f"{q_name}.R", "output") as remote:
        assert remote.q_name == f"{q_name}.XMITQ"
        remote.put_many(["one", "two"])
    with qm.open(f"{q_name}.XMITQ", "input_shared") as waiting:
        message = waiting.get()
        assert (message.format, message.correl_id, message.data_length) == ("MQXMIT", receipt.msg_id, 433)
        assert (message.data[:4], message.data[8:56].rstrip(), message.data[428:]) == (b"XQH ", b"ORDERS", b"hello")
        assert [m.data[428:] for m in waiting.drain()] == [b"one", b"two"]
    with pytest.raises(trigmon.OptionNotValidForType):
        qm.open(f"{q_name}.R", "input_shared")


def test_a_receipt_says_where_in_its_group_a_message_stands(queue):
    one = queue.put(b"one", logical_order=True, msg_flags="msg_in_group")
    two = queue.put(b"two", logical_order=True, msg_flags=["msg_in_group", "segment"])
    three = queue.put(b"three", logical_order=True, msg_flags=["last_segment", "msg_in_group"])
    end = queue.put(b"end", logical_order=True, msg_flags="last_msg_in_group")
    assert [(r.msg_seq_number, r.offset) for r in (one, two, three, end)] == [(1, 0), (2, 0), (2, 3), (3, 0)]
    assert len({r.group_id for r in (one, two, three, end)}) == 1
    alone = queue.put(b"alone")
    assert (alone.group_id, alone.msg_seq_number, alone.offset) == (bytes(24), 1, 0)
    assert [queue.get().group_id for _ in range(5)] == [one.group_id] * 4 + [bytes(24)]


def test_a_receipt_warns_of_a_group_that_is_left_unfinished(queue):
    queue.put(b"one", logical_order=True, msg_flags="msg_in_group")
    with pytest.raises(trigmon.IncompleteGroup):
        queue.put(b"alone", logical_order=True)
    assert queue.put(b"alone").warning is Reason.INCOMPLETE_GROUP
    assert queue.put(b"alone", priority=12).warning is Reason.PRIORITY_EXCEEDS_MAXIMUM


def test_a_close_returns_its_warning_and_the_object_is_closed(qm, q_name):
    queue = qm.open(q_name, "output")
    queue.put(b"one", logical_order=True, msg_flags="msg_in_group")
    assert queue.close() is Reason.INCOMPLETE_GROUP
    assert queue.close() is Reason.NONE
    with pytest.raises(trigmon.HobjError):
        queue.put(b"two")
    with qm.open(q_name, "output") as queue:
        queue.put(b"one", logical_order=True, msg_flags="segment")
    with qm.open(q_name, "output") as queue:
        queue.put(b"one")
        assert queue.close() is Reason.NONE
