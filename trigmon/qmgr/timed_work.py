"""The table of timed jobs: a scheduler of the daemon runs them, a simulation at the times that its clock passes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from trigmon.qmgr.housekeeping import Housekeeping
from trigmon.qmgr.manager import Answer


class Job(msgspec.Struct, frozen=True):
    """A periodic job. A late run is done late, never dropped; several missed runs are done once.

    ``work`` returns what may now be answered. ``can_rest``: it is left out in a period in which calls were performed.
    """

    name: str
    period_ms: int
    work: Callable[[Housekeeping], list[Answer]]
    can_rest: bool = False


JOBS: tuple[Job, ...] = (
    Job("upkeep of the store", 1000, Housekeeping.idle, can_rest=True),
    Job("what time brings to queues", 1000, Housekeeping.tend),
    Job("moments of schedules", 1000, Housekeeping.reach_moments),
    Job("expired messages", 1000, Housekeeping.expire),
    Job("old runs", 1000, Housekeeping.prune),
    Job("abandoned backups", 1000, Housekeeping.look_after_backups),
    Job("what no call changes", 5000, Housekeeping.report_changes),
    Job("commands", 1000, Housekeeping.look_for_commands),
    Job("old outcomes", 1000, Housekeeping.forget_outcomes),
)


def due(last_ms: dict[str, int], now: int) -> list[Job]:
    """Returns the jobs whose period has passed since they last ran; one that never ran is due."""
    return [job for job in JOBS if now - last_ms.get(job.name, now - job.period_ms) >= job.period_ms]


def next_ring(last_ms: dict[str, int], now: int) -> int:
    """Returns when the next of the jobs is due."""
    return min(last_ms.get(job.name, now - job.period_ms) + job.period_ms for job in JOBS)
