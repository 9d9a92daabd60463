from __future__ import annotations

import queue as thread_queue
import threading

import pytest

from tests.mqi.mqi_program import INPUT, OUTPUT, SHARE_NO_BLOCK, SHARE_NONE, SYNCPOINT, WAIT, Failed, Program
from tests.waiting import until
from trigmon.mqi import ibmmqc
from trigmon.mqi.structures import MQCBC, MQMD

REGISTER, DEREGISTER, SUSPEND, RESUME = 0x100, 0x200, 0x1_0000, 0x2_0000
START, START_WAIT, STOP = 1, 2, 4
START_CALL, STOP_CALL, EVENT_CALL, MSG_REMOVED = 1, 2, 5, 6


@pytest.fixture
def calls():
    """Yields the calls of callbacks as they come: (call type, reason, data, MQMD)."""
    came = thread_queue.Queue()

    def callback(hconn, md, gmo, data, cbc):
        context = MQCBC.unpack(cbc)
        came.put((context["CallType"], context["Reason"], data, MQMD.unpack(md)))

    ibmmqc.MQCBINIT(callback)
    return came


def next_message(calls):
    while True:
        kind, reason, data, _ = calls.get(timeout=30)
        if kind == MSG_REMOVED:
            return reason, data


def test_a_callback_gets_messages_until_it_is_stopped(program, queue, qm, calls):
    name = queue()
    hobj = program.open(name, INPUT)
    program.callback(REGISTER, hobj, options=WAIT, wait_ms=-1)
    qm.put(name, b"before")
    program.control(START)
    assert next_message(calls) == (0, b"before")
    qm.put(name, b"after")
    assert next_message(calls) == (0, b"after")
    program.control(STOP)
    qm.put(name, b"too late")
    assert program.data(hobj) == b"too late"


def test_two_consumers_have_their_turns(program, queue, qm, calls):
    names = [queue(), queue()]
    for name in names:
        program.callback(REGISTER, program.open(name, INPUT))
    program.control(START)
    for name in names:
        qm.put(name, name)
    assert {next_message(calls)[1] for _ in names} == {name.encode() for name in names}
    program.control(STOP)


def test_it_learns_once_that_no_message_came_in_time(program, queue, calls):
    program.callback(REGISTER, program.open(queue(), INPUT), options=WAIT, wait_ms=1, cbd={"Options": START_CALL | 4})
    program.control(START)
    kinds = [calls.get(timeout=30)[:2] for _ in range(2)]
    program.control(STOP)
    kinds.append(calls.get(timeout=30)[:2])
    assert kinds == [(START_CALL, 0), (EVENT_CALL, 2033), (STOP_CALL, 0)]
    assert calls.empty()


def test_while_callbacks_are_called_no_other_thread_may_make_calls(program, queue, calls):
    hobj = program.open(queue(), INPUT | OUTPUT)
    program.callback(REGISTER, hobj)
    program.control(START)
    with pytest.raises(Failed, match="2500"):
        program.put(hobj)
    with pytest.raises(Failed, match="2500"):
        program.control(START)
    program.control(STOP)
    program.put(hobj)


def test_a_callback_makes_calls_and_ends_a_start_that_waits(program, queue):
    hobj = program.open(queue(), INPUT | OUTPUT)
    for data in (b"one", b"two"):
        program.put(hobj, data)
    came = []

    def callback(hconn, md, gmo, data, cbc):
        came.append(data)
        program.commit()
        if data == b"two":
            program.control(STOP)
        raise ValueError("a callback's own error is printed, and ends nothing")

    ibmmqc.MQCBINIT(callback)
    program.callback(REGISTER, hobj, options=SYNCPOINT)
    program.control(START_WAIT)
    assert came == [b"one", b"two"]


def test_what_is_suspended_is_not_called(program, queue, qm, calls):
    name = queue()
    hobj = program.open(name, INPUT)
    program.callback(REGISTER, hobj)
    program.callback(SUSPEND, hobj)
    program.control(START)
    qm.put(name, b"one")
    program.callback(RESUME, hobj)
    assert next_message(calls) == (0, b"one")
    program.control(SUSPEND)
    program.control(RESUME)
    qm.put(name, b"two")
    assert next_message(calls) == (0, b"two")
    program.control(STOP)


def test_a_disconnect_ends_the_thread(program, queue, calls):
    program.callback(REGISTER, program.open(queue(), INPUT))
    program.control(START)
    program.disconnect()
    assert not [thread for thread in threading.enumerate() if thread.name == "trigmon-mqi-callbacks"]


def test_what_is_not_registered_or_not_an_operation_is_refused(program, queue, calls):
    hobj = program.open(queue(), INPUT)
    for work, reason in (
        (lambda: program.control(START), "2446"),
        (lambda: program.control(77), "2488"),
        (lambda: program.control(SUSPEND), "2534"),
        (lambda: program.callback(DEREGISTER, hobj), "2448"),
        (lambda: program.callback(REGISTER, hobj, cbd={"CallbackType": 2}), "2483"),
        (lambda: program.callback(REGISTER, 999), "2019"),
    ):
        with pytest.raises(Failed, match=reason):
            work()
    program.callback(REGISTER, hobj)
    program.callback(DEREGISTER, hobj)
    with pytest.raises(Failed, match="2446"):
        program.control(START)


def test_the_event_handler_learns_that_the_queue_manager_is_lost(daemon, monkeypatch, calls):
    manager = daemon("QM2")
    monkeypatch.setenv("TRIGMON_HOME", str(manager.home))
    program = Program(b"QM2")
    program.callback(REGISTER)
    program.callback(REGISTER, program.open("SYSTEM.DEFAULT.LOCAL.QUEUE", INPUT))
    program.control(START)
    manager.kill()
    came = []
    while came.count((EVENT_CALL, 2009)) < 2:  # the consumer's and the handler's; before it, that no message is there
        came.append(calls.get(timeout=30)[:2])
    assert set(came) <= {(EVENT_CALL, 2009), (EVENT_CALL, 2033)}


class Waiting(threading.Thread):
    """A thread that waits in MQGET for a message."""

    def __init__(self, program, hobj):
        super().__init__()
        self.program, self.hobj = program, hobj
        self.data = None
        self.start()
        until(lambda: ibmmqc.MQCMIT(program.hconn)[1] == 2219)

    def run(self):
        self.data = self.program.data(self.hobj, WAIT, wait_ms=-1)


@pytest.fixture
def no_block(here, queue, calls):
    """A program whose calls do not wait for each other, the queue that it reads, and its handle."""
    program, name = Program(options=SHARE_NO_BLOCK), queue()
    hobj = program.open(name, INPUT)
    program.callback(REGISTER, hobj, options=WAIT, wait_ms=-1)
    yield program, name, hobj
    ibmmqc.MQDISC(program.hconn)


def refusal(call, *arguments):
    with pytest.raises(Failed) as failed:
        call(*arguments)
    return failed.value.reason


def test_callbacks_are_not_started_beside_a_waiting_get(no_block, qm, calls):
    program, name, hobj = no_block
    waiting = Waiting(program, hobj)
    assert refusal(program.control, START) == 2219
    qm.put(name, b"to the get")
    waiting.join(60)
    program.control(START)
    qm.put(name, b"to the callback")
    assert (waiting.data, next_message(calls)[1]) == (b"to the get", b"to the callback")
    assert refusal(program.control, START) == 2500


def test_a_suspended_program_makes_calls_and_neither_a_resumption_nor_an_end_overtakes_one(no_block, qm, calls):
    program, name, hobj = no_block
    program.control(START)
    program.control(SUSPEND)
    assert refusal(program.control, START) == 2534
    waiting = Waiting(program, hobj)
    for operation in (RESUME, STOP):
        assert refusal(program.control, operation) == 2219
    assert refusal(program.disconnect) == 2219
    qm.put(name, b"to the get")
    waiting.join(60)
    program.control(RESUME)
    assert refusal(program.commit) == 2500
    qm.put(name, b"to the callback")
    assert (waiting.data, next_message(calls)[1]) == (b"to the get", b"to the callback")


def test_a_thread_that_may_not_use_a_handle_neither_stops_nor_ends_it(here, queue, qm, calls):
    program, name, ended = Program(options=SHARE_NONE), queue(), []
    program.callback(REGISTER, program.open(name, INPUT), options=WAIT, wait_ms=-1)
    program.control(START)

    def use():
        ended.extend(refusal(call) for call in (lambda: program.control(STOP), program.disconnect))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join(60)
    assert ended == [2018, 2018]
    qm.put(name, b"one")
    assert next_message(calls)[1] == b"one"
    program.disconnect()
