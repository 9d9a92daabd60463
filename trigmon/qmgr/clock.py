"""The queue manager's own time, handed in: milliseconds since 1970."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Something that knows the time."""

    def now(self) -> int:
        """Milliseconds since 1970; never goes back."""


class SystemClock:
    """Wall time at the start, advanced by the monotonic clock: no jump of the wall clock moves a deadline."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> int:
        """See :class:`Clock`."""
        return int((self._offset + time.monotonic()) * 1000)


class VirtualClock:
    """Time that only a rehearsal moves."""

    def __init__(self, now_ms: int = 1_767_225_600_000) -> None:
        self._now_ms = now_ms

    def now(self) -> int:
        """See :class:`Clock`."""
        return self._now_ms

    def advance(self, ms: int) -> None:
        """Lets time pass."""
        if ms < 0:
            raise ValueError("time does not go back")
        self._now_ms += ms
