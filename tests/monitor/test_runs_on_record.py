"""What the ledger holds of a monitor that died, whatever it was doing."""

from __future__ import annotations

import json
import os
import secrets

from tests.monitor.monitored_machine import INITQ
from tests.waiting import until
from trigmon.keeper import run_directory
from trigmon.launch.keeper_client import Keepers
from trigmon.launch.launch_plan import LaunchPlan
from trigmon.monitor.registration import own_id
from trigmon.mq.calls import ChangeRun, RecordRun
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.run import RunState
from trigmon.rules.runs.new_run_record import new_run_id, recorded


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
