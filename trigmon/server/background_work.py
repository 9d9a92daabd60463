"""Background work: what the daemon asks of the queue manager though no call does, between two turns.

These are the timed jobs, the scan for expired messages, slice by slice, and calls of the store. All of it is done by
the executor that performs turns, in the order planned, so that nothing reaches the queue manager while a turn waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from trigmon.qmgr.manager import Answer, QueueManager
from trigmon.qmgr.timed_work import Job
from trigmon.server.executor import Work, Worker

T = TypeVar("T")
Begin = Callable[[], Work | None]
YIELD_S = 0.001
"""How long a slice of a scan yields to calls before it looks again."""
LONGEST_YIELD_S = 0.01
"""Most slices last a few milliseconds: with calls that never end, a scan has a quarter of the time at most."""


class Performed(NamedTuple):
    """The result of work in the queue manager. ``max_msg_length``: the longest message, in bytes, that it takes now."""

    answers: list[Answer]
    deadline_ms: int | None
    max_msg_length: int


class BackgroundWork:
    """Plans background work, the same piece not twice at a time, until :meth:`end`.

    ``performed`` is called on the loop with the result of each job and each slice of a scan. ``calls`` returns
    how many calls have been performed since the start.
    """

    def __init__(
        self,
        manager: QueueManager,
        worker: Worker,
        performed: Callable[[Performed], None],
        calls: Callable[[], int],
    ) -> None:
        self._manager = manager
        self._worker = worker
        self._performed = performed
        self._calls = calls
        self._loop = asyncio.get_running_loop()
        self._planned: set[object] = set()
        self._calls_before: dict[str, int] = {}
        self._slice_due_s = 0.0
        self._is_over = False

    def plan_job(self, job: Job) -> None:
        """Plans a job that is due, but not one that can rest where calls came since it was due before."""
        if not (self._was_busy(job.name) and job.can_rest):
            self._plan_upkeep(job.name, lambda: job.work(self._manager.housekeeping), self._worker.give)

    def plan_scan(self) -> None:
        """Plans the next slice of a scan, if there is one: of expired messages, settled ones, commands."""
        if self._manager.housekeeping.is_scanning:
            self._plan_upkeep("scan", self._slice, self._give_slice)

    def _slice(self) -> list[Answer]:
        answers = self._manager.housekeeping.scan()
        self._slice_due_s = self._loop.time() + LONGEST_YIELD_S
        return answers

    def _give_slice(self, begin: Begin) -> None:
        """Gives a slice to the executor when no call comes for a moment, or the last slice is long enough ago.

        Commands that wait are calls, too: their slice waits for no others.
        """
        yields = self._was_busy("scan") and not self._manager.housekeeping.commands.are_waiting
        if yields and self._loop.time() < self._slice_due_s:
            self._loop.call_later(YIELD_S, self._give_slice, begin)
        else:
            self._worker.give(begin)

    def _was_busy(self, name: str) -> bool:
        """Returns whether a call was performed since this was last asked of the same work."""
        calls = self._calls()
        before, self._calls_before[name] = self._calls_before.get(name, 0), calls
        return calls != before

    def _plan_upkeep(self, name: str, work: Callable[[], list[Answer]], give: Callable[[Begin], None]) -> None:
        def perform() -> Performed:
            answers, manager = work(), self._manager
            return Performed(answers, manager.next_deadline_ms(), manager.housekeeping.max_msg_length)

        self._plan(name, perform, self._performed, give)

    def plan(self, name: object, work: Callable[[], T], then: Callable[[T], None]) -> None:
        """Plans work, and ``then`` with its result on the loop, unless work of this name still waits."""
        self._plan(name, work, then, self._worker.give)

    def _plan(
        self, name: object, work: Callable[[], T], then: Callable[[T], None], give: Callable[[Begin], None]
    ) -> None:
        """Plans as :meth:`plan`. ``give`` hands the work to the executor."""

        def begin() -> Work | None:
            return None if self._is_over else (work, done)

        def done(result: T) -> None:
            self._planned.discard(name)
            then(result)

        if not self._is_over and name not in self._planned:
            self._planned.add(name)
            # Not at once: between two slices of a scan the loop reads what clients have sent.
            self._loop.call_soon(give, begin)

    def end(self) -> None:
        """Ends all of it: what is planned and has not begun is left out."""
        self._is_over = True
