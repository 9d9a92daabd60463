"""A queue manager whose monitor is started and ended by the test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.daemons import define
from tests.waiting import until
from trigmon.keeper.subreaper import children
from trigmon.mq.calls import Runs

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


def kill(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
