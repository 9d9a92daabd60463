"""The exits of runs that could not be written yet, as while a disk is full. They are tried again in growing pauses.

The process of such a run is not waited for: a keeper that is killed meanwhile leaves it to its parent and the next
keeper. Standard library only: the keeper imports it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from trigmon.keeper import run_directory
from trigmon.keeper.keeper_log import report
from trigmon.keeper.termination import Run

_PAUSE_S, _PAUSE_AT_MOST_S = 1.0, 60.0


class UnwrittenExits:
    """Writes exits; ``exits`` are those that could not be written, by run. ``written`` is called for each other."""

    def __init__(self, written: Callable[[Run], None]) -> None:
        self.exits: dict[str, tuple[Run, run_directory.Fields]] = {}
        self._written = written
        self._retry_at, self._pause_s = 0.0, _PAUSE_S

    @property
    def pids(self) -> set[int]:
        """The processes that are not waited for."""
        return {run.pid for run, _ in self.exits.values()}

    @property
    def due_at(self) -> float | None:
        """When :meth:`retry` is due, by the monotonic clock; None when everything is written."""
        return self._retry_at if self.exits else None

    def write(self, run: Run, fields: run_directory.Fields) -> None:
        """Writes how a run ended, now or later."""
        if not self._is_written(run, fields):
            self._retry_at = time.monotonic() + self._pause_s

    def retry(self, now: float) -> None:
        """Writes what could not be written, when that is due; the pauses grow as long as it cannot."""
        if not self.exits or now < self._retry_at:
            return
        exits, self.exits = self.exits, {}
        for run, fields in exits.values():
            if self.exits:
                self.exits[run.run_id] = run, fields  # one that could not be written is enough to know
            else:
                self._is_written(run, fields)
        self._pause_s = min(2 * self._pause_s, _PAUSE_AT_MOST_S) if self.exits else _PAUSE_S
        self._retry_at = now + self._pause_s

    def _is_written(self, run: Run, fields: run_directory.Fields) -> bool:
        try:
            run_directory.note_exit(run.directory, fields)
        except FileNotFoundError:
            pass  # somebody removed the directory: nothing is to be kept
        except OSError as error:
            report(f"how run {run.run_id} ended could not be written: {error}")
            self.exits[run.run_id] = run, fields
            return False
        self._written(run)
        return True
