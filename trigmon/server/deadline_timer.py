"""The timer of the queue manager's next deadline: a wait that runs out, or upkeep that is due, without any call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from trigmon.qmgr.clock import Clock


class DeadlineTimer:
    """Calls ``due`` on the loop when the deadline has come, which is a time of ``clock``."""

    def __init__(self, clock: Clock, due: Callable[[], None]) -> None:
        self._clock = clock
        self._due = due
        self._loop = asyncio.get_running_loop()
        self._deadline_ms: int | None = None
        self._handle: asyncio.TimerHandle | None = None

    def set(self, deadline_ms: int | None) -> None:
        """Replaces the deadline; None for no deadline."""
        if deadline_ms == self._deadline_ms:
            return
        if self._handle is not None:
            self._handle.cancel()
        self._handle, self._deadline_ms = None, deadline_ms
        if deadline_ms is not None:
            wait_s = max(0, deadline_ms - self._clock.now()) / 1000
            self._handle = self._loop.call_later(wait_s, self._passed)

    def _passed(self) -> None:
        self._handle = self._deadline_ms = None
        self._due()
