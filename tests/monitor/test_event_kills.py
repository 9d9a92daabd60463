"""The queue manager is killed while runs fail and queues are held: what the ledger says was told once, never not."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import time
from collections import Counter

import pytest

from tests.daemons import define
from tests.ledger import recorded_runs
from tests.waiting import until
from trigmon.mq.calls import Alter, Display, Pauses, Resume, Statistics
from trigmon.mq.errors import CommandFailed, MQError, NoMsgAvailable
from trigmon.mq.event_kinds import EVENT_QUEUE
from trigmon.mq.run import OPEN, Ending, read_run

INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
BETWEEN_KILLS_S = (0.05, 0.6)
NAMES = {
    Ending.FAILED: "run_failed",
    Ending.COULD_NOT_START: "run_could_not_start",
    Ending.UNKNOWN: "run_end_unknown",
}


class FailingMachine:
    """A queue manager whose programs all fail, on queues that the breaker holds and on one of type EVERY."""

    def __init__(self, daemon, directory):
        self.daemon = daemon
        self.directory = directory
        self.held = set()
        self.resumed = Counter()
        job = directory / "job"
        job.write_text("#!/bin/sh\necho it failed >&2\nexit 3\n")
        job.chmod(0o755)
        with daemon.connect() as qm:
            qm.call(Alter(object_type="QMGR", name="", attributes={"trigmon_event": "enabled"}))
            qm.call(Alter(object_type="QLOCAL", name=EVENT_QUEUE, attributes={"max_q_depth": 1_000_000}))
            define(qm, "FAILS", "PROCESS", appl_id=str(job), retry=1, retry_wait_s=1, breaker=2)
            define(qm, "NONE", "PROCESS", appl_id="/no/such/program", retry=0, breaker=1)
            trigger = {"trigger_control": "on", "initiation_q_name": INITQ, "def_persistence": "persistent"}
            for name in ("ONE", "TWO"):
                define(qm, name, process_name="FAILS", **trigger)
            define(qm, "THREE", process_name="NONE", **trigger)
            define(qm, "EVERY", process_name="FAILS", trigger_type="every", **trigger)

    def monitor(self):
        with (self.directory / "monitor.log").open("ab") as log:
            # A program that is left as the monitor ends has no end in the ledger before a next monitor comes.
            argv = [sys.executable, "-m", "trigmon", "monitor", "--stop-runs", "--data", str(self.daemon.data)]
            return subprocess.Popen(argv, env=self.daemon.env, stdin=subprocess.DEVNULL, stderr=log)

    def load(self, until_s):
        """Puts, and resumes what is held, until that time; a queue manager that dies ends it."""
        with contextlib.suppress(MQError, OSError), self.daemon.connect() as qm:
            while time.monotonic() < until_s:
                for name in ("ONE", "TWO", "THREE", "EVERY"):
                    qm.put(name, b"x")
                self.look(qm)
                for q_name, since_ms in sorted(self.held - self.resumed.keys()):
                    with contextlib.suppress(CommandFailed):
                        qm.call(Resume(what="queue", name=q_name))
                        self.resumed[q_name, since_ms] += 1
                time.sleep(0.02)

    def look(self, qm):
        """Notes which queues the ledger says are held, and since when."""
        rows = qm.call(Pauses()).rows
        self.held |= {(row["name"], row["since_ms"]) for row in rows if row["what"] == "queue"}

    def kill_again_and_again(self, kills, seed):
        """Kills at random moments of the load; each tenth time a run more has ended before, however slow that is."""
        chance = random.Random(seed)
        for number in range(kills):
            loaded = time.monotonic() + chance.uniform(*BETWEEN_KILLS_S)
            self.load(loaded)
            if number % 10 == 0:
                self.wait_for_another_end()
            self.daemon.kill()
            self.daemon.start()

    def wait_for_another_end(self):
        with self.daemon.connect() as qm:
            before = self.count_ended(qm)
            qm.put("EVERY", b"x")
            until(lambda: self.count_ended(qm) > before)

    def count_ended(self, qm):
        return sum(read_run(run).is_ended for run in recorded_runs(qm))

    def is_quiet(self, qm):
        return not any(run["state"] in OPEN and run["state"] != "held" for run in recorded_runs(qm))

    def judge(self):
        with self.daemon.connect() as qm:
            until(lambda: self.is_quiet(qm))
            self.look(qm)
            runs, told = recorded_runs(qm), Counter()
            with qm.open(EVENT_QUEUE, "input_shared") as queue, contextlib.suppress(NoMsgAvailable):
                while True:
                    for message in queue.get_many(200):
                        event = json.loads(message.text)
                        about = event.get("run_id") or (event.get("q_name"), event["at_ms"])
                        told[event["event"], about] += 1
            dropped = qm.call(Statistics()).values["events"].get("event_message_dropped", 0)
        assert dropped == 0
        ended = {run.run_id: run.ending for run in map(read_run, runs)}
        wrong = {(NAMES[how], run_id) for run_id, how in ended.items() if how in NAMES}
        held = {("queue_held", key) for key in self.held}
        untold = (wrong | held) - told.keys()
        assert untold == set(), "the ledger says it, and it was not told"
        assert {key: count for key, count in told.items() if count > 2} == {}
        assert {about for event, about in told if event.startswith("run_")} == {run_id for _, run_id in wrong}
        resumptions = Counter(about[0] for event, about in told.elements() if event == "queue_resumed")
        acknowledged = Counter(q_name for q_name, _ in self.resumed)
        assert all(resumptions[q_name] >= count for q_name, count in acknowledged.items())
        return len(wrong), len(held)


@pytest.mark.parametrize("kills", [4, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_what_the_ledger_says_is_reported_and_at_most_twice_however_often_it_is_killed(daemon, tmp_path, kills):
    machine = FailingMachine(daemon(), tmp_path)
    monitor = machine.monitor()
    try:
        with machine.daemon.connect() as qm:
            until(lambda: qm.call(Display(object_type="QLOCAL", name=INITQ)).rows[0]["open_input_count"])
            qm.put("ONE", b"x")
            until(lambda: any(run["end_ms"] for run in recorded_runs(qm)))
        machine.kill_again_and_again(kills, seed=kills)
        machine.load(time.monotonic() + 1)
    finally:
        monitor.terminate()
        assert monitor.wait(60) == 0
    failed, held = machine.judge()
    assert failed >= kills / 10
    assert held >= 1
