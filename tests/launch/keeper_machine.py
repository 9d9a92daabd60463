"""One end of a real keeper, for tests: it is asked for starts, heard, killed, and found again."""

from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path

import pytest

from tests.waiting import until
from trigmon.keeper import protocol
from trigmon.keeper.subreaper import parent_of
from trigmon.launch.keeper_client import KeeperGone, Keepers
from trigmon.launch.launch_plan import LaunchPlan

WAIT_S = 20.0
NAME = "Q.1.keeper"


class KeeperMachine:
    """A monitor's end of one keeper, and the runs' directory."""

    def __init__(self, directory, launcher=protocol.PROCESS):
        self.directory = directory
        self.launcher = launcher
        self.monitors = directory / "monitors"
        self.monitors.mkdir()
        self.keepers = Keepers(self.monitors, NAME, self.launcher)
        self.heard = []

    @property
    def keeper(self):
        return self.keepers.own()

    @property
    def pid(self):
        """The keeper's process."""
        return self.wait_for("hello", None)["pid"]

    def run(self, run_id):
        return self.directory / "runs" / run_id

    def start(
        self, run_id, *argv, time_limit_s=0, grace_s=20.0, lease_s=0, working_directory="", asks=None, **environment
    ):
        """Starts a run; ``asks`` has further fields of the plan."""
        environment = {"TRIGMON_RUN": run_id, "PATH": os.environ["PATH"]} | environment
        argv, directory = [str(word) for word in argv], str(working_directory)
        plan = LaunchPlan(argv=argv, environment={}, working_directory=directory, **asks or {})
        limits = {"time_limit_s": time_limit_s, "grace_s": grace_s, "lease_s": lease_s}
        self.keeper.start(run_id, plan, environment, self.run(run_id), **limits)

    def shell(self, run_id, text, **more):
        self.start(run_id, "/bin/sh", "-c", text, **more)

    def wait_for(self, say, run_id):
        """Waits for the first frame of this word about this run and returns it."""
        deadline = time.monotonic() + WAIT_S
        while not (found := [frame for frame in self.heard if (frame["say"], frame.get("run")) == (say, run_id)]):
            assert time.monotonic() < deadline, self.heard
            select.select([self.keeper], [], [], 0.1)
            self.heard += self.keeper.read_messages()
        return found[0]

    def output(self, run_id, name="stdout"):
        return (self.run(run_id) / name).read_text()

    def wait_for_output(self, run_id, lines=1):
        until(lambda: (self.run(run_id) / "stdout").exists() and self.output(run_id).count("\n") >= lines)
        return self.output(run_id).split()

    def children(self):
        """Returns the child processes of the keeper, also those that it adopted."""
        return {int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()}

    def descriptors(self):
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def monitor_is_killed(self):
        """Closes the connection as a killed monitor does, and puts another monitor of the same name in its place."""
        self.keeper._link.close()
        self.heard.clear()
        self.keepers = Keepers(self.monitors, NAME, self.launcher)

    @property
    def parent(self):
        """The process above the keeper."""
        return parent_of(self.pid)

    def keeper_is_killed(self, *, with_its_parent=False):
        """Kills the keeper alone, which loses nothing, or its parent too."""
        pid, parent, keeper = self.pid, self.parent, self.keeper
        if with_its_parent:
            os.kill(pid, signal.SIGSTOP)  # else it would be the next one's parent
            os.kill(parent, signal.SIGKILL)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(KeeperGone):
            while select.select([keeper], [], [], WAIT_S)[0]:
                keeper.read_messages()
        self.keepers.lose(keeper)
        self.heard.clear()

    def end(self):
        for keeper in self.keepers.all():
            for run_id in list(keeper.runs):
                keeper.stop(run_id, protocol.STOPPED, 0)
                self.wait_for("ended", run_id)
        self.keepers.close()


def is_gone(pid):
    """Returns whether a process is neither running nor a zombie."""
    return not Path(f"/proc/{pid}").exists()
