"""Another queue manager process, another monitor: runs and held runs go on with the one that comes."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.daemons import define
from tests.monitor.monitored_machine import INITQ, kill
from tests.processes import is_there
from tests.waiting import until
from trigmon.monitor import monitor
from trigmon.mq.calls import Alter, Display, Runs


def test_a_queue_manager_that_comes_back_is_served_on_and_gets_what_it_missed(machine):
    machine.start_monitor()
    machine.put()
    (run,) = machine.wait_for(state="started")
    machine.daemon.kill()
    machine.gate.touch()
    until(lambda: machine.events("program ended") == 1)
    machine.daemon.start()
    (ended,) = machine.wait_for(state="exited")
    assert (ended["run_id"], ended["exit_status"]) == (run["run_id"], 0)
    until(lambda: machine.events("monitor serves") == 2)
    machine.put()
    machine.wait_for(2, state="exited")
    assert machine.events("queue manager not reachable") >= 1
    assert machine.monitor.poll() is None


def test_a_monitor_that_comes_before_its_queue_manager_waits_for_it(machine):
    machine.daemon.stop()
    with machine.log.open("ab") as log:
        argv = [sys.executable, "-m", "trigmon", "monitor"]
        machine.monitor = subprocess.Popen(argv, env=machine.daemon.env, stdin=subprocess.DEVNULL, stderr=log)
    until(lambda: machine.events("queue manager not reachable"))
    machine.gate.touch()
    machine.daemon.start()
    until(lambda: machine.events("monitor serves"))
    machine.put()
    machine.wait_for(state="exited")


def test_a_monitor_that_is_gone_is_taken_over_by_one_that_lives(machine, tmp_path):
    machine.start_monitor()
    living = machine.monitor
    machine.start_monitor()
    gone, machine.monitor = machine.monitor, living
    # Which of the two takes what is chance, so one is stopped, until its waiting get has run out too.
    living.send_signal(signal.SIGSTOP)
    try:
        time.sleep(1.0)
        machine.put(3)
        (first,) = machine.wait_for(state="started")
        machine.wait_for(2, state="held")
        assert {run["monitor"].rpartition(":")[2] for run in machine.runs()} == {"2"}
    finally:
        living.send_signal(signal.SIGCONT)
        gone.kill()
        gone.wait()
    until(lambda: machine.events("another monitor is gone, and its runs are taken over"))
    until(lambda: [run["monitor"].rpartition(":")[2] for run in machine.runs(state="started")] == ["1"])
    machine.gate.touch()
    assert machine.wait_for(3, state="exited")[0]["run_id"] == first["run_id"]
    assert [Path(run["directory"], "stdout").read_text() for run in machine.runs()] == ["done\n"] * 3


def test_the_runs_of_a_gone_monitor_of_another_queue_are_taken_over_and_take_no_place_for_ever(machine):
    with machine.daemon.connect() as qm:
        define(qm, "OTHER.INITQ")
        qm.call(Alter(object_type="QLOCAL", name="Q", attributes={"initiation_q_name": "OTHER.INITQ"}))
    machine.start_monitor("--initq", "OTHER.INITQ")
    machine.put()
    (run,) = machine.wait_for(state="started")
    machine.end_monitor(signal.SIGKILL)
    machine.start_monitor()
    until(lambda: f":{INITQ}:" in machine.runs()[0]["monitor"])
    machine.gate.touch()
    (ended,) = machine.wait_for(state="exited")
    assert (ended["run_id"], ended["exit_status"]) == (run["run_id"], 0)


def test_a_killed_daemons_monitor_ends_at_once_and_the_next_has_its_number_and_its_runs(daemon, tmp_path):
    gate = tmp_path / "gate"
    job = tmp_path / "job"
    job.write_text(f"#!/bin/sh\nwhile [ ! -e {gate} ]; do sleep 0.02; done\n")
    job.chmod(0o755)
    one = daemon(with_monitor=True)
    runs = lambda qm, **where: qm.call(Runs(where=where)).rows  # noqa: E731
    with one.connect() as qm:
        define(qm, "P", "PROCESS", appl_id=str(job), instances=1)
        trigger = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": INITQ}
        define(qm, "Q", process_name="P", def_persistence="persistent", **trigger)
        until(lambda: qm.call(Display(object_type="QLOCAL", name=INITQ)).rows[0]["open_input_count"])
        qm.put_many("Q", [b"one", b"two"])
        until(lambda: runs(qm, state="held") and runs(qm, state="started"))
        with qm.open("Q", "input_shared") as q:
            q.get_many(2)
    child = one.wait_for_event("monitor started")["pid"]
    one.kill()
    until(lambda: not is_there(child))
    died = time.monotonic()
    one.start()
    gate.touch()
    with one.connect() as qm:
        until(lambda: len(runs(qm, state="exited")) == 2)
        assert {run["monitor"].rpartition(":")[2] for run in runs(qm)} == {"1"}
    assert time.monotonic() - died < 10


def test_a_killed_daemons_monitor_does_not_wait_for_its_programs(daemon):
    one = daemon(with_monitor=True)
    with one.connect() as qm:
        define(qm, "P", "PROCESS", appl_id="sh -c 'sleep 60'")
        trigger = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": INITQ}
        define(qm, "Q", process_name="P", **trigger)
        until(lambda: qm.call(Display(object_type="QLOCAL", name=INITQ)).rows[0]["open_input_count"])
        qm.put("Q", b"one")
        (run,) = until(lambda: qm.call(Runs(where={"state": "started"})).rows)
    one.kill()
    try:
        assert one.wait_for_event("monitor stops")["ends_programs"] is False
        assert one.wait_for_event("program left running")["run"] == run["run_id"]
    finally:
        kill(run["pid"])


def test_the_cap_counts_what_other_monitors_run(machine, tmp_path):
    machine.start_monitor()
    machine.put()
    (first,) = machine.wait_for(state="started")
    stop, ready = threading.Event(), threading.Event()
    own = monitor.MonitorOptions(data=tmp_path / "another host's", initiation_q=INITQ)
    # It has a data directory of its own, as another account's has, so all it knows of the first is the ledger.
    other = threading.Thread(
        target=monitor.run, args=(machine.daemon.address, own), kwargs={"stop": stop, "ready": ready.set}
    )
    machine.monitor.send_signal(signal.SIGSTOP)
    try:
        other.start()
        assert ready.wait(20)
        time.sleep(1.0)
        machine.put()
        (held,) = machine.wait_for(state="held")
        expected = f"1 of P run, 1 of them under other monitors (run {first['run_id']} of {first['monitor']})"
        assert held["why"] == f"{expected}, and 1 may run at a time"
        machine.monitor.send_signal(signal.SIGCONT)
        machine.gate.touch()
        machine.wait_for(2, state="exited")
    finally:
        machine.monitor.send_signal(signal.SIGCONT)
        stop.set()
        other.join()


def test_gets_that_are_inhibited_are_reported_once_and_not_every_second(machine):
    machine.start_monitor()
    with machine.daemon.connect() as qm:
        qm.call(Alter(object_type="QLOCAL", name=INITQ, attributes={"inhibit_get": "disabled"}))
        until(lambda: machine.events("no trigger message can be taken"))
        time.sleep(2.5)
        assert machine.events("no trigger message can be taken") == 1
        qm.call(Alter(object_type="QLOCAL", name=INITQ, attributes={"inhibit_get": "enabled"}))
    machine.gate.touch()
    machine.put()
    machine.wait_for(state="exited")
