"""Timed work of the daemon: a table of jobs, run by APScheduler on the daemon's loop."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from apscheduler.schedulers.asyncio import AsyncIOScheduler


@dataclass(frozen=True)
class Chore:
    """What is to be done, and how often, in seconds."""

    name: str
    period_s: float
    call: Callable[[], None]


class Timers:
    """Rings each chore at its period, from :meth:`start` to :meth:`stop`."""

    def __init__(self, chores: Iterable[Chore]) -> None:
        # A loop that was busy rings late and once, not as often as it missed: a chore looks at how things are.
        defaults = {"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
        self._scheduler = AsyncIOScheduler(timezone=UTC, job_defaults=defaults)
        for chore in chores:
            self._scheduler.add_job(_on_the_loop(chore.call), "interval", seconds=chore.period_s, id=chore.name)

    def start(self) -> None:
        """Rings from now on."""
        self._scheduler.start()

    def stop(self) -> None:
        """Rings no more."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)


def _on_the_loop(call: Callable[[], None]) -> Callable[[], Coroutine[Any, Any, None]]:
    """Returns the call as a coroutine: APScheduler gives plain functions to a thread, and the store has one thread."""

    async def ring() -> None:
        call()

    return ring
