"""What outlives what: the queue manager, the monitor and the programs are separate processes, and each may go first."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.daemons import define
from tests.monitor.conftest import kill
from tests.server.test_monitor_child import is_alive
from tests.waiting import until
from trigmon.keeper import run_directory
from trigmon.keeper.subreaper import children
from trigmon.launch.keeper_client import Keepers
from trigmon.launch.launch_plan import LaunchPlan
from trigmon.monitor import monitor
from trigmon.monitor.registration import own_id
from trigmon.mq.calls import Alter, CancelRun, ChangeRun, Display, RecordRun, Runs
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.run import RunState
from trigmon.rules.runs.new_run_record import new_run_id, recorded

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"


class MonitoredMachine:
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

    def start_monitor(self, *options):
        with self.log.open("ab") as log:
            argv = [sys.executable, "-m", "trigmon", "monitor", *options]
            self.monitor = subprocess.Popen(argv, env=self.daemon.env, stdin=subprocess.DEVNULL, stderr=log)
        count = self.events("monitor serves") + 1
        until(lambda: self.events("monitor serves") >= count)

    def events(self, event):
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return sum(json.loads(line)["event"] == event for line in lines if line.startswith("{"))

    def keeper(self):
        """The process id of the last keeper's parent that was started."""
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line["pid"] for line in lines if line["event"] == "keeper started"][-1]

    def kill_keeper(self, *, with_its_parent=True):
        """The last that was started; alone it leaves nothing unknown, for its parent makes another."""
        parent = self.keeper()
        (keeper,) = (pid for pid in children(parent) if b"trigmon.keeper.main" in cmdline(pid))
        if with_its_parent:
            os.kill(keeper, signal.SIGSTOP)  # else it would be the next one's parent
            os.kill(parent, signal.SIGKILL)
        os.kill(keeper, signal.SIGKILL)

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


def cmdline(pid):
    return Path(f"/proc/{pid}/cmdline").read_bytes()


@pytest.fixture
def machine(daemon, tmp_path):
    made = MonitoredMachine(daemon(), tmp_path)
    yield made
    made.end()


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
    until(lambda: not is_alive(run["pid"]))


def test_the_end_of_a_program_is_on_record_though_no_monitor_ran(machine):
    machine.job.write_text(f"#!/bin/sh\nwhile [ ! -e {machine.gate} ]; do sleep 0.02; done\necho bye >&2; exit 3\n")
    machine.start_monitor()
    machine.put()
    (run,) = machine.wait_for(state="started")
    assert machine.end_monitor(signal.SIGKILL) == -signal.SIGKILL
    machine.gate.touch()
    until(lambda: not is_alive(run["pid"]))
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
    assert not is_alive(run["pid"])
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
    until(lambda: not is_alive(run["pid"]))
    machine.start_monitor()
    (run,) = machine.wait_for(state="exited")
    assert run["why"] == "ended by its time limit of 2 s: killed by SIGTERM"


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
    until(lambda: not is_alive(int(left.read_text())))


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
    assert not is_alive(run["pid"])
    assert machine.runs()[0]["state"] == "unknown"


def test_a_program_that_ended_while_neither_monitor_nor_keeper_ran_is_unknown(machine):
    machine.start_monitor()
    machine.put()
    (run,) = machine.wait_for(state="started")
    machine.end_monitor(signal.SIGKILL)
    machine.kill_keeper()
    kill(run["pid"])
    until(lambda: not is_alive(run["pid"]))
    machine.start_monitor()
    (record,) = machine.wait_for(state="unknown")
    assert record["why"] == "its keeper was gone when it ended: how it ended is not known"


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
    until(lambda: not is_alive(child))
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


class TestRunsOnRecord:
    """What the ledger holds of a monitor that died, whatever it was doing."""

    # Looked for among all processes of the machine, where another run of these tests may be at work.
    RUN_ID = new_run_id(1, secrets.token_bytes(4))

    def record(self, machine, state, run_ids=(RUN_ID,), number=1):
        """Records of the monitor that will be started, or of another number."""
        trigger = TriggerMessage(q_name="Q", process_name="P", appl_type=6, appl_id=str(machine.job))
        directory = machine.daemon.data / "monitors"
        directory.mkdir(exist_ok=True)
        name = f"{own_id(directory)}:{INITQ}:{number}"
        with machine.daemon.connect() as qm:
            for run_id in run_ids:
                record = recorded(run_id, trigger, state=state, monitor=name, now_ms=1, initiation_q=INITQ)
                qm.call(RecordRun(run_id=run_id, record=record.json))

    def directory(self, machine):
        return machine.daemon.data / "runs" / self.RUN_ID

    def test_a_due_run_that_was_never_started_is_started(self, machine):
        self.record(machine, RunState.DUE)
        machine.gate.touch()
        machine.start_monitor()
        (run,) = machine.wait_for(state="exited")
        assert run["exit_status"] == 0
        assert (self.directory(machine) / "stdout").read_text() == "done\n"

    def claimed(self, machine, run_id=RUN_ID):
        """The run as a keeper started it, of which the monitor never heard; the keeper's end of it."""
        keepers = Keepers(machine.daemon.data / "monitors", f"{INITQ}.1.keeper")
        plan = LaunchPlan(argv=[str(machine.job)], environment={})
        environment = os.environ | {"TRIGMON_RUN": run_id}
        keepers.own().start(run_id, plan, environment, self.directory(machine), time_limit_s=0, grace_s=1)
        until(lambda: (run_directory.read(self.directory(machine)) or {}).get("pid"))
        return keepers

    def test_a_due_run_that_had_started_and_runs_is_watched_and_not_started_again(self, machine):
        self.record(machine, RunState.DUE)
        keepers = self.claimed(machine)
        machine.start_monitor()
        (run,) = machine.wait_for(state="started")
        assert run["pid"] == run_directory.read(self.directory(machine))["pid"]
        machine.gate.touch()
        (run,) = machine.wait_for(state="exited")
        assert run["exit_status"] == 0
        keepers.close()

    def test_a_due_run_that_had_started_and_ended_has_its_exit_on_record(self, machine):
        self.record(machine, RunState.DUE)
        machine.gate.touch()
        self.claimed(machine).close()
        until(lambda: run_directory.read_exit(self.directory(machine)))
        machine.start_monitor()
        (run,) = machine.wait_for(state="exited")
        claim = run_directory.read(self.directory(machine))
        assert (run["exit_status"], run["pid"], run["start_ms"]) == (0, claim["pid"], claim["start_ms"])
        assert machine.events("keeper started") == 0

    def test_a_due_run_that_could_not_be_executed_has_its_dead_letter(self, machine):
        machine.job.write_text("no #! line\n")
        self.record(machine, RunState.DUE)
        keepers = Keepers(machine.daemon.data / "monitors", f"{INITQ}.1.keeper")
        plan = LaunchPlan(argv=[str(machine.job)], environment={})
        keepers.own().start(self.RUN_ID, plan, {}, self.directory(machine), time_limit_s=0, grace_s=1)
        until(lambda: run_directory.read_exit(self.directory(machine)))
        keepers.close()
        machine.start_monitor()
        (run,) = machine.wait_for(state="failed")
        assert "Exec format error; its trigger message was dropped: " in run["why"]

    def test_a_due_run_that_may_have_started_and_is_gone_is_unknown_and_not_started_again(self, machine):
        self.record(machine, RunState.DUE)
        self.directory(machine).mkdir(parents=True)
        machine.start_monitor()
        (run,) = machine.wait_for(state="unknown")
        assert run["why"] == "its keeper ended in the moment of starting it: how it ended is not known"
        assert list(self.directory(machine).iterdir()) == []

    def test_a_run_that_is_gone_with_its_directory_is_unknown(self, machine):
        self.record(machine, RunState.STARTED)
        machine.start_monitor()
        (run,) = machine.wait_for(state="unknown")
        assert run["why"] == "its directory is gone: how it ended is not known"

    def test_a_run_whose_end_nobody_saw_has_no_duration(self, machine):
        self.record(machine, RunState.STARTED)
        with machine.daemon.connect() as qm:
            qm.call(ChangeRun(run_id=self.RUN_ID, fields={"pid": 2**22 + 1, "start_ms": 1000}))
        machine.start_monitor()
        (run,) = machine.wait_for(state="unknown")
        assert run["end_ms"] == 0
        shown = json.loads(machine.daemon.trigmon("runs", "show", "--output", "json").stdout)
        assert shown["duration_s"] is None

    def test_runs_of_any_number_that_nobody_has_are_taken_up(self, machine):
        self.record(machine, RunState.HELD, number=7)
        (machine.daemon.data / "monitors" / f"{INITQ}.7").write_text("4711\n")
        machine.gate.touch()
        machine.start_monitor()
        (run,) = machine.wait_for(state="exited")
        assert run["monitor"].endswith(":1")

    def test_more_held_runs_than_the_ledger_lists_at_a_time_are_all_started(self, machine):
        self.record(machine, RunState.HELD, [f"{number:016x}" for number in range(300)])
        machine.gate.touch()
        machine.start_monitor()
        until(lambda: len(list((machine.daemon.data / "runs").glob("*/stdout"))) == 300)
        until(lambda: not any(machine.runs(state=state) for state in ("held", "due", "started")))
