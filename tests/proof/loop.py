"""Time that only the simulation moves, and a loop on it that asks of asyncio's what the daemon's code asks of it."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any

MICROSECONDS = 1_000_000
WALL_AT_START_MS = 1_767_225_600_000


class Timer:
    """Something that will be done, unless it is cancelled."""

    __slots__ = ("is_cancelled",)

    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        """It will not be done."""
        self.is_cancelled = True


class Loop:
    """What is to be done and when, in microseconds; things of one moment are done in the order they were asked for."""

    def __init__(self) -> None:
        self.now = 0
        self._queue: list[tuple[int, int, Timer, Callable[[], None]]] = []
        self._order = count()

    def at(self, moment: int, action: Callable[[], None]) -> Timer:
        """Does it at that moment."""
        timer = Timer()
        heappush(self._queue, (max(moment, self.now), next(self._order), timer, action))
        return timer

    def after(self, ms: float, action: Callable[[], None]) -> Timer:
        """Does it in so many milliseconds."""
        return self.at(self.now + int(ms * 1000), action)

    def run(self, until: int, is_over: Callable[[], bool] = lambda: False) -> None:
        """Lets time pass until that moment, or until it is over."""
        while self._queue and self._queue[0][0] <= until and not is_over():
            self.now, _, timer, action = heappop(self._queue)
            if not timer.is_cancelled:
                action()
        if not is_over():
            self.now = until

    def seconds(self) -> float:
        """Seconds since the beginning."""
        return self.now / MICROSECONDS


class Machine:
    """The machine's clocks: one goes wrong now and then, and one begins anew with each boot."""

    def __init__(self, loop: Loop) -> None:
        self.wall_jump_ms = 0
        self._loop = loop
        self._boots = 1
        self._booted = 0

    def boot(self) -> None:
        """The power was cut. The wall clock was put right before anything is started."""
        self._boots += 1
        self._booted = self._loop.now
        self.wall_jump_ms = 0

    def wall_ms(self) -> int:
        """See :class:`trigmon.qmgr.clock.Machine`."""
        return WALL_AT_START_MS + self.wall_jump_ms + self._loop.now // 1000

    def boot_ms(self) -> int:
        """See :class:`trigmon.qmgr.clock.Machine`."""
        return (self._loop.now - self._booted) // 1000

    def boot_id(self) -> str:
        """See :class:`trigmon.qmgr.clock.Machine`."""
        return str(self._boots)


class ProcessLoop:
    """The loop of one process, of which nothing is done any more when it is dead."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.is_alive = True

    def time(self) -> float:
        """As asyncio's."""
        return self._loop.seconds()

    def call_soon(self, action: Callable[..., None], *what: Any) -> Timer:
        """As asyncio's."""
        return self.call_later(0, action, *what)

    def call_later(self, delay_s: float, action: Callable[..., None], *what: Any) -> Timer:
        """As asyncio's."""
        return self._loop.after(delay_s * 1000, lambda: action(*what) if self.is_alive else None)
