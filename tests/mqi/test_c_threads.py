"""Calls of several threads on one connection of the C library, with and without consumers."""

from __future__ import annotations

import ctypes
import subprocess
import threading
from pathlib import Path

import pytest

from tests.mqi.mqi_calls import INPUT, OUTPUT, WAIT, Block
from tests.mqi.test_c_callbacks import REMOVED, RESUME, START, STOP, SUSPEND, Consumer, register
from tests.waiting import until
from trigmon.mq.calls import Status
from trigmon.mqi import library

SHARE_BLOCK, SHARE_NO_BLOCK, START_WAIT = 0x40, 0x80, 0x2
CALL_IN_PROGRESS, HCONN_ERROR, ASYNC_ACTIVE, NOT_ALLOWED = (2, 2219), (2, 2018), (2, 2500), (2, 2534)
FORKS = 200


class Waiting(threading.Thread):
    """A thread that waits in MQGET for a message."""

    def __init__(self, mqi, hconn, hobj):
        super().__init__()
        self.arguments = (mqi, hconn, hobj)
        self.data = None
        self.start()

    def run(self):
        mqi, hconn, hobj = self.arguments
        self.data = mqi.get(hconn, hobj, gmo=Block("MQGMO", Options=WAIT, WaitInterval=-1)).data


def is_busy(mqi, hconn, hobj):
    """Waits until another thread's call is in progress."""
    until(lambda: mqi.call("MQINQ", hconn, hobj, 0, None, 0, None, 0, None) == CALL_IN_PROGRESS)


@pytest.fixture
def connect(mqi):
    made = []

    def make(share=SHARE_NO_BLOCK):
        made.append(mqi.connect(options=Block("MQCNO", 1, Options=share)))
        return made[-1]

    yield make
    for hconn in made:
        mqi.call("MQDISC", ctypes.byref(ctypes.c_int32(hconn)))


@pytest.fixture
def put(mqi, connect, q_name):
    hconn = connect(SHARE_BLOCK)
    out = mqi.open(hconn, q_name, OUTPUT)
    return lambda data: mqi.put(hconn, out, data)


@pytest.fixture
def consumed(mqi, connect, q_name):
    """A connection whose calls do not wait, a queue that it reads, and the consumer that is registered for it."""
    hconn = connect()
    hobj, consumer = mqi.open(hconn, q_name, INPUT), Consumer()
    register(mqi, hconn, hobj, consumer)
    return hconn, hobj, consumer


def disconnect(mqi, hconn):
    return mqi.call("MQDISC", ctypes.byref(ctypes.c_int32(hconn)))


def by_another_thread(call, *arguments):
    """Returns what a call ends with on another thread."""
    ended = []
    thread = threading.Thread(target=lambda: ended.append(call(*arguments)))
    thread.start()
    thread.join(60)
    return ended[0]


def test_consumers_are_not_started_beside_a_waiting_get(mqi, consumed, put):
    hconn, hobj, consumer = consumed
    waiting = Waiting(mqi, hconn, hobj)
    is_busy(mqi, hconn, hobj)
    assert mqi.call("MQCTL", hconn, START, None) == CALL_IN_PROGRESS
    put(b"to the get")
    waiting.join(60)
    mqi.ask("MQCTL", hconn, START, None)
    put(b"to the callback")
    assert consumer.next() == (REMOVED, hobj, 0, b"to the callback")
    assert waiting.data == b"to the get"


def test_consumers_are_started_behind_a_waiting_get_where_calls_wait(qm, mqi, connect, q_name, put):
    hconn = connect(SHARE_BLOCK)
    hobj, consumer = mqi.open(hconn, q_name, INPUT), Consumer()
    register(mqi, hconn, hobj, consumer)
    waiting = Waiting(mqi, hconn, hobj)
    until(lambda: qm.call(Status()).values["waiting_gets"])
    starting = threading.Thread(target=mqi.ask, args=("MQCTL", hconn, START, None))
    starting.start()
    put(b"one")
    waiting.join(60)
    starting.join(60)
    put(b"two")
    assert {waiting.data, consumer.next()[3]} == {b"one", b"two"}


def test_a_suspended_consumer_is_resumed_behind_a_waiting_get_and_not_beside_it(mqi, consumed, put):
    hconn, hobj, consumer = consumed
    mqi.ask("MQCTL", hconn, START, None)
    mqi.ask("MQCTL", hconn, SUSPEND, None)
    waiting = Waiting(mqi, hconn, hobj)
    is_busy(mqi, hconn, hobj)
    assert mqi.call("MQCTL", hconn, RESUME, None) == CALL_IN_PROGRESS
    assert mqi.call("MQCTL", hconn, STOP, None) == CALL_IN_PROGRESS
    put(b"to the get")
    waiting.join(60)
    mqi.ask("MQCTL", hconn, RESUME, None)
    assert mqi.call("MQCMIT", hconn) == ASYNC_ACTIVE
    put(b"to the callback")
    assert consumer.next() == (REMOVED, hobj, 0, b"to the callback")


def test_a_started_connection_is_not_started_again(mqi, consumed):
    hconn, _, _ = consumed
    mqi.ask("MQCTL", hconn, START, None)
    assert mqi.call("MQCTL", hconn, START, None) == ASYNC_ACTIVE
    assert mqi.call("MQCTL", hconn, START_WAIT, None) == NOT_ALLOWED
    mqi.ask("MQCTL", hconn, SUSPEND, None)
    assert mqi.call("MQCTL", hconn, START, None) == NOT_ALLOWED
    mqi.ask("MQCTL", hconn, STOP, None)
    mqi.ask("MQCTL", hconn, START, None)


def test_a_disconnect_beside_a_waiting_get_is_refused_and_stops_nothing(mqi, consumed, put):
    hconn, hobj, consumer = consumed
    mqi.ask("MQCTL", hconn, START, None)
    mqi.ask("MQCTL", hconn, SUSPEND, None)
    waiting = Waiting(mqi, hconn, hobj)
    is_busy(mqi, hconn, hobj)
    assert disconnect(mqi, hconn) == CALL_IN_PROGRESS
    put(b"to the get")
    waiting.join(60)
    mqi.ask("MQCTL", hconn, RESUME, None)
    put(b"to the callback")
    assert consumer.next()[3] == b"to the callback"
    assert disconnect(mqi, hconn) == (0, 0)
    assert disconnect(mqi, hconn) == HCONN_ERROR


def test_a_disconnect_waits_for_another_thread_s_get_where_calls_wait(qm, mqi, connect, q_name, put):
    hconn = connect(SHARE_BLOCK)
    waiting = Waiting(mqi, hconn, mqi.open(hconn, q_name, INPUT))
    until(lambda: qm.call(Status()).values["waiting_gets"])
    ended = []
    ending = threading.Thread(target=lambda: ended.append(disconnect(mqi, hconn)))
    ending.start()
    put(b"one")
    waiting.join(60)
    ending.join(60)
    assert (waiting.data, ended) == (b"one", [(0, 0)])


def test_a_thread_that_may_not_use_a_handle_neither_stops_nor_ends_it(mqi, q_name, put, connect):
    hconn = connect(0x20)
    hobj, consumer = mqi.open(hconn, q_name, INPUT), Consumer()
    register(mqi, hconn, hobj, consumer)
    assert by_another_thread(mqi.call, "MQCTL", hconn, START, None) == HCONN_ERROR
    mqi.ask("MQCTL", hconn, START, None)
    for operation in (STOP, SUSPEND):
        assert by_another_thread(mqi.call, "MQCTL", hconn, operation, None) == HCONN_ERROR
    assert by_another_thread(disconnect, mqi, hconn) == HCONN_ERROR
    put(b"one")
    assert consumer.next() == (REMOVED, hobj, 0, b"one")


def test_threads_that_start_suspend_and_look_leave_the_consumers_alive(mqi, consumed, put):
    """The consumers' thread never takes another thread's short call for its end."""
    hconn, hobj, consumer = consumed
    mqi.ask("MQCTL", hconn, START, None)
    is_over = threading.Event()
    answers = set()

    def look():
        while not is_over.is_set():
            answers.add(mqi.call("MQINQ", hconn, hobj, 0, None, 0, None, 0, None)[1])

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for thread in lookers:
        thread.start()
    for number in range(20):
        mqi.ask("MQCTL", hconn, SUSPEND, None)
        until(lambda: mqi.call("MQCTL", hconn, RESUME, None) == (0, 0))
        put(b"%d" % number)
        assert consumer.next() == (REMOVED, hobj, 0, b"%d" % number)
    is_over.set()
    for thread in lookers:
        thread.join(60)
    assert answers <= {0, 2065, 2219, 2500}


def test_a_child_that_is_forked_beside_busy_threads_finds_no_lock_taken(library_directory, tmp_path):
    program = tmp_path / "forks"
    source = Path(__file__).parent / "forks.c"
    flags = ["-O1", "-Wall", "-Werror", f"-I{library.SOURCES}", f"-L{library_directory}"]
    subprocess.run([library.compiler(), *flags, "-o", program, source, "-lmqm_r", "-lpthread"], check=True)
    env = {"LD_LIBRARY_PATH": str(library_directory)}
    done = subprocess.run([program, str(FORKS)], env=env, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, f"{FORKS}\n")
