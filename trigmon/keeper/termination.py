"""How a keeper ends a run, whatever started it: SIGTERM, a grace, SIGKILL, to all that belongs to it.

Standard library only: the keeper imports it.
"""

from __future__ import annotations

import signal
import time
from abc import ABC, abstractmethod
from pathlib import Path

from trigmon.keeper import protocol


class Run(ABC):
    """A run and how long it may last; ``due_at``: when :meth:`keep_time` is due (monotonic clock), else 0."""

    def __init__(self, run_id: str, directory: Path, *, grace_s: float, time_limit_s: float = 0.0) -> None:
        self.run_id = run_id
        self.directory = directory
        self.grace_s = grace_s
        self.why = ""
        self.pid = 0
        self.start_ms = 0
        self.due_at = time.monotonic() + time_limit_s if time_limit_s else 0.0

    @abstractmethod
    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to all that belongs to it; nothing happens when it has ended."""

    def end(self, why: str, grace_s: float) -> None:
        """Sends SIGTERM, with SIGCONT for a stopped process; SIGKILL follows when the grace is over."""
        if self.why:
            return
        self.why = why
        self.grace_s = grace_s
        self.due_at = time.monotonic() + grace_s
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)

    def keep_time(self, now: float) -> None:
        """Ends it when its time is up."""
        if not self.due_at or now < self.due_at:
            return
        if self.why:
            self.due_at = 0.0
            self.signal(signal.SIGKILL)
        else:
            self.end(protocol.TIME_LIMIT, self.grace_s)
