"""Schedules for people: when each starts what, its next moment, and what came of the last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from trigmon.mq.attributes import ATTRIBUTES, Schedule
from trigmon.mq.enums import ObjectType
from trigmon.mq.explanation import moment
from trigmon.schedules.moments import fault, next_moment

Row = Mapping[str, Any]
_TABLE = ATTRIBUTES[ObjectType.SCHEDULE]


def schedule_of(row: Row) -> Schedule:
    """Returns the schedule of a row of DISPLAY."""
    values = {name: _TABLE[name].read(value, row["name"]) for name, value in row.items() if name in _TABLE}
    return Schedule(name=row["name"], **values)


def with_next(row: Row, wall_ms: int) -> dict[str, Any]:
    """Returns a row with what people ask for: when, what is started, the next moment, and what came of the last."""
    schedule = schedule_of(row)
    outcome = (row["why_not"] or "started") if row["last_moment_ms"] else "-"
    return {
        **row,
        "when": when(schedule),
        "starts": schedule.q_name or f"process {schedule.process_name}",
        "next_ms": next_moment(schedule, max(wall_ms, schedule.last_moment_ms)) or 0,
        "outcome": outcome,
    }


def when(schedule: Schedule) -> str:
    """Returns which moments a schedule has: its crontab line and zone, or its interval."""
    if schedule.cron:
        return f"{schedule.cron} {schedule.timezone}"
    for unit, seconds in (("d", 86_400), ("h", 3600), ("m", 60)):
        if schedule.every_s % seconds == 0:
            return f"every {schedule.every_s // seconds}{unit}"
    return f"every {schedule.every_s}s"


def lines(row: Row, wall_ms: int) -> Iterator[str]:
    """Yields a schedule as text: what it starts and when, next and last, and why nothing was started."""
    shown = with_next(row, wall_ms)
    yield f"SCHEDULE({row['name']}) starts {shown['starts']}: {shown['when']}"
    if wrong := fault("", str(row["timezone"])):
        yield f"  next  none: {wrong}"
    else:
        yield f"  next  {_next_text(shown['next_ms'], ZoneInfo(str(row['timezone'])))}"
    if not row["last_moment_ms"]:
        yield "  last  no moment has come yet"
    else:
        came = "started" if not row["why_not"] else f"NOT started: {row['why_not']}"
        yield f"  last  {moment(row['last_moment_ms'])}: {came}"
    if row["last_start_ms"] and row["why_not"]:
        yield f"        last started {moment(row['last_start_ms'])}"
    if row.get("paused"):
        yield f"  {row['paused']}: trigmon schedule resume {row['name']}"


def _next_text(next_ms: int, zone: ZoneInfo) -> str:
    """Returns the next moment in UTC, and in the zone where that is another."""
    local = datetime.fromtimestamp(next_ms / 1000, UTC).astimezone(zone)
    return moment(next_ms) + ("" if zone.key == "UTC" else f", {local:%Y-%m-%d %H:%M} in {zone.key}")
