"""Finds out what became of runs whose keeper does not report on them, and supervises those that still run.

A keeper outlives its monitor, and writes what it saw into the runs' directories: so a run that an earlier monitor
started is found, at the keeper or by its exit. Only when the keeper itself has died is the process looked for, and
then its exit status is not known.
"""

from __future__ import annotations

import os
import pwd
import signal
import time

from trigmon.keeper import run_directory
from trigmon.launch.keeper_client import Keeper
from trigmon.log import logger
from trigmon.monitor.child_process import Child, Exited, KeptBy, Lost, NotStarted, Unowned, find, now_ms
from trigmon.monitor.child_table import ChildTable
from trigmon.monitor.launch_requests import LaunchRequests
from trigmon.monitor.run_results import RunResults
from trigmon.monitor.run_termination import send_signal
from trigmon.mq.run import RunState

log = logger()


class RunRecovery:
    """Finds the processes of runs. ``unowned`` are those whose keeper has died, by their pidfd."""

    def __init__(self, children: ChildTable, requests: LaunchRequests, results: RunResults) -> None:
        self.unowned: dict[int, Child] = {}
        self._children = children
        self._requests = requests
        self._results = results

    def find_runs(self) -> None:
        """Finds out what became of the runs that are to be found, and records it or supervises them."""
        for child in self._children.to_find():
            self._find(child)

    def lose_keeper(self, keeper: Keeper) -> None:
        """Notes that a keeper has ended: its runs are to be found."""
        kept = self._requests.lose_keeper(keeper)
        log.error("the keeper has ended", keeper=keeper.name, runs=[child.run_id for child in kept])
        for child in kept:
            child.keeper, child.kept_by, child.may_be_unstarted = None, keeper.name, not child.pid
            self._children.find_later(child)

    def record_unowned_end(self, pidfd: int) -> None:
        """Records the end of a program whose keeper has died."""
        child = self.unowned.pop(pidfd)
        send_signal(child, signal.SIGTERM)  # what it left in its process group; its keeper would have ended that
        os.close(child.pidfd)
        child.pidfd = -1
        self._results.record_unknown_end(child, "its keeper had ended before it", now_ms())

    def _find(self, child: Child) -> None:
        match find(child, self._requests.running_keeper):
            case Exited(exit_fields):
                self._results.record_exit(child, exit_fields)
            case KeptBy(keeper, pid, start_ms, argv):
                child.keeper = keeper
                if pid:
                    self._record_running(child, pid, start_ms, argv)
            case Unowned(pid, pidfd, start_ms, argv):
                child.pidfd = pidfd
                child.is_of_another_user = not is_its_own(pid, child.order.process.run_as)
                self.unowned[pidfd] = child
                child.ends_by = self._ends_by(child, start_ms or now_ms())
                self._record_running(child, pid, start_ms or now_ms(), argv)
            case NotStarted():
                log.info("run taken up", run=child.run_id, state=RunState.DUE.value)
                why = "its program had not been started when its monitor or its keeper ended"
                self._requests.hold_again(child.order, why)
            case Lost(why):
                self._results.record_unknown_end(child, why)

    def _record_running(self, child: Child, pid: int, start_ms: int, argv: list[str]) -> None:
        self._results.record_process(child, pid, start_ms, argv)
        log.info("program found running", run=child.run_id, pid=pid)

    def _ends_by(self, child: Child, start_ms: int) -> float:
        """Returns when the time limit of a program ends whose keeper has died, by time.monotonic()."""
        limit_s = self._requests.time_limit_s(child)
        return time.monotonic() + limit_s - (now_ms() - start_ms) / 1000 if limit_s else 0.0


def is_its_own(pid: int, run_as: str) -> bool:
    """Returns whether a process belongs to the user that its definition names."""
    try:
        return run_directory.is_of_user(pid, pwd.getpwnam(run_as).pw_uid if run_as else os.geteuid())
    except KeyError:
        return False
