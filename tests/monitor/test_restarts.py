"""What outlives what: the monitor and the programs are separate processes, and each may go first."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from tests.processes import is_there
from tests.waiting import until
from trigmon.mq.calls import Alter, CancelRun


def test_a_stopping_monitor_leaves_its_programs_running_and_says_so(machine):
    machine.start_monitor()
    machine.put()
    (run,) = machine.wait_for(state="started")
    assert machine.end_monitor() == 0
    os.kill(run["pid"], 0)
    assert machine.events("program left running") == 1


def test_a_run_that_is_cancelled_while_its_monitor_is_away_is_ended_by_the_next(machine):
    machine.start_monitor()
    machine.put(2)
    (run,) = machine.wait_for(state="started")
    (held,) = machine.wait_for(state="held")
    machine.end_monitor(signal.SIGKILL)
    with machine.daemon.connect() as qm:
        for one in (run, held):
            qm.call(CancelRun(run_id=one["run_id"]))
    assert [one["state"] for one in machine.runs()] == ["started", "cancelled"]
    machine.start_monitor()
    machine.wait_for(2, state="cancelled")
    until(lambda: not is_there(run["pid"]))


def test_the_end_of_a_program_is_on_record_though_no_monitor_ran(machine):
    machine.job.write_text(f"#!/bin/sh\nwhile [ ! -e {machine.gate} ]; do sleep 0.02; done\necho bye >&2; exit 3\n")
    machine.start_monitor()
    machine.put()
    (run,) = machine.wait_for(state="started")
    assert machine.end_monitor(signal.SIGKILL) == -signal.SIGKILL
    machine.gate.touch()
    until(lambda: not is_there(run["pid"]))
    time.sleep(0.3)
    machine.start_monitor()
    (ended,) = machine.wait_for(state="exited")
    assert (ended["run_id"], ended["pid"], ended["start_ms"]) == (run["run_id"], run["pid"], run["start_ms"])
    assert (ended["exit_status"], ended["why"], ended["stderr_tail"]) == (3, "ended with status 3: bye", "bye\n")
    assert run["start_ms"] < ended["end_ms"] < int(time.time() * 1000) - 200


def test_the_next_monitor_finds_running_programs_and_held_runs_of_one_that_was_killed(machine):
    machine.start_monitor()
    machine.put(3)
    (first,) = machine.wait_for(state="started")
    machine.wait_for(2, state="held")
    machine.end_monitor(signal.SIGKILL)
    machine.start_monitor()
    machine.put()
    assert [run["pid"] for run in machine.wait_for(3, state="held")] == [0, 0, 0]
    machine.gate.touch()
    ended = machine.wait_for(4, state="exited")
    assert ended[0]["pid"] == first["pid"]
    assert [run["exit_status"] for run in ended] == [0, 0, 0, 0]
    assert [Path(run["directory"], "stdout").read_text() for run in machine.runs()] == ["done\n"] * 4


def test_a_monitor_with_stop_runs_ends_its_programs_when_it_stops(machine):
    machine.start_monitor("--stop-runs")
    machine.put()
    (run,) = machine.wait_for(state="started")
    assert machine.end_monitor() == 0
    assert not is_there(run["pid"])
    (ended,) = machine.runs()
    assert (ended["state"], ended["signal"]) == ("exited", signal.SIGTERM)
    assert ended["why"] == "ended by its monitor's stop: killed by SIGTERM"
    assert machine.events("program left running") == 0


def test_a_program_that_takes_longer_than_its_process_may_is_ended_and_the_record_says_why(machine):
    with machine.daemon.connect() as qm:
        qm.call(Alter(object_type="PROCESS", name="P", attributes={"time_limit_s": 1}))
    machine.start_monitor()
    machine.put()
    (run,) = machine.wait_for(state="exited")
    assert (run["signal"], run["why"]) == (signal.SIGTERM, "ended by its time limit of 1 s: killed by SIGTERM")


def test_a_time_limit_is_kept_though_no_monitor_runs(machine):
    machine.daemon.settings["monitor.time_limit_s"] = 2
    machine.start_monitor()
    machine.put()
    (run,) = machine.wait_for(state="started")
    machine.end_monitor()
    until(lambda: not is_there(run["pid"]))
    machine.start_monitor()
    (run,) = machine.wait_for(state="exited")
    assert run["why"] == "ended by its time limit of 2 s: killed by SIGTERM"
