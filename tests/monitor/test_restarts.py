"""What outlives what: the queue manager, the monitor and the programs are separate processes, and each may go first."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.daemons import define
from tests.monitor.conftest import kill, until
from trigmon.launch import process
from trigmon.launch.port import LaunchPlan
from trigmon.monitor import ledger
from trigmon.monitor.resuming import is_program_of
from trigmon.mq.calls import RecordRun, Runs
from trigmon.mq.descriptors import TriggerMessage

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"


class House:
    """A queue manager without a monitor of its own, and ``trigmon monitor`` as often as a test starts it."""

    def __init__(self, daemon, directory):
        self.daemon, self.directory = daemon, directory
        self.gate = directory / "gate"
        self.job = directory / "job"
        self.job.write_text(f"#!/bin/sh\nwhile [ ! -e {self.gate} ]; do sleep 0.02; done\necho done\n")
        self.job.chmod(0o755)
        self.log = directory / "monitor.log"
        self.monitor = None
        with daemon.connect() as qm:
            define(qm, "P", "PROCESS", appl_id=str(self.job), instances=1)
            trigger = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": INITQ}
            define(qm, "Q", process_name="P", def_persistence="persistent", **trigger)

    def start_monitor(self):
        with self.log.open("ab") as log:
            argv = [sys.executable, "-m", "trigmon", "monitor"]
            self.monitor = subprocess.Popen(argv, env=self.daemon.env, stdin=subprocess.DEVNULL, stderr=log)
        count = self.events("monitor serves") + 1
        until(lambda: self.events("monitor serves") >= count)

    def events(self, event):
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return sum(json.loads(line)["event"] == event for line in lines if line.startswith("{"))

    def end_monitor(self, number=signal.SIGTERM):
        self.monitor.send_signal(number)
        return self.monitor.wait(20)

    def put(self, count=1):
        """So many trigger events; the messages go again, or a monitor's return would be a further one (13c)."""
        with self.daemon.connect() as qm:
            for _ in range(count):
                qm.put("Q", b"one")
            with qm.open("Q", "input_shared") as q:
                assert len(q.get_many(count)) == count

    def runs(self, **where):
        with self.daemon.connect() as qm:
            return qm.call(Runs(where=where)).rows[::-1]

    def wait_for(self, count=1, **where):
        return until(lambda: found if len(found := self.runs(**where)) >= count else None)

    def end(self):
        for record in self.runs(state="started"):
            kill(record["pid"])
        if self.monitor is not None and self.monitor.poll() is None:
            self.end_monitor()


@pytest.fixture
def house(daemon, tmp_path):
    made = House(daemon(), tmp_path)
    yield made
    made.end()


def test_a_stopping_monitor_leaves_its_programs_running_and_says_so(house):
    house.start_monitor()
    house.put()
    (run,) = house.wait_for(state="started")
    assert house.end_monitor() == 0
    os.kill(run["pid"], 0)
    assert house.events("program left running") == 1


def test_a_program_that_ends_while_the_monitor_waits_for_it_is_on_record(house):
    house.start_monitor()
    house.put()
    house.wait_for(state="started")
    house.monitor.send_signal(signal.SIGTERM)
    until(lambda: house.events("monitor stops"))
    house.gate.touch()
    assert house.monitor.wait(20) == 0
    assert house.runs()[0]["exit_status"] == 0


def test_the_next_monitor_finds_running_programs_and_held_runs_of_one_that_was_killed(house):
    house.start_monitor()
    house.put(3)
    (first,) = house.wait_for(state="started")
    house.wait_for(2, state="held")
    house.end_monitor(signal.SIGKILL)
    house.start_monitor()
    house.put()
    assert [run["pid"] for run in house.wait_for(3, state="held")] == [0, 0, 0]
    house.gate.touch()
    house.wait_for(3, state="exited")
    (found_again,) = house.wait_for(state="unknown")
    assert found_again["run_id"] == first["run_id"]
    assert found_again["pid"] == first["pid"]
    assert len(house.runs()) == 4
    assert [Path(run["directory"], "stdout").read_text() for run in house.runs()] == ["done\n"] * 4


def test_a_program_that_ended_while_no_monitor_ran_is_unknown(house):
    house.start_monitor()
    house.put()
    (run,) = house.wait_for(state="started")
    house.end_monitor(signal.SIGKILL)
    kill(run["pid"])
    until(lambda: not is_program_of(run["pid"], run["run_id"]))
    house.start_monitor()
    (record,) = house.wait_for(state="unknown")
    assert record["why"] == "ended while its monitor was away: how is not known"


def test_a_queue_manager_that_comes_back_is_served_on_and_told_what_it_missed(house):
    house.start_monitor()
    house.put()
    (run,) = house.wait_for(state="started")
    house.daemon.kill()
    house.gate.touch()
    until(lambda: house.events("program ended") == 1)
    house.daemon.start()
    (ended,) = house.wait_for(state="exited")
    assert (ended["run_id"], ended["exit_status"]) == (run["run_id"], 0)
    house.put()
    house.wait_for(2, state="exited")
    assert house.events("queue manager not reachable") >= 1
    assert house.monitor.poll() is None


def test_a_monitor_that_comes_before_its_queue_manager_waits_for_it(house):
    house.daemon.stop()
    with house.log.open("ab") as log:
        argv = [sys.executable, "-m", "trigmon", "monitor"]
        house.monitor = subprocess.Popen(argv, env=house.daemon.env, stdin=subprocess.DEVNULL, stderr=log)
    until(lambda: house.events("queue manager not reachable"))
    house.gate.touch()
    house.daemon.start()
    until(lambda: house.events("monitor serves"))
    house.put()
    house.wait_for(state="exited")


class TestRunsOnRecord:
    """What the ledger holds of a monitor that died, whatever it was doing."""

    RUN_ID = "0000000000000001"

    def record(self, house, state, run_ids=(RUN_ID,)):
        """Records of the monitor that will be started."""
        trigger = TriggerMessage(q_name="Q", process_name="P", appl_type=6, appl_id=str(house.job))
        name = f"{socket.gethostname()}:{INITQ}:1"
        with house.daemon.connect() as qm:
            for run_id in run_ids:
                record = ledger.recorded(run_id, trigger, state=state, monitor=name, now_ms=1)
                qm.call(RecordRun(run_id=run_id, record=record))

    def directory(self, house):
        return house.daemon.data / "runs" / self.RUN_ID

    def test_a_due_run_that_was_never_started_is_started(self, house):
        self.record(house, ledger.DUE)
        house.gate.touch()
        house.start_monitor()
        (run,) = house.wait_for(state="exited")
        assert run["exit_status"] == 0
        assert (self.directory(house) / "stdout").read_text() == "done\n"

    def test_a_due_run_that_had_started_and_runs_is_watched_and_not_started_again(self, house):
        self.record(house, ledger.DUE)
        plan = LaunchPlan(argv=[str(house.job)], environment={"TRIGMON_RUN": self.RUN_ID})
        child = process.start(plan, self.directory(house))
        house.start_monitor()
        (run,) = house.wait_for(state="started")
        assert run["pid"] == child.pid
        house.gate.touch()
        assert child.wait(20) == 0
        house.wait_for(state="unknown")

    def test_a_due_run_that_may_have_started_and_is_gone_is_unknown_and_not_started_again(self, house):
        self.record(house, ledger.DUE)
        self.directory(house).mkdir(parents=True)
        house.start_monitor()
        (run,) = house.wait_for(state="unknown")
        assert run["why"] == "its monitor ended in the moment of starting it: how is not known"
        assert list(self.directory(house).iterdir()) == []

    def test_more_held_runs_than_the_ledger_lists_at_a_time_are_all_started(self, house):
        self.record(house, ledger.HELD, [f"{number:016x}" for number in range(300)])
        house.gate.touch()
        house.start_monitor()
        until(lambda: len(list((house.daemon.data / "runs").glob("*/stdout"))) == 300)
        until(lambda: not any(house.runs(state=state) for state in ("held", "due", "started")))
