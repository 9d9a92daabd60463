"""Schedules and watches as objects: what their definitions must hold, and from when on moments are a schedule's."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from trigmon.mq.attributes import Definition, Schedule, Watch
from trigmon.mq.errors import AttrValueError
from trigmon.mq.timed_enums import OnlyIf
from trigmon.schedules.moments import fault

TIMING = frozenset(("cron", "every_s", "timezone"))
"""The attributes that say which moments there are."""


def timed(schedule: Schedule, now: int) -> Schedule:
    """Returns a schedule whose moments were set now: none before counts, and none was judged."""
    return _unjudged(replace(schedule, timed_ms=now))


def _unjudged(schedule: Schedule) -> Schedule:
    return replace(schedule, last_moment_ms=0, last_start_ms=0, why_not="", fails=(), from_ms=0)


def copied(schedule: Schedule, there: Definition | None) -> Schedule:
    """Returns a member's copy of the group's schedule: it goes on where the copy ``there`` was, if there was one."""
    if not isinstance(there, Schedule) or schedule.timed_ms != there.timed_ms:
        return _unjudged(schedule)
    names = ("last_moment_ms", "last_start_ms", "why_not", "fails", "from_ms")
    return replace(schedule, **{name: getattr(there, name) for name in names})


def check_schedule(schedule: Schedule, named: Collection[str]) -> None:
    """Raises AttrValueError for a schedule that has no moments, or nothing to start."""
    where = f"SCHEDULE({schedule.name})"
    if bool(schedule.cron) is bool(schedule.every_s):
        raise AttrValueError(f"{where}: give CRON or EVERY, one of them")
    if schedule.every_s and schedule.timezone != "UTC":
        raise AttrValueError(
            f"{where} TIMEZONE({schedule.timezone}): EVERY counts from 1970 in UTC; TIMEZONE goes with CRON"
        )
    if wrong := fault(schedule.cron, schedule.timezone):
        raise AttrValueError(f"{where} {wrong}")
    if bool(schedule.q_name) is bool(schedule.process_name):
        raise AttrValueError(f"{where}: give QUEUE, whose process is started, or PROCESS, one of them")
    if schedule.only_if is OnlyIf.MESSAGES and not schedule.q_name:
        raise AttrValueError(f"{where} ONLYIF(MESSAGES): it goes with QUEUE")


def check_watch(watch: Watch, named: Collection[str]) -> None:
    """Raises AttrValueError for a watch without an absolute directory, or without a queue."""
    where = f"WATCH({watch.name})"
    for word, path in (("DIRECTORY", watch.directory), ("DONE", watch.done), ("FAILED", watch.failed)):
        if not path.startswith("/") and (path or word == "DIRECTORY"):
            raise AttrValueError(f"{where} {word}({path or ' '}): give an absolute path")
    if not watch.q_name:
        raise AttrValueError(f"{where}: give QUEUE, which gets a message for each file")
    if not watch.pattern or "/" in watch.pattern:
        raise AttrValueError(f"{where} PATTERN({watch.pattern or ' '}): give a file name, with * and ?, without /")
