"""The programs that a monitor started or is to start, as the monitor's own thread sees them.

That thread asks the keeper for a start and goes straight back to its waiting get. Everything after that belongs to
the reaper thread (:mod:`trigmon.monitor.reaper`): it records that a program was started
(:mod:`trigmon.monitor.run_results`) and how it ended, ends it (:mod:`trigmon.monitor.run_termination`), and finds runs
whose keeper does not report (:mod:`trigmon.monitor.run_recovery`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from trigmon.keeper import run_directory
from trigmon.launch.keeper_client import Keeper, KeeperGone, Keepers
from trigmon.launch.launch_plan import Launcher, LaunchError
from trigmon.monitor.child_process import Child, Limits
from trigmon.monitor.child_table import ChildTable
from trigmon.monitor.launch_requests import LaunchRequests
from trigmon.monitor.ledger_writer import LedgerWriter
from trigmon.monitor.reaper import Reaper
from trigmon.monitor.remote_looks import NO_BRIDGES, Bridges, RemoteLooks
from trigmon.monitor.run_recovery import RunRecovery
from trigmon.monitor.run_results import RunResults
from trigmon.monitor.run_resumption import RunResumption
from trigmon.monitor.run_starter import Starter
from trigmon.monitor.run_termination import RunTermination
from trigmon.monitor.run_traces import RunTraces
from trigmon.monitor.spark_servers.progress_poller import ProgressPoller
from trigmon.monitor.spark_servers.session_admission import SessionAdmission
from trigmon.mq.attributes import Process
from trigmon.mq.calls import Caps
from trigmon.mq.run import Run, RunState

# How long a stopping monitor takes to write its changes, and how much longer than the grace it waits for ends.
_FLUSH_S = 5.0


class Programs:
    """The programs of one monitor."""

    def __init__(
        self,
        ledger: LedgerWriter,
        launchers: Mapping[int, Launcher],
        runs_directory: Path,
        keepers: Keepers,
        limits: Limits,
        warm: SessionAdmission,
        traces: RunTraces,
        *,
        q_mgr_name: str,
        address: str = "",
        bridges: Bridges = NO_BRIDGES,
    ) -> None:
        """Starts the reaper thread; ``address`` is what started programs connect to ("": the queue manager's name)."""
        self.warm = warm
        self.launchers = launchers
        self.runs_directory = runs_directory
        self.limits = limits
        self._ledger = ledger
        self._children = ChildTable()
        self._starter = Starter(ledger, launchers, limits, q_mgr_name, address, traces, bridges.variables())
        self._looks = RemoteLooks(bridges, self.wake)
        self._termination = RunTermination(self._children, ledger, self._starter, warm, limits, self._looks)
        self._requests = LaunchRequests(keepers, self._children, self._starter, warm, limits, runs_directory)
        resumption = RunResumption(self._children, self._requests, self._termination, launchers)
        self._poller = ProgressPoller(self.wake)
        own = (self._children, ledger, self._starter, warm, self._requests)
        results = RunResults(*own, resumption, self._poller, launchers, traces, self._looks)
        recovery = RunRecovery(self._children, self._requests, results)
        self._reaper = Reaper(*own, self._termination, resumption, results, recovery)
        self.start_lock = self._reaper.start_lock
        warm.wake = self.wake
        self._reaper.start()

    @property
    def caps(self) -> Caps:
        """The limits that the ledger applies where a definition sets none."""
        return self._starter.caps

    @property
    def waiting(self) -> int:
        """How many runs are held, as far as is known."""
        return self._starter.waiting

    def knows(self, run_id: str) -> bool:
        """Returns whether a run is supervised here, so that it is not resumed a second time."""
        with self._children.lock:
            return run_id in self._children or self.warm.knows(run_id) or self._ledger.is_pending(run_id)

    def directory(self, run_id: str) -> Path:
        """Returns the directory of a run's output."""
        return self.runs_directory / run_id

    def start(self, run: Run) -> None:
        """Starts a run that is due in the ledger."""
        planned = self._starter.planned(run)
        child = self._requests.start(*planned) if planned is not None else None
        if child is None or not self._reaper.polls(child.keeper):
            self.wake()

    def check_plan(self, run: Run, process: Process | None) -> None:
        """Raises LaunchError, or OSError, where the program of a run could not be started now. Starts nothing."""
        self._starter.check_plan(run, process)

    def held(self, count: int) -> None:
        """Counts so many more held runs."""
        self._starter.held(count)
        self.wake()

    def apply_controls(self, cancel: list[str]) -> None:
        """Notes the runs to cancel, and looks at held runs again: what they wait for may have changed."""
        self._termination.cancelled = frozenset(cancel)
        self._starter.look_again()
        self.wake()

    def take_up(self, run: Run, kept_by: str) -> None:
        """Takes over a run that an earlier monitor may have started; what became of it is found out and recorded.

        ``kept_by`` is the keeper of the monitor that had it.
        """
        if not self._starter.can_read(run):
            self.wake()
            return
        order = self._starter.order_of(run)
        base = self.directory(order.run_id)
        child = Child(
            order=order,
            directory=run_directory.all_of(base)[-1],
            base=base,
            may_be_unstarted=run.state == RunState.DUE,
            kept_by=kept_by,
        )
        self.warm.take_up(order.run_id)
        self._children.add(child)
        self._children.find_later(child)
        self.wake()

    def expect(self, processes: list[Process]) -> None:
        """Announces runs of these processes to the keeper, which keeps their interpreters warm."""
        for process in processes:
            with suppress(LaunchError, OSError, KeeperGone):  # a start says why, and another announcement comes
                self._requests.expect(self._starter.expected(process))
                self.wake()

    def ask_keeper(self, request: Callable[[Keeper], None]) -> None:
        """Calls ``request`` with this monitor's keeper. Raises KeeperGone, OSError when no keeper can be started."""
        self._requests.ask_keeper(request)
        self.wake()

    def wake(self) -> None:
        """Wakes the reaper thread."""
        self._reaper.wake()

    def check(self) -> None:
        """Raises RuntimeError if the reaper thread has failed: without it no end of a program is seen."""
        if self._reaper.failure is not None:
            raise RuntimeError("the monitor's reaper has ended") from self._reaper.failure

    def stop(self, *, end_runs: bool = False, in_time: bool = True) -> list[Child]:
        """Starts nothing more, writes what is known, and returns the programs that run on.

        ``end_runs``: they are ended, SIGTERM and after the grace SIGKILL, and that is waited for. ``in_time`` False:
        nothing is waited for.
        """
        ends_all = end_runs and in_time
        patience_s = _FLUSH_S + (self.limits.grace_s if ends_all else 0.0)
        self._termination.ends_all, self._termination.starts_nothing = ends_all, True
        self._reaper.stop_at = time.monotonic() + (patience_s if in_time else 0.0)
        self.wake()
        self._reaper.join()
        self._poller.stop()
        self._looks.stop()
        self._reaper.close()
        return sorted(self._children.all(), key=lambda child: child.run_id)
