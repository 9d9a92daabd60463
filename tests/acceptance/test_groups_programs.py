"""The programs for groups that span units of work (seed 000), killed at every point: each message is processed once.

A point is a call to the queue manager: before it is sent, or when it is sent and the reply not read.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.dying import KILLED, MOMENTS, run
from tests.waiting import until
from trigmon import paths
from trigmon.client.queue import Queue
from trigmon.mq.calls import Clear, Display, Runs

PROGRAMS = paths.shipped("process_defs")
PUT, GET = PROGRAMS / "groups_put.py", PROGRAMS / "groups_get.py"
QUEUES = ("GROUPS.IN", "GROUPS.ORDERS", "GROUPS.PUT.STATUS", "GROUPS.GET.STATUS", "GROUPS.FAILED")
KEEP = ("message", "segments")
GROUPS = {1: 5, 2: 1, 3: 4}
"""How many messages each group has: some units of work and a rest, one message alone, units and no rest."""
WANTED = [f"group {group}, message {number}" for group, count in GROUPS.items() for number in range(1, count + 1)]
MOST_CALLS = 60


class GroupsMachine:
    """A queue manager with the example's queues, and its programs."""

    def __init__(self, daemon, keep):
        self.daemon = daemon
        self.words = ["--keep", keep, "--unit", "2"]

    def order(self):
        """What is to be put is ordered."""
        with self.daemon.connect() as qm:
            for group, count in GROUPS.items():
                qm.put("GROUPS.ORDERS", json.dumps({"group": group, "messages": count}))

    def put(self, **dies):
        """The putting program; its exit status."""
        return run(PUT, *self.words, env=self.daemon.env, **dies)

    def get(self, **dies):
        """The getting program, which waits no longer than it must; its exit status."""
        return run(GET, *self.words, "--wait", "0.02", env=self.daemon.env, **dies)

    def done(self):
        """What was processed, in order; and then it is forgotten."""
        with self.daemon.connect() as qm, qm.open("GROUPS.DONE", "input_shared") as results:
            return [message.text for message in results.drain()]

    def left(self):
        """What lies on a queue that ought to be empty."""
        with self.daemon.connect() as qm:
            depths = {name: qm.call(Display(object_type="QLOCAL", name=name)).rows for name in QUEUES}
        return {name: rows[0]["current_q_depth"] for name, rows in depths.items() if rows[0]["current_q_depth"]}


def applied(daemon):
    """The queue manager with the shipped definitions."""
    done = daemon.trigmon("apply", str(paths.shipped("config") / "groups.yaml"), str(PROGRAMS))
    assert done.returncode == 0, done.stderr
    return daemon


@pytest.fixture(scope="module")
def prepared(shared_daemon):
    return applied(shared_daemon)


@pytest.fixture
def machine(prepared, keep):
    yield (machine := GroupsMachine(prepared, keep))
    with prepared.connect() as qm:
        for name in (*machine.left(), "GROUPS.DONE"):
            qm.call(Clear(q_name=name))


def points(step):
    """Every ``step``-th point of a program: the number of a call, and the moment."""
    return itertools.islice(((at, moment) for at in itertools.count(1) for moment in MOMENTS), 0, None, step)


def kills(step, start):
    """Starts a program to be killed at point after point, until it comes to its end before it; how often it did not."""
    for count, (at, moment) in enumerate(points(step)):
        assert at < MOST_CALLS
        ended = start(at, moment)
        assert ended in (0, KILLED)
        if ended == 0:
            return count
    raise AssertionError


STEPS = [pytest.param(9, id="some points"), pytest.param(1, id="all points", marks=pytest.mark.slow)]


@pytest.mark.parametrize("keep", KEEP)
@pytest.mark.parametrize("step", STEPS)
def test_the_putting_program_killed_at_any_point_puts_every_message_once(machine, step):
    def start(at, moment):
        machine.order()
        ended = machine.put(at=at, moment=moment)
        assert machine.get() == 0  # what is there of a group is processed before the rest of it comes
        assert machine.put() == 0
        assert machine.get() == 0
        assert (at, moment, machine.done()) == (at, moment, WANTED)
        assert (at, moment, machine.left()) == (at, moment, {})
        return ended

    assert kills(step, start) > 40 / step


@pytest.mark.parametrize("keep", KEEP)
@pytest.mark.parametrize("step", STEPS)
def test_the_getting_program_killed_at_any_point_processes_every_message_once(machine, step):
    def start(at, moment):
        machine.order()
        assert machine.put() == 0
        ended = machine.get(at=at, moment=moment)
        assert machine.get() == 0
        assert (at, moment, machine.done()) == (at, moment, WANTED)
        assert (at, moment, machine.left()) == (at, moment, {})
        return ended

    assert kills(step, start) > 40 / step


@pytest.mark.parametrize("keep", ["message", pytest.param("segments", marks=pytest.mark.slow)])
@pytest.mark.parametrize("step", [pytest.param(25, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)])
@pytest.mark.parametrize("program", ["put", "get"])
def test_a_queue_manager_killed_under_a_program_loses_and_doubles_nothing(machine, program, step):
    for at, moment in points(step):
        machine.order()
        ended = {"put": 0, "get": 0}
        for name in ended:
            if name == program:
                ended[name] = getattr(machine, name)(at=at, moment=moment, victim=machine.daemon.process.pid)
                if ended[name]:
                    machine.daemon.wait()
                    machine.daemon.start()
            assert getattr(machine, name)() == 0
        assert (at, moment, machine.done()) == (at, moment, WANTED)
        assert (at, moment, machine.left()) == (at, moment, {})
        if not ended[program]:
            break
    assert at > 15


@pytest.mark.parametrize("keep", ["segments"])
def test_both_killed_again_and_again_come_to_the_end(machine):
    """Each run gets a few calls further, or not even that: a unit of work needs some in one go."""
    machine.order()
    for at in itertools.cycle((9, 12, 15, 8)):
        ended = machine.put(at=at, moment="sent"), machine.get(at=at + 2, moment="before")
        if ended == (0, 0) and not machine.left():
            break
    assert machine.done() == WANTED


@pytest.mark.parametrize("keep", ["message"])
@pytest.mark.parametrize("name", ["GROUPS.PUT.STATUS", "GROUPS.IN", "GROUPS.DONE"])
def test_the_points_notice_a_put_that_is_not_in_the_unit_of_work(machine, name, monkeypatch):
    put = Queue.put
    monkeypatch.setattr(Queue, "put", lambda queue, data, **said: put(queue, data, **said | unless(queue.name == name)))
    with pytest.raises(AssertionError):
        for at in range(8, 16):
            machine.order()
            machine.put(at=at, moment="before")
            machine.get(at=at, moment="before")
            assert (machine.put(), machine.get()) == (0, 0)
            assert (machine.done(), machine.left()) == (WANTED, {})


def unless(spoiled):
    """What a put says otherwise where it is spoiled."""
    return {"syncpoint": False} if spoiled else {}


def test_a_trigger_starts_the_getting_program_again_when_it_was_killed(daemon, monkeypatch):
    """As it is shipped: by hand the one, by its process definition the other, which is killed as an operator would."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    daemon = applied(daemon(with_monitor=True))
    machine = GroupsMachine(daemon, "message")
    argv = [sys.executable, str(PUT), "--groups", "2", "--messages", "150", "--unit", "3"]
    with subprocess.Popen(argv, env=daemon.env) as putting, daemon.connect() as qm:
        until(lambda: depth(qm, "GROUPS.DONE") > 20)
        (run,) = qm.call(Runs(where={"q_name": "GROUPS.IN"})).rows
        os.kill(run["pid"], signal.SIGKILL)
        assert putting.wait(60) == 0
        until(lambda: depth(qm, "GROUPS.DONE") == 300)
        until(lambda: not machine.left())
        runs = qm.call(Runs(where={"q_name": "GROUPS.IN"})).rows
    assert len(runs) > 1
    assert machine.done() == [f"group {group}, message {number}" for group in (1, 2) for number in range(1, 151)]


def depth(qm, name):
    """CURDEPTH."""
    return qm.call(Display(object_type="QLOCAL", name=name)).rows[0]["current_q_depth"]
