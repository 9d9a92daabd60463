"""Many messages at once through an open queue: put, got in batches, and drained, against a real queue manager."""

import pytest

import trigmon
from tests.client.conftest import depth
from tests.daemons import define
from trigmon.client import queue as client_queue
from trigmon.mq.calls import Display


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
