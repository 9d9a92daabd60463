"""Schedules, watches, copies and bridges as a console shows them: one table, each with how it is and what came last."""

from __future__ import annotations

from typing import Any

import msgspec

from trigmon.client.connection import Connection
from trigmon.console.schedule_text import with_next
from trigmon.mq.calls import Display
from trigmon.mq.enums import ObjectType
from trigmon.mq.paging import all_rows
from trigmon.mq.quantities import span


class TimedRow(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule, a watch, a copy of a queue elsewhere, or an initiation queue elsewhere that a monitor serves.

    ``next_ms`` is by the wall clock, 0 where no moment comes. ``paused`` is by whom, blank for nobody. ``last_ms`` is
    the last moment, when the last message was put, or since when a bridge is hindered; 0: never.
    """

    kind: str
    name: str
    what: str
    q_name: str
    state: str
    paused: str
    next_ms: int
    last_ms: int
    outcome: str


def read_timed(connection: Connection, wall_ms: int) -> list[TimedRow]:
    """Reads all schedules and watches, by name: one call for each kind, and one for each page. Raises MQError."""
    schedules = all_rows(connection.call, Display(object_type=ObjectType.SCHEDULE.name))
    watches = all_rows(connection.call, Display(object_type=ObjectType.WATCH.name))
    return [*(_schedule(row, wall_ms) for row in schedules), *map(_watch, watches)]


def _schedule(row: dict[str, Any], wall_ms: int) -> TimedRow:
    shown = with_next(row, wall_ms)
    next_ms: int = 0 if row["paused"] else shown["next_ms"]
    return TimedRow(
        kind="schedule",
        name=row["name"],
        what=shown["when"] + (f", process {row['process_name']}" if row["process_name"] else ""),
        q_name=row["q_name"],
        state="paused" if row["paused"] else "waits" if next_ms else "no moment comes",
        paused=row["paused"],
        next_ms=next_ms,
        last_ms=row["last_moment_ms"],
        outcome=shown["outcome"] if row["last_moment_ms"] else "",
    )


def _watch(row: dict[str, Any]) -> TimedRow:
    return TimedRow(
        kind="watch",
        name=row["name"],
        what=f"{row['directory']}/{row['pattern']}",
        q_name=row["q_name"],
        state=row["state"],
        paused=row["paused"],
        next_ms=0,
        last_ms=row["last_put_ms"],
        outcome=row["problem"] or row["last_file"],
    )


def copy_row(row: dict[str, Any]) -> TimedRow:
    """Returns a copy of a queue elsewhere, of the status, as it is shown with the others."""
    left = f", {row['left']} left there" if row["left"] >= 0 else ""
    lag = f", {span(row['lag_ms'])} behind" if row["lag_ms"] else ""
    return TimedRow(
        kind="copy",
        name=row["name"],
        what=f"{row['copied']} copied, {row['rate']:g} a second{left}{lag}",
        q_name=row["q_name"],
        state=row["state"],
        paused="",
        next_ms=0,
        last_ms=row["last_copy_ms"],
        outcome=row["problem"],
    )


def bridge_row(row: dict[str, Any]) -> TimedRow:
    """Returns an initiation queue elsewhere, of the status, as it is shown with the others."""
    return TimedRow(
        kind="bridge",
        name=row["initiation_q"],
        what=f"bridge {row['bridge']}, monitor {row['monitor']}",
        q_name="",
        state=row["state"],
        paused="",
        next_ms=0,
        last_ms=row["since_ms"] if row["problem"] else 0,
        outcome=row["problem"],
    )
