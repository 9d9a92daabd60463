"""Keepers that are killed: no program is started twice, and each end that can be known is on record."""

from __future__ import annotations

import signal
import time

import pytest

from tests.daemons import define
from tests.monitor.monitored_machine import INITQ, kill
from tests.processes import is_there
from tests.waiting import until
from trigmon.mq.calls import Alter


def test_a_program_whose_keeper_and_its_parent_are_killed_runs_on_counts_and_ends_as_unknown(machine):
    machine.start_monitor()
    machine.put(2)
    (run,) = machine.wait_for(state="started")
    machine.kill_keeper()
    until(lambda: machine.events("the keeper has ended"))
    until(lambda: machine.events("program found running"))
    time.sleep(0.3)
    assert [run["state"] for run in machine.runs()] == ["started", "held"]
    machine.gate.touch()
    (unknown,) = machine.wait_for(state="unknown")
    assert (unknown["run_id"], unknown["pid"]) == (run["run_id"], run["pid"])
    assert unknown["why"] == "its keeper had ended before it: how it ended is not known"
    (other,) = machine.wait_for(state="exited")
    assert other["exit_status"] == 0


def test_a_killed_keeper_has_no_program_started_twice_and_every_end_is_known(machine):
    with machine.daemon.connect() as qm:
        qm.call(Alter(object_type="PROCESS", name="P", attributes={"instances": 3}))
    machine.start_monitor()
    machine.put(3)
    started = machine.wait_for(3, state="started")
    machine.kill_keeper(with_its_parent=False)
    until(lambda: machine.events("the keeper has ended"))
    machine.gate.touch()
    machine.wait_for(3, state="exited")
    time.sleep(2)
    ended = machine.runs()
    assert [(run["run_id"], run["pid"], run["exit_status"]) for run in ended] == [
        (run["run_id"], run["pid"], 0) for run in started
    ]


@pytest.mark.parametrize(("recover", "expected"), [("all", 12), ("mq", None)])
def test_behind_the_daemons_end_each_message_of_every_has_its_program_where_the_process_says_so(
    machine, recover, expected
):
    machine.gate.touch()
    with machine.daemon.connect() as qm:
        attributes = {"instances": 3, "recover": recover}
        qm.call(Alter(object_type="PROCESS", name="P", attributes=attributes))
    machine.start_monitor()
    with machine.daemon.connect() as qm:
        for _ in range(4):
            qm.put("Q", b"taken")
    machine.wait_for(4, state="exited")
    with machine.daemon.connect() as qm, qm.open("Q", "input_shared") as q:
        q.get_many(4)
    machine.end_monitor(signal.SIGKILL)
    with machine.daemon.connect() as qm, qm.open(INITQ, "input_shared"):
        for _ in range(8):  # their trigger messages lie there, and go with the daemon
            qm.put("Q", b"one")
    machine.daemon.kill()
    machine.daemon.start()
    machine.start_monitor()
    ended = machine.wait_for(expected or 5, state="exited")
    time.sleep(1)
    assert len(machine.runs()) == len(ended) == (expected or 5)


def test_an_end_that_nobody_knows_is_tried_again_only_where_the_process_says_so(machine):
    with machine.daemon.connect() as qm:
        define(qm, "R", "PROCESS", appl_id=str(machine.job), instances=1, unknown="retry")
        trigger = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": INITQ}
        define(qm, "QR", process_name="R", **trigger)
        machine.start_monitor()
        for q_name in ("Q", "QR"):
            qm.put(q_name, b"one")
    machine.wait_for(2, state="started")
    machine.kill_keeper()
    until(lambda: machine.events("program found running") == 2)
    machine.gate.touch()
    machine.wait_for(2, state="unknown")
    (again,) = machine.wait_for(state="exited")
    assert again["q_name"] == "QR"
    assert len(machine.runs()) == 3


def test_what_a_program_leaves_behind_is_ended_also_where_its_keeper_was_killed(machine):
    left = machine.directory / "left"
    machine.job.write_text(machine.job.read_text().replace("while", f"sleep 600 & echo $! > {left}\nwhile", 1))
    machine.start_monitor()
    machine.put()
    machine.wait_for(state="started")
    until(lambda: left.exists() and left.read_text())
    machine.kill_keeper()
    until(lambda: machine.events("program found running"))
    machine.gate.touch()
    machine.wait_for(state="unknown")
    until(lambda: not is_there(int(left.read_text())))


def test_a_time_limit_holds_for_a_program_whose_keeper_was_killed_and_that_ignores_sigterm(machine):
    machine.daemon.settings["monitor.grace_s"] = 1
    machine.job.write_text("#!/bin/sh\ntrap '' TERM\nwhile :; do sleep 0.1; done\n")
    with machine.daemon.connect() as qm:
        qm.call(Alter(object_type="PROCESS", name="P", attributes={"time_limit_s": 4}))
    machine.start_monitor()
    machine.put()
    (run,) = machine.wait_for(state="started")
    machine.kill_keeper()
    (unknown,) = machine.wait_for(state="unknown")
    assert 4000 <= unknown["end_ms"] - run["start_ms"] < 9000


def test_a_program_that_outlived_monitor_and_keeper_is_found_by_the_next_and_ended_by_its_stop(machine):
    machine.start_monitor()
    machine.put()
    (run,) = machine.wait_for(state="started")
    machine.end_monitor(signal.SIGKILL)
    machine.kill_keeper()
    machine.start_monitor("--stop-runs")
    until(lambda: machine.events("program found running"))
    assert machine.runs()[0]["state"] == "started"
    assert machine.end_monitor() == 0
    assert not is_there(run["pid"])
    assert machine.runs()[0]["state"] == "unknown"


def test_a_program_that_ended_while_neither_monitor_nor_keeper_ran_is_unknown(machine):
    machine.start_monitor()
    machine.put()
    (run,) = machine.wait_for(state="started")
    machine.end_monitor(signal.SIGKILL)
    machine.kill_keeper()
    kill(run["pid"])
    until(lambda: not is_there(run["pid"]))
    machine.start_monitor()
    (record,) = machine.wait_for(state="unknown")
    assert record["why"] == "its keeper was gone when it ended: how it ended is not known"
