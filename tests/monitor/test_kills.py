"""Killed at any point, a monitor neither loses a launch nor starts it twice, and every exit status is known."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import sys
import time
from collections import Counter

import pytest

from tests.daemons import define
from tests.ledger import have_all_ended, recorded_runs
from tests.monitor.killing import Proxy, frames, lines
from tests.waiting import until
from trigmon.keeper import protocol
from trigmon.launch.keeper_client import Keepers
from trigmon.mq.calls import Display

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
WAIT_S = 600.0


class MonitoredMachine:
    """A queue manager, a queue with trigger type EVERY, a program that notes each of its starts, and its monitors."""

    def __init__(self, daemon, directory, instances):
        self.daemon, self.directory = daemon, directory
        self.notes = directory / "notes"
        self.notes.touch()
        job = directory / "job"
        job.write_text(f"#!/bin/sh\necho $TRIGMON_RUN >> {self.notes}\n")
        job.chmod(0o755)
        self.qm = daemon.connect()
        define(self.qm, "P", "PROCESS", appl_id=str(job), instances=instances)
        trigger = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": INITQ}
        define(self.qm, "Q", process_name="P", **trigger)
        # Somebody has the initiation queue open, so that trigger events happen whether a monitor runs or not.
        self.reader = self.qm.open(INITQ, "input_shared")

    def trigger(self, count):
        """So many trigger events. The messages go again, that a monitor's start is none."""
        for _ in range(count):
            self.qm.put("Q", b"one")
        with self.qm.open("Q", "input_shared") as q:
            assert len(q.get_many(count)) == count

    def monitor(self, address=None):
        options = ["--qmgr", address] if address else []
        with (self.directory / "monitor.log").open("ab") as log:
            argv = [sys.executable, "-m", "trigmon", *options, "monitor", "--data", str(self.daemon.data)]
            return subprocess.Popen(argv, env=self.daemon.env, stdin=subprocess.DEVNULL, stderr=log)

    @contextlib.contextmanager
    def monitored(self):
        """With a monitor that nobody kills."""
        monitor = self.monitor()
        until(self.has_reader)
        try:
            yield
        finally:
            monitor.terminate()
            assert monitor.wait(20) == 0

    def waiting(self):
        return self.qm.call(Display(object_type="QLOCAL", name=INITQ)).rows[0]["current_q_depth"]

    def has_reader(self):
        """Whether a monitor has the initiation queue open, beside the test."""
        return self.qm.call(Display(object_type="QLOCAL", name=INITQ)).rows[0]["open_input_count"] > 1

    def runs(self, **where):
        return recorded_runs(self.qm, **where)

    def is_done(self, triggers):
        return len(self.runs()) >= triggers and have_all_ended(self.qm)

    def wait_until_done(self, triggers):
        deadline = time.monotonic() + WAIT_S
        while not self.is_done(triggers):
            assert time.monotonic() < deadline, [self.waiting(), *map(self.state_of, self.runs())]
            time.sleep(0.05)

    def judge(self, triggers):
        """Every trigger was launched exactly once, and every exit status is known."""
        runs = self.runs()
        assert Counter(map(self.state_of, runs)) == {("exited", 0, "ended with status 0"): triggers}
        assert Counter(self.notes.read_text().split()) == {run["run_id"]: 1 for run in runs}
        assert all(0 < run["recorded_ms"] <= run["start_ms"] <= run["end_ms"] and run["pid"] for run in runs)

    @staticmethod
    def state_of(run):
        return run["state"], run["exit_status"], run["why"]

    def end(self):
        self.reader.close()
        self.qm.disconnect()


@pytest.fixture
def machine(daemon, tmp_path):
    made = []

    def make(instances):
        made.append(MonitoredMachine(daemon(), tmp_path, instances))
        return made[-1]

    yield make
    made[0].end()


@pytest.fixture
def proxied(machine):
    """A machine with a cap of one, and a proxy before its queue manager and its keeper."""
    made = machine(1)
    proxy = Proxy()
    at = made.directory / "proxy"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(at))
    listener.listen()
    proxy.forward(listener, made.daemon.plain_socket, frames)
    monitors = made.daemon.data / "monitors"
    monitors.mkdir()
    keepers = Keepers(monitors, "behind.the.proxy")
    keepers.own()
    proxy.forward(
        protocol.listen(monitors, f"{INITQ}.1.keeper"), lambda: protocol.connected(monitors, "behind.the.proxy"), lines
    )
    proxy.start()
    yield made, proxy, f"unix:{at}"
    proxy.end()
    keepers.close()


def dies_at(machine, proxy, address, point, triggers):
    """Two triggers, of which one is held, under a monitor that dies at this point; False when it never comes to it."""
    machine.trigger(2)
    proxy.arm(point)
    proxy.victim = machine.monitor(address)
    died = until_dead_or(lambda: machine.is_done(triggers), proxy)
    if not died:
        proxy.point = None
        proxy.victim.terminate()
        proxy.victim.wait(20)
    return died


def until_dead_or(done, proxy):
    deadline = time.monotonic() + WAIT_S
    while proxy.victim.poll() is None:
        if done():
            return False
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return True


def play(proxied, points):
    machine, proxy, address = proxied
    # How many points there are: threads take turns as they like, so a few more are tried.
    triggers = 2
    assert not dies_at(machine, proxy, address, 1_000_000, triggers)
    count = proxy.count
    assert count > 40
    for point in points(count):
        triggers += 2
        if dies_at(machine, proxy, address, point, triggers):
            with machine.monitored():
                machine.wait_until_done(triggers)
        machine.judge(triggers)


def test_a_monitor_killed_at_some_points_neither_loses_a_launch_nor_starts_it_twice(proxied):
    play(proxied, lambda count: random.Random(7).sample(range(1, count), 6))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_monitor_killed_at_each_point_neither_loses_a_launch_nor_starts_it_twice(proxied):
    play(proxied, lambda count: range(1, count + 4))


@pytest.mark.parametrize(
    ("kills", "triggers"),
    [(5, 100), pytest.param(50, 1000, marks=[pytest.mark.slow])],
)
def test_a_monitor_killed_at_random_moments_of_a_load_launches_every_trigger_exactly_once(machine, kills, triggers):
    chance = random.Random(kills)
    made = machine(8)
    for _ in range(kills):
        monitor = made.monitor()
        if chance.random() < 0.7:  # else it dies in starting, or in taking up what its forerunner left
            until(made.has_reader)
        share = triggers // kills
        first = chance.randint(1, share - 1)
        made.trigger(first)
        time.sleep(chance.uniform(0, 0.2))
        made.trigger(share - first)
        time.sleep(chance.uniform(0, 0.1))
        monitor.kill()
        monitor.wait()
    with made.monitored():
        made.wait_until_done(triggers)
    made.judge(triggers)
