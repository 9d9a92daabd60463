"""The port of trigger messages: one suite for trigmon's own adapter and for that of IBM's ``ibmmq``."""

from __future__ import annotations

import itertools
import pickle
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.daemons import define
from trigmon.client.link import Link
from trigmon.monitor.own_intake import OwnIntake
from trigmon.mq.calls import Alter
from trigmon.mq.descriptors import TriggerMessage, pack_tm, unpack_dlh
from trigmon.mq.enums import Feedback

DEADQ = "SYSTEM.DEAD.LETTER.QUEUE"
NOW_MS = 1_800_000_000_000
DATA = pack_tm(TriggerMessage(q_name="Q", process_name="P", appl_id="x" * 200))
_numbers = itertools.count(1)


class RefusedError(Exception):
    """The intake raised this error: its type's name, its reason, its text."""


class Far:
    """The intake of another process, called as if it were here."""

    def __init__(self, daemon, library_directory, initiation_q):
        env = daemon.env | {"LD_LIBRARY_PATH": str(library_directory), "PYTHONWARNINGS": "ignore"}
        argv = [sys.executable, "-m", "tests.bridge.intake_process"]
        self.process = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._send(({"queue_manager": "QM1", "wait_s": 0.2}, initiation_q))

    def __getattr__(self, name):
        if name in ("q_mgr_name", "initiation_q"):
            return self._call(name)
        return lambda *arguments: self._call(name, *arguments)

    def _send(self, what):
        pickle.dump(what, self.process.stdin)
        self.process.stdin.flush()

    def _call(self, name, *arguments):
        self._send((name, arguments))
        is_answer, answer = pickle.load(self.process.stdout)
        if not is_answer:
            raise RefusedError(*answer)
        return answer

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


class Near(OwnIntake):
    """The intake of this process."""

    def __init__(self, daemon, initiation_q):
        self.link = Link(daemon.connect)
        super().__init__(self.link, initiation_q)

    def kill(self):
        self.link.drop()

    def end(self):
        self.close()


@pytest.fixture
def initiation_q(qm):
    name = f"INITQ.{next(_numbers)}"
    define(qm, name, max_msg_length=4_000_000)
    return name


@pytest.fixture(params=["own", "ibmmq"])
def intake(request, shared_daemon, initiation_q):
    """Makes intakes of one initiation queue."""
    made = []

    def make():
        if request.param == "own":
            made.append(Near(shared_daemon, initiation_q))
        elif find_spec("ibmmq") is None:
            pytest.skip("ibmmq has no wheel for this machine")
        else:
            made.append(Far(shared_daemon, request.getfixturevalue("library_directory"), initiation_q))
        made[-1].open()
        return made[-1]

    yield make
    for one in made:
        one.end()


@pytest.fixture
def dead_letters(qm):
    """Names the dead-letter queue, and yields how to take what is on it."""
    qm.call(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": DEADQ}))

    def take():
        with qm.open(DEADQ, "input_shared") as queue:
            return [(*unpack_dlh(message.data), message) for message in queue.drain()]

    take()
    yield take
    qm.call(Alter(object_type="QMGR", name="QM1", attributes={"dead_letter_q_name": ""}))


def put(qm, initiation_q, data=DATA, **descriptor):
    qm.put(initiation_q, data, format="MQTRIG", **descriptor)


def test_it_says_where_its_messages_come_from(intake, initiation_q):
    one = intake()
    assert (one.q_mgr_name, one.initiation_q) == ("QM1", initiation_q)


def test_it_takes_what_there_is_and_nothing_when_there_is_nothing(intake, qm, initiation_q):
    one = intake()
    assert one.take() == []
    for _ in range(3):
        put(qm, initiation_q)
    taken = one.take()
    assert [got.data for got in taken] == [DATA] * 3
    assert {got.descriptor.format for got in taken} == {"MQTRIG"}
    assert len({got.descriptor.msg_id for got in taken}) == 3
    one.accept()
    assert one.take() == []


def test_what_is_given_back_comes_again_with_its_count(intake, qm, initiation_q):
    one = intake()
    put(qm, initiation_q)
    first = one.take()
    one.give_back()
    again = one.take()
    assert [got.descriptor.msg_id for got in again] == [got.descriptor.msg_id for got in first]
    assert [got.descriptor.put_ms for got in again] == [got.descriptor.put_ms for got in first]
    assert [got.descriptor.backout_count for got in (*first, *again)] == [0, 1]
    one.accept()


def test_what_was_not_accepted_comes_again_after_its_end(intake, qm, initiation_q):
    for ends in ("kill", "close"):
        put(qm, initiation_q)
        one = intake()
        assert len(one.take()) == 1
        getattr(one, ends)()
        other = intake()
        assert [got.data for got in other.take()] == [DATA], ends
        other.accept()


def test_what_was_accepted_does_not_come_again(intake, qm, initiation_q):
    put(qm, initiation_q)
    one = intake()
    assert len(one.take()) == 1
    one.accept()
    one.kill()
    assert intake().take() == []


def test_a_long_message_comes_whole(intake, qm, initiation_q):
    long = b"x" * 1_000_000
    put(qm, initiation_q, long)
    one = intake()
    assert [got.data for got in one.take()] == [long]
    one.accept()


@pytest.mark.parametrize("reason", [Feedback.TM_ERROR, Feedback.APPL_TYPE_ERROR, Feedback.APPL_CANNOT_BE_STARTED, 2035])
def test_a_dead_letter_has_the_reason_and_the_message_and_goes_with_the_unit_of_work(
    intake, qm, initiation_q, dead_letters, reason
):
    put(qm, initiation_q, b"no trigger message", correl_id=b"c", persistence="persistent")
    one = intake()
    (got,) = one.take()
    assert DEADQ in one.dead_letter(got, int(reason), NOW_MS)
    one.give_back()
    assert dead_letters() == []
    (got,) = one.take()
    one.dead_letter(got, int(reason), NOW_MS)
    one.accept()
    ((header, data, message),) = dead_letters()
    assert (header.reason, header.dest_q_name, header.dest_q_mgr_name) == (reason, initiation_q, "QM1")
    assert (header.format, header.put_appl_name, header.put_date) == ("MQTRIG", "trigmon monitor", "20270115")
    assert (data, message.descriptor.msg_id) == (b"no trigger message", got.descriptor.msg_id)
    assert (message.descriptor.format, message.descriptor.correl_id[:1]) == ("MQDEAD", b"c")
    assert one.take() == []


def test_without_a_dead_letter_queue_the_message_is_dropped_with_a_reason(intake, qm, initiation_q):
    put(qm, initiation_q, b"nothing")
    one = intake()
    (got,) = one.take()
    assert "names no dead-letter queue (DEADQ)" in one.dead_letter(got, 266, NOW_MS)
    one.accept()
    assert one.take() == []
