"""Conversations with a real daemon over its real socket."""

import threading
import time

import pytest

import trigmon
from tests.daemons import Raw, define
from trigmon.mq.calls import Display, Get, Open, Ping, Put, Status
from trigmon.mq.enums import GetOption, OpenOption
from trigmon.wire.codec import encode_request
from trigmon.wire.frames import frame


def depth(qm, name):
    (row,) = qm.call(Display(object_type="QLOCAL", name=name)).rows
    return row["current_q_depth"]


def test_what_is_put_is_got_in_order(qm):
    define(qm, "IN.ORDER")
    with qm.open("IN.ORDER", "input_shared", "output") as q:
        for number in range(20):
            q.put(b"%d" % number)
        assert [int(message.data) for message in q.drain()] == list(range(20))


def test_a_waiting_get_is_answered_by_another_connections_put(qm, shared_daemon):
    define(qm, "WAITED")
    got = []

    def wait():
        with shared_daemon.connect() as other, other.open("WAITED", "input_shared") as q:
            got.append(q.get(wait_interval_ms=10_000).data)

    waiter = threading.Thread(target=wait)
    waiter.start()
    while not qm.call(Status()).values["waiting_gets"]:
        time.sleep(0.01)
    qm.put("WAITED", b"at last")
    waiter.join(10)
    assert got == [b"at last"]


def test_a_wait_runs_out_at_its_interval(qm):
    define(qm, "EMPTY")
    with qm.open("EMPTY", "input_shared") as q:
        began = time.monotonic()
        with pytest.raises(trigmon.NoMsgAvailable):
            q.get(wait_interval_ms=300)
        assert 0.29 <= time.monotonic() - began < 2


def test_calls_sent_ahead_are_answered_in_their_order(qm, shared_daemon):
    define(qm, "AHEAD")
    numbers = list(range(1, 3001))
    with Raw(shared_daemon) as client:
        client.calls(Put(q_name="AHEAD", data=b"%d" % number) for number in numbers)
        assert [client.reply()[0] for _ in numbers] == numbers
    assert depth(qm, "AHEAD") == len(numbers)


def test_calls_behind_a_waiting_get_wait_for_its_answer(qm, shared_daemon):
    define(qm, "PARKED")
    with Raw(shared_daemon) as client:
        client.calls([Open(object_name="PARKED", options=int(OpenOption.INPUT_SHARED))])
        _, opened = client.reply()
        get = Get(handle=opened.handle, options=int(GetOption.WAIT), wait_interval_ms=10_000)
        # The put behind it would end this wait by itself, were it looked at before the answer.
        client.calls([get, Put(q_name="PARKED", data=b"second"), Ping()], first=2)
        time.sleep(0.2)
        assert depth(qm, "PARKED") == 0
        qm.put("PARKED", b"first")
        replies = [client.reply() for _ in range(3)]
    assert [number for number, _ in replies] == [2, 3, 4]
    assert replies[0][1].data == b"first"
    assert depth(qm, "PARKED") == 1


def test_an_unknown_call_is_refused_in_its_place_and_the_connection_goes_on(shared_daemon):
    with Raw(shared_daemon) as client:
        teleport = frame(b"\x92\x02\x92\xa8teleport\x01")
        client.send(encode_request(1, Ping()), teleport, encode_request(3, Ping()))
        replies = [client.reply() for _ in range(3)]
    assert [number for number, _ in replies] == [1, 2, 3]
    assert replies[1][1].reason == trigmon.Reason.FUNCTION_NOT_SUPPORTED
    assert "teleport" in replies[1][1].about


def test_a_lost_connection_is_backed_out_and_its_queues_closed(qm, shared_daemon):
    define(qm, "LOST")
    qm.put("LOST", b"still there")
    other = shared_daemon.connect()
    with_it = other.open("LOST", "input_exclusive")
    with_it.get(syncpoint=True)
    other.drop()
    with qm.open("LOST", "input_exclusive") as q:
        message = q.get(wait_interval_ms=5000)
    assert message.data == b"still there"
    assert message.backout_count == 1


def test_a_message_too_long_is_refused_and_nothing_is_lost(qm):
    define(qm, "SHORT", max_msg_length=10)
    with pytest.raises(trigmon.MsgTooBigForQ):
        qm.put("SHORT", b"x" * 11)
    with pytest.raises(trigmon.MsgTooBigForQMgr):
        qm.put("SHORT", b"x" * 5_000_000)
    qm.put("SHORT", b"x" * 10)
    assert depth(qm, "SHORT") == 1


def test_a_longer_message_is_let_in_once_the_queue_manager_allows_it(daemon):
    one = daemon()
    with one.connect() as qm:
        qm.call(trigmon.mq.calls.Alter(object_type="QMGR", name="", attributes={"max_msg_length": 20_000_000}))
        define(qm, "LONG", max_msg_length=20_000_000)
    with one.connect() as qm, qm.open("LONG", "input_shared", "output") as q:
        q.put(b"y" * 10_000_000)
        assert len(q.get().data) == 10_000_000


def test_a_queue_at_maxdepth_refuses_the_next_put_and_keeps_what_it_has(qm):
    define(qm, "FULL", max_q_depth=3)
    with qm.open("FULL", "input_shared", "output") as q:
        for number in range(3):
            q.put(b"%d" % number)
        with pytest.raises(trigmon.QFull):
            q.put(b"one too many")
        assert [message.data for message in q.drain()] == [b"0", b"1", b"2"]


def test_a_hello_of_another_protocol_is_answered_with_both_versions(shared_daemon):
    from trigmon.wire import codec

    with Raw(shared_daemon, hello=False) as client:
        client.send(codec.encode_hello(codec.Hello(protocol=99)))
        refusal = codec.decode_welcome(client.body())
        assert refusal.reason == trigmon.Reason.FUNCTION_NOT_SUPPORTED
        assert "99" in refusal.about
        assert client.is_cut()
