"""An open queue in the hands of an application, against a real queue manager."""

import time

import pytest

import trigmon
from tests.client.conftest import ALL, depth
from trigmon.mq.enums import MsgType, Persistence
from trigmon.mq.reasons import Reason


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


def test_a_put_to_a_name_needs_no_open(qm, q_name):
    assert qm.put(q_name, b"one").msg_id
    assert qm.put1(q_name, "two").msg_id
    with qm.open(q_name, "input_shared") as queue:
        assert [message.data for message in queue.get_many(10)] == [b"one", b"two"]
        with pytest.raises(trigmon.NoMsgAvailable):
            queue.get_many(10)


def test_every_use_at_once(qm, q_name):
    with qm.open(q_name, *ALL) as queue:
        queue.put(b"kept")
        queue.put(b"taken", priority=9)
        assert next(queue.browse()).data == queue.get(syncpoint=True).data == b"taken"
        qm.backout()
        assert [message.backout_count for message in queue.browse()] == [1, 0]


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
