"""The processes that ended programs left behind: they get SIGTERM, and SIGKILL after the grace of their run.

Standard library only: the keeper imports it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection
from contextlib import suppress

from trigmon.keeper.subreaper import children, open_process, parent_of
from trigmon.keeper.termination import Run

_LOOK_AGAIN_S = 1.0
_GRACE_S = 10.0
"""For a process that names no run."""


class OrphanProcesses:
    """The orphans of one keeper, and those of its parent (process id ``parent``, 0: there is none).

    ``ended_run_of`` returns the run that a process belongs to ("" when that cannot be found out), or None while a
    program runs that the process may belong to.
    """

    def __init__(self, parent: int, ended_run_of: Callable[[int], str | None]) -> None:
        self._parent = parent
        self._ended_run_of = ended_run_of
        self._kill_at_by_run: dict[str, float] = {}
        self._kill_at: dict[int, float] = {}
        self._look_again_at = 0.0

    def __len__(self) -> int:
        return len(self._kill_at)

    @property
    def due_at(self) -> float | None:
        """When to look again, by the monotonic clock; None when no program has left anything."""
        return self._look_again_at if self._kill_at_by_run or self._kill_at else None

    def program_ended(self, run: Run) -> None:
        """Begins the grace of what the program of this run has left."""
        self._kill_at_by_run[run.run_id] = time.monotonic() + run.grace_s

    def was_reaped(self, pid: int) -> None:
        """Removes a process that has ended."""
        self._kill_at.pop(pid, None)

    def end_all(self, own: Collection[int]) -> None:
        """Ends the children of keeper and parent but for the keeper's ``own``; what may be a program's stays."""
        now = time.monotonic()
        found = [pid for pid in (*children(), *(children(self._parent) if self._parent else ())) if pid not in own]
        for pid in found:
            run_id = self._ended_run_of(pid)
            if run_id is None:
                continue
            is_new = pid not in self._kill_at
            kill_at = self._kill_at.setdefault(pid, self._kill_at_by_run.get(run_id, now + _GRACE_S))
            if now >= kill_at:
                self._signal(pid, signal.SIGKILL)
            elif is_new:
                self._signal(pid, signal.SIGTERM)
                self._signal(pid, signal.SIGCONT)
        self._kill_at = {pid: kill_at for pid, kill_at in self._kill_at.items() if pid in found}
        if not found:
            self._kill_at_by_run.clear()
        self._look_again_at = now + _LOOK_AGAIN_S

    def _signal(self, pid: int, number: signal.Signals) -> None:
        """Signals a process as long as it is an orphan: the parent waits for its own at any time."""
        with suppress(OSError), open_process(pid) as process:
            if parent_of(pid) in (os.getpid(), self._parent):
                signal.pidfd_send_signal(process, number)
