"""MQCB and MQCTL of the C library: its thread gets the messages and calls the program."""

from __future__ import annotations

import ctypes
import queue

import pytest

from tests.mqi.mqi_calls import CALLBACK, INPUT, OUTPUT, SET, SYNCPOINT, WAIT, Block

START, STOP, SUSPEND, RESUME, REGISTER, DEREGISTER = 0x1, 0x4, 0x10000, 0x20000, 0x100, 0x200
REGISTER_CALL, START_CALL, STOP_CALL, DEREGISTER_CALL, REMOVED = 3, 1, 2, 4, 6
ALL_CALLS = 0x1 | 0x4 | 0x100 | 0x200
PATIENCE_S = 30
FOR_EVER = Block("MQGMO", Options=WAIT, WaitInterval=-1)
EVENT, GET_INHIBITED = 5, 2016


class Consumer:
    """A program's callback, and what it was called with: (call type, handle, reason, data)."""

    def __init__(self, also=None):
        self.calls = queue.Queue()
        self.also = also
        self.function = CALLBACK(self._called)

    def _called(self, hconn, md, gmo, buffer, context):
        call_type, hobj = (int.from_bytes(context[at : at + 4], "little") for at in (8, 12))
        reason, length = (int.from_bytes(context[at : at + 4], "little") for at in (36, 44))
        self.calls.put((call_type, hobj, reason, ctypes.string_at(buffer, length) if buffer else b""))
        if self.also and buffer:
            self.also(hconn)

    def description(self, options=0, longest=-1):
        address = ctypes.cast(self.function, ctypes.c_void_p).value
        return Block("MQCBD", Options=options, CallbackFunction=address, MaxMsgLength=longest)

    def next(self):
        return self.calls.get(timeout=PATIENCE_S)


@pytest.fixture
def hconn(mqi):
    hconn = mqi.shared()
    yield hconn
    mqi.call("MQDISC", ctypes.byref(ctypes.c_int32(hconn)))


@pytest.fixture
def sender(mqi):
    hconn = mqi.shared()
    yield hconn
    mqi.disconnect(hconn)


def register(mqi, hconn, hobj, consumer, options=0, interval=-1):
    arguments = (
        consumer.description(),
        hobj,
        Block("MQMD"),
        Block("MQGMO", Options=options | WAIT, WaitInterval=interval),
    )
    mqi.ask("MQCB", hconn, REGISTER, *arguments)


def test_messages_of_two_queues_come_to_their_consumers_in_order(mqi, hconn, sender, q_name, qm):
    from tests.daemons import define

    define(qm, q_name + ".B")
    names = (q_name, q_name + ".B")
    hobjs, outs = [mqi.open(hconn, name, INPUT) for name in names], [mqi.open(sender, name, OUTPUT) for name in names]
    consumers = [Consumer(), Consumer()]
    for hobj, consumer in zip(hobjs, consumers, strict=True):
        register(mqi, hconn, hobj, consumer)
    mqi.ask("MQCTL", hconn, START, Block("MQCTLO"))
    for number in range(5):
        for out in outs:
            mqi.put(sender, out, b"%d" % number)
    for hobj, consumer in zip(hobjs, consumers, strict=True):
        assert [consumer.next() for _ in range(5)] == [(REMOVED, hobj, 0, b"%d" % number) for number in range(5)]
    assert mqi.call("MQCMIT", hconn) == (2, 2500)
    mqi.ask("MQCTL", hconn, STOP, Block("MQCTLO"))
    assert mqi.call("MQCMIT", hconn) == (0, 0)


def test_a_callback_may_call_its_connection_and_a_long_message_comes_whole(mqi, hconn, sender, q_name):
    hobj, out = mqi.open(hconn, q_name, INPUT), mqi.open(sender, q_name, OUTPUT)
    consumer = Consumer(also=lambda own: mqi.ask("MQCMIT", own))
    register(mqi, hconn, hobj, consumer, SYNCPOINT)
    mqi.ask("MQCTL", hconn, START, None)
    mqi.put(sender, out, b"x" * 300_000)
    mqi.put(sender, out, b"y")
    assert [len(consumer.next()[3]) for _ in range(2)] == [300_000, 1]
    mqi.ask("MQCTL", hconn, STOP, None)
    mqi.ask("MQBACK", hconn)
    assert mqi.call("MQGET", hconn, hobj, Block("MQMD"), Block("MQGMO"), 0, None, None) == (2, 2033)


def test_a_program_is_called_at_each_step_that_it_asked_for(mqi, hconn, q_name):
    hobj, consumer = mqi.open(hconn, q_name, INPUT), Consumer()
    mqi.ask("MQCB", hconn, REGISTER, consumer.description(ALL_CALLS), hobj, Block("MQMD"), FOR_EVER)
    mqi.ask("MQCTL", hconn, START, None)
    mqi.ask("MQCTL", hconn, STOP, None)
    mqi.ask("MQCB", hconn, DEREGISTER, None, hobj, None, None)
    told = [consumer.next()[0] for _ in range(4)]
    assert told == [REGISTER_CALL, START_CALL, STOP_CALL, DEREGISTER_CALL]
    assert mqi.call("MQCB", hconn, DEREGISTER, None, hobj, None, None) == (2, 2448)
    assert mqi.call("MQCTL", hconn, START, None) == (2, 2446)


def test_a_suspended_connection_takes_calls_and_gets_nothing_until_it_is_resumed(mqi, hconn, sender, q_name):
    hobj, out, consumer = mqi.open(hconn, q_name, INPUT), mqi.open(sender, q_name, OUTPUT), Consumer()
    register(mqi, hconn, hobj, consumer)
    mqi.ask("MQCTL", hconn, START, None)
    mqi.ask("MQCTL", hconn, SUSPEND, None)
    mqi.put(sender, out, b"by hand")
    assert mqi.get(hconn, hobj).data == b"by hand"
    mqi.put(sender, out, b"by callback")
    mqi.ask("MQCTL", hconn, RESUME, None)
    assert consumer.next()[3] == b"by callback"
    assert consumer.calls.empty()
    mqi.disconnect(hconn)


def test_a_program_is_called_once_where_no_message_came_in_its_interval_and_again_behind_the_next_message(
    mqi, hconn, sender, q_name
):
    hobj, out, consumer = mqi.open(hconn, q_name, INPUT), mqi.open(sender, q_name, OUTPUT), Consumer()
    register(mqi, hconn, hobj, consumer, interval=0)
    mqi.ask("MQCTL", hconn, START, None)
    assert consumer.next() == (EVENT, hobj, 2033, b"")
    mqi.put(sender, out, b"one")
    assert consumer.next() == (REMOVED, hobj, 0, b"one")
    assert consumer.next() == (EVENT, hobj, 2033, b"")
    assert consumer.calls.empty()
    mqi.disconnect(hconn)


def test_a_consumer_whose_get_fails_is_called_with_the_reason_and_suspended_until_it_is_resumed(
    mqi, hconn, sender, q_name
):
    hobj, out, consumer = mqi.open(hconn, q_name, INPUT), mqi.open(sender, q_name, OUTPUT | SET), Consumer()
    mqi.set(sender, out, {9: 1})
    register(mqi, hconn, hobj, consumer)
    mqi.ask("MQCTL", hconn, START, None)
    assert consumer.next() == (EVENT, hobj, GET_INHIBITED, b"")
    mqi.set(sender, out, {9: 0})
    mqi.put(sender, out, b"one")
    mqi.ask("MQCTL", hconn, SUSPEND, None)
    assert consumer.calls.empty()
    mqi.ask("MQCB", hconn, RESUME, None, hobj, None, None)
    mqi.ask("MQCTL", hconn, RESUME, None)
    assert consumer.next() == (REMOVED, hobj, 0, b"one")
    mqi.disconnect(hconn)


def test_what_cannot_be_registered_is_refused_by_its_own_reason(mqi, hconn, q_name):
    hobj, consumer = mqi.open(hconn, q_name, INPUT), Consumer()
    md, gmo = Block("MQMD"), Block("MQGMO")
    assert mqi.call("MQCB", hconn, REGISTER, Block("MQCBD"), hobj, md, gmo) == (2, 2486)
    assert mqi.call("MQCB", hconn, REGISTER, Block("MQBO"), hobj, md, gmo) == (2, 2444)
    assert mqi.call("MQCB", hconn, REGISTER, consumer.description(), 4711, md, gmo) == (2, 2019)
    assert mqi.call("MQCB", hconn, REGISTER, consumer.description(), hobj, gmo, gmo) == (2, 2026)
    assert mqi.call("MQCB", hconn, 0, consumer.description(), hobj, md, gmo) == (2, 2488)
    assert mqi.call("MQCTL", hconn, START, Block("MQBO")) == (2, 2445)
    assert mqi.call("MQCTL", hconn, 7, None) == (2, 2488)
    assert mqi.call("MQCTL", hconn, SUSPEND, None) == (2, 2534)
    assert mqi.call("MQCTL", hconn, RESUME, None) == (2, 2534)


def test_a_callback_that_stops_consumption_is_the_last_one(mqi, hconn, sender, q_name, qm):
    from tests.daemons import define

    define(qm, q_name + ".B")
    names = (q_name, q_name + ".B")
    hobjs = [mqi.open(hconn, name, INPUT) for name in names]
    outs = [mqi.open(sender, name, OUTPUT) for name in names]
    for out in outs:
        mqi.put(sender, out, b"one")
    consumer = Consumer(also=lambda own: mqi.ask("MQCTL", own, STOP, None))
    for hobj in hobjs:
        register(mqi, hconn, hobj, consumer)
    mqi.ask("MQCTL", hconn, START, None)
    consumer.next()
    mqi.ask("MQCTL", hconn, STOP, None)
    assert consumer.calls.empty()
