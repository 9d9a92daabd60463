"""The reaper thread: reads the keepers' messages, records ends of programs, and has held runs started.

It has its own connection to the queue manager. While the queue manager is away, its changes of run records wait, and
held runs wait too.
"""

from __future__ import annotations

import os
import select
import threading
import time

from trigmon.launch.keeper_client import Keeper, KeeperGone
from trigmon.log import logger
from trigmon.monitor.child_table import ChildTable
from trigmon.monitor.launch_requests import LaunchRequests
from trigmon.monitor.ledger_writer import LedgerWriter
from trigmon.monitor.run_recovery import RunRecovery
from trigmon.monitor.run_results import RunResults
from trigmon.monitor.run_resumption import RunResumption
from trigmon.monitor.run_starter import Starter
from trigmon.monitor.run_termination import RunTermination
from trigmon.monitor.spark_servers.session_admission import SessionAdmission

log = logger()
# How soon a program whose keeper has died is looked at again, in seconds: its limits are checked here.
_LOOK_AGAIN_S = 1.0


class Reaper:
    """The thread and what wakes it. ``stop_at`` is when it ends at the latest, by time.monotonic(), once it is to end.

    ``start_lock`` is held while due runs are taken: one that is just being started is not to be looked for.
    """

    def __init__(
        self,
        children: ChildTable,
        ledger: LedgerWriter,
        starter: Starter,
        admission: SessionAdmission,
        requests: LaunchRequests,
        termination: RunTermination,
        resumption: RunResumption,
        results: RunResults,
        recovery: RunRecovery,
    ) -> None:
        self.start_lock = threading.Lock()
        self.stop_at: float | None = None
        self.failure: BaseException | None = None
        self._children = children
        self._ledger = ledger
        self._starter = starter
        self._admission = admission
        self._requests = requests
        self._termination = termination
        self._resumption = resumption
        self._results = results
        self._recovery = recovery
        self._polled: tuple[Keeper, ...] = ()
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = threading.Thread(target=self._run, name="reaper", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def wake(self) -> None:
        """Wakes the thread."""
        os.eventfd_write(self._wake, 1)

    def polls(self, keeper: Keeper | None) -> bool:
        """Returns whether the thread waits for this keeper's messages too."""
        return keeper in self._polled

    def join(self) -> None:
        """Waits until the thread has ended."""
        self._thread.join()

    def close(self) -> None:
        """Closes what wakes the thread; it has ended, and nothing calls :meth:`wake` any more."""
        os.close(self._wake)

    def _run(self) -> None:
        try:
            while not self._is_over():
                self._wait()
                self._turn()
        except BaseException as error:
            self.failure = error
            log.exception("the reaper ended")
        finally:
            self._ledger.close()

    def _turn(self) -> None:
        self._results.record_progress()
        self._results.record_looks(at_once=self.stop_at is not None)
        self._recovery.find_runs()
        self._termination.end_programs()
        if self.stop_at is not None:
            self._ledger.write(all_of_it=True)
        elif self._starter.asks_now or self._ledger.write():
            self._start_programs()

    def _start_programs(self) -> None:
        """Starts what may be started by the ledger, which is asked in the turn in which it learns what has happened."""
        with self.start_lock:
            for planned in self._starter.due():
                self._requests.start(*planned)
            if not self._ledger.pause_s:  # a start is to be written too
                for waiting in self._admission.ready():
                    self._requests.start(*waiting)
        for run_id, why in self._admission.reasons():
            self._ledger.note(run_id, {"why": why})

    def _wait(self) -> None:
        """Waits until something has happened, and handles it."""
        self._polled = self._requests.keepers()
        keepers = {keeper.fileno(): keeper for keeper in self._polled}
        unowned = self._recovery.unowned
        poll = select.poll()
        for descriptor in (self._wake, *keepers, *unowned):
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(self._pause_ms()):
            if descriptor in keepers:
                self._read_messages(keepers[descriptor])
            elif descriptor in unowned:
                self._recovery.record_unowned_end(descriptor)
            else:
                os.eventfd_read(self._wake)

    def _read_messages(self, keeper: Keeper) -> None:
        try:
            messages = keeper.read_messages()
        except KeeperGone:
            self._recovery.lose_keeper(keeper)
            return
        for message in messages:
            child = self._children.get(message.get("run", ""))
            if child is None:
                continue  # another monitor's: a keeper sends all its messages to all its monitors
            if message["say"] == "started":
                self._results.record_start(child, message)
            elif message["say"] == "ended":
                self._results.record_end(child, message)
            elif message["say"] == "failed":
                self._results.record_failure(child, message)
            elif message["say"] == "later":
                self._resumption.try_later(child, message["error"])
            elif message["say"] == "taken":
                child.keeper = None
                self._children.find_later(child)

    def _is_over(self) -> bool:
        if self.stop_at is None:
            return False
        if time.monotonic() >= self.stop_at:
            return True
        children = self._children.all()
        awaited = children if self._termination.ends_all else [child for child in children if not child.pid]
        is_behind = self._ledger.behind
        return not (awaited or self._children.has_to_find or is_behind)

    def _pause_ms(self) -> float | None:
        """Returns how long to wait in milliseconds, None without an end."""
        now = time.monotonic()
        is_behind = self._ledger.behind
        pauses = [self._ledger.writes_in_s] if is_behind else []
        pauses += [_LOOK_AGAIN_S] if self._recovery.unowned else []
        pauses += [at - now for at in self._children.find_times()]
        pauses += [at - now for at in self._results.looks_due_at()]
        if self.stop_at is not None:
            pauses.append(self.stop_at - now)
        else:
            pauses += [max(at - now, self._ledger.pause_s) for at in self._starter.asks_at()]
            pauses += [child.opens_by - now for child in self._children.all() if child.opens_by]
        return 1 + 1000 * max(0.0, min(pauses)) if pauses else None
