"""How long fork servers are kept, and when another takes a server's place: in this process, with its own time."""

from __future__ import annotations

import os
import selectors
import sys
import time

import pytest

from tests.waiting import until
from trigmon.keeper import fork_server, run_directory
from trigmon.keeper.fork_server import Fork
from trigmon.keeper.fork_servers import ForkServers


class Events:
    """What is reported of fork servers and their runs."""

    def __init__(self):
        self.ready, self.started, self.executed = [], [], []

    def forks_are_ready(self, pid):
        self.ready.append(pid)

    def fork_starts(self, run):
        self.executed.append(run.run_id)

    def fork_started(self, run):
        self.started.append(run)

    def fork_failed(self, run, error):
        raise AssertionError(run.run_id) from error


class Machine:
    """Fork servers, and a wait for what they send."""

    def __init__(self, directory):
        self.directory = directory
        self.events = Events()
        self.selector = selectors.DefaultSelector()
        self.servers = ForkServers(self.events, self.selector)

    def order(self, run_id="r", *, python=sys.executable, **environment):
        script = self.directory / "prints.py"
        script.write_text("print('here')")
        return {
            "run": run_id,
            "argv": [python, str(script)],
            "fork": [str(script)],
            "interpreter": {"argv": [python], "modules": [], "without": ["TRIGMON_RUN"]},
            "environment": {"PATH": os.environ["PATH"], "TRIGMON_RUN": run_id} | environment,
            "working_directory": str(self.directory),
            "directory": str(self.directory / run_id),
            "time_limit_s": 0,
            "grace_s": 1,
        }

    def serve(self):
        for key, _ in self.selector.select(0.05):
            key.data()
        self.servers.keep_time(time.monotonic())
        return True

    def until(self, found):
        until(lambda: self.serve() and found())

    def fork(self, run_id):
        order = self.order(run_id)
        run_directory.make(self.directory / run_id, "keeper")
        run = Fork(order)
        run.start(0)
        self.servers.ready(order).start(run)
        self.until(lambda: run in self.events.started)
        return run


@pytest.fixture
def it(tmp_path):
    made = Machine(tmp_path)
    yield made
    made.servers.close()
    made.selector.close()


def test_runs_that_differ_in_what_is_their_own_alone_share_one(it):
    it.servers.keep(it.order("r1"))
    it.servers.keep(it.order("r2"))
    it.until(lambda: it.events.ready)
    assert it.servers.pids == set(it.events.ready)
    assert it.servers.ready(it.order("r3")) is not None
    assert it.servers.ready(it.order("r3", OWN="1")) is None


def test_one_that_is_not_needed_ends_and_one_that_is_announced_again_does_not(it):
    it.servers.keep(it.order())
    it.servers.keep(it.order(OWN="1"))
    it.until(lambda: len(it.events.ready) == 2)
    soon = it.servers.due_at
    assert 80 < soon - time.monotonic() <= 90
    time.sleep(0.01)
    it.servers.keep(it.order())
    it.servers.keep_time(soon)
    assert len(it.servers.pids) == 2
    it.servers.keep_time(it.servers.due_at)
    assert len(it.servers.pids) == 1
    it.servers.keep_time(it.servers.due_at)
    assert it.servers.pids == set()
    assert it.servers.due_at is None


def test_there_are_at_most_sixteen_and_the_one_that_was_needed_longest_ago_goes(it):
    for number in range(17):
        it.servers.keep(it.order(OWN=str(number)))
    assert len(it.servers.pids) == 16
    it.until(lambda: it.servers.ready(it.order(OWN="16")))
    assert it.servers.ready(it.order(OWN="0")) is None


def test_one_that_never_becomes_ready_is_tried_in_growing_pauses(it):
    it.servers.keep(it.order(python="/gone/python"))
    pauses = []
    for _ in range(3):
        due = it.servers.due_at
        pauses.append(due - time.monotonic())
        it.servers.keep_time(due)
    assert pauses[0] < pauses[1] < pauses[2]


def test_a_server_is_replaced_when_it_has_made_many(it, monkeypatch):
    monkeypatch.setattr(fork_server, "_MOST_FORKS", 2)
    it.servers.keep(it.order())
    it.until(lambda: it.events.ready)
    for number in range(2):
        it.fork(f"r{number}")
    assert it.events.executed == []
    it.until(lambda: len(it.events.ready) == 2)
    assert it.events.ready[0] != it.events.ready[1]
    assert it.fork("r2").is_forked
    until(lambda: (it.directory / "r2" / "stdout").read_text() == "here\n")
