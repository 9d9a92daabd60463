"""The texts of the console: an overview as lines and cells that fit the width of a terminal.

An age stands in place of a moment. Red is for what needs attention at once, and for nothing else.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any, NamedTuple

from trigmon.console.overview import Overview, QueueRow, RunningRun
from trigmon.mq.quantities import counted, number, size, span
from trigmon.rules.attention import URGENT, Attention

LEAST_WIDTH = 100
"""Columns of a terminal that the console is made for; a wider one shows longer names."""
LONGEST_FINDING = 4
"""Lines of one finding."""
_WORDS = {"could_not_start": "no start", "no_monitor": "no monitor", "dead_letters": "dead", "put_aside": "aside"}
_WORDS |= {
    "not_started": "schedule",
    "took_none": "took none",
    "bad_files": "bad files",
    "nearly_full": "near full",
    "disk_near": "disk",
    "events_dropped": "events",
    "not_archived": "archive",
    "spark_server": "spark",
}


class Column(NamedTuple):
    """A column of a table: its head and its width with the blank behind it; 0 takes what is left."""

    head: str
    width: int


ATTENTION = (Column("NEEDS", 11), Column("OBJECT", 18), Column("SINCE", 8), Column("WHAT, AND WHAT HELPS", 0))
QUEUES = (
    *(Column("QUEUE", 0), Column("DEPTH", 8), Column("OLDEST", 8), Column("READERS", 8), Column("IN/MIN", 7)),
    *(Column("OUT/MIN", 8), Column("TRIGGER", 10), Column("LAST RUN", 17), Column("OK/BAD 24H", 12)),
)
RUNNING = (
    *(Column("RUNNING", 21), Column("QUEUE", 19), Column("FOR", 8)),
    *(Column("MESSAGES", 21), Column("PROGRESS", 0)),
)
COPIES = (
    *(Column("COPY", 0), Column("QUEUE", 19), Column("STATE", 10), Column("COPIED", 12), Column("A SECOND", 9)),
    *(Column("LEFT", 9), Column("BEHIND", 8), Column("LAST", 8)),
)
BRIDGES = (Column("BRIDGE", 0), Column("INITIATION QUEUE", 44), Column("STATE", 10), Column("SINCE", 8))


def widths(columns: tuple[Column, ...], width: int) -> list[int]:
    """Returns the widths of columns in a terminal, two columns of which a scroll bar may take."""
    left = max(width, LEAST_WIDTH) - 2 - sum(column.width for column in columns)
    return [column.width or left for column in columns]


def heading(overview: Overview, width: int) -> str:
    """Returns the queue manager in one line of this width: where it is too long, the room goes first, then the age."""
    it = overview
    if not it.started_ms:
        return "answers no call"
    oldest = f", oldest {age(it.now_ms, it.oldest_ms)}" if it.oldest_ms else ""
    held = f", {it.runs_held} held" if it.runs_held else ""
    disk = f"{size(it.disk_free_bytes)} free" if it.disk_free_bytes is not None else ""
    up = f"up {age(it.now_ms, it.started_ms)}"
    parts = (
        up,
        counted(it.monitors, "monitor"),
        f"{counted(it.messages, 'message')}{oldest}",
        f"runs {it.runs_now} now{held}, {number(it.runs_ok)} ok / {number(it.runs_failed)} bad in 24 h",
        disk,
    )
    for left_out in ((), (disk,), (disk, up)):
        line = "  ".join(part for part in parts if part and part not in left_out)
        if len(line) <= width:
            return line
    return _fitted(line, width + 1)


def attention_cells(item: Attention, now_ms: int, width: int) -> list[str]:
    """Returns a finding as cells; the last has several lines, and the command that helps is its last one."""
    room = widths(ATTENTION, width)
    lines = textwrap.wrap(item.text, room[-1] - 1, max_lines=LONGEST_FINDING - 1, placeholder=" \u2026")
    help_lines = textwrap.wrap(f"> {item.remedy}", room[-1] - 1, max_lines=2, placeholder=" \u2026")
    kind = _WORDS.get(item.kind, item.kind)
    since = age(now_ms, item.since_ms) if item.since_ms else "-"
    return [kind, _fitted(item.name or "-", room[1]), since, "\n".join([*lines, *help_lines])]


def queue_cells(row: QueueRow, now_ms: int, width: int) -> list[str]:
    """Returns a queue as cells."""
    if row.running:
        last = f"now {row.running}"
    elif row.last_run_ms:
        last = f"{age(now_ms, row.last_run_ms)} {_WORDS.get(row.last_outcome, row.last_outcome)}"
    else:
        last = "-"
    return [
        _fitted(row.name, widths(QUEUES, width)[0]),
        number(row.depth),
        age(now_ms, row.oldest_ms) if row.oldest_ms else "-",
        number(row.readers),
        _rate(row.puts_a_minute),
        _rate(row.gets_a_minute),
        _trigger(row),
        last,
        f"{row.ok}/{row.failed}" if row.ok or row.failed else "-",
    ]


def run_cells(run: RunningRun, now_ms: int, width: int) -> list[str]:
    """Returns a run with a program as cells."""
    room = widths(RUNNING, width)
    of = f" of {number(run.taken + run.left)}" if run.left else ""
    progress = run.progress or {}
    parts = [run.ui] if run.ui else []
    if run.is_being_cancelled:
        parts.insert(0, "is being cancelled")
    if progress.get("rows_read") or progress.get("rows_written"):
        parts.insert(
            0, f"rows {number(progress.get('rows_read', 0))} in, {number(progress.get('rows_written', 0))} out"
        )
    if run.work:
        parts.insert(0, run.work)
    if progress:
        parts.insert(bool(run.work), f"stages {progress.get('stages_done', 0)}/{progress.get('stages', 0)}")
    return [
        _fitted(run.process_name or run.run_id, room[0]),
        _fitted(run.q_name, room[1]),
        age(now_ms, run.since_ms),
        f"{number(run.taken)}{of}",
        _fitted("  ".join(parts) or run.state, room[4]),
    ]


def copy_cells(row: Mapping[str, Any], now_ms: int, width: int) -> list[str]:
    """Returns a copy of a queue elsewhere, a row of the status, as cells."""
    room = widths(COPIES, width)
    return [
        _fitted(row["name"], room[0]),
        _fitted(row["q_name"], room[1]),
        row["state"],
        number(row["copied"]),
        number(round(row["rate"])) if row["rate"] >= 10 else f"{row['rate']:g}",
        number(row["left"]) if row["left"] >= 0 else "-",
        span(row["lag_ms"]) if row["lag_ms"] else "-",
        age(now_ms, row["last_copy_ms"]) if row["last_copy_ms"] else "-",
    ]


def bridge_cells(row: Mapping[str, Any], now_ms: int, width: int) -> list[str]:
    """Returns an initiation queue elsewhere, a row of the status, as cells."""
    room = widths(BRIDGES, width)
    since = age(now_ms, row["since_ms"]) if row["since_ms"] else "-"
    return [_fitted(row["bridge"], room[0]), _fitted(row["initiation_q"], room[1]), row["state"], since]


def is_urgent(item: Attention) -> bool:
    """Returns whether a finding is red."""
    return item.kind in URGENT


def ordered_queues(overview: Overview) -> list[QueueRow]:
    """Returns the queues: those that need attention first, then those with messages or runs, each by name."""
    named = {item.name for item in overview.attention}

    def place(row: QueueRow) -> tuple[bool, bool, str]:
        return row.name not in named, not (row.depth or row.running or row.last_run_ms), row.name

    return sorted(overview.queues, key=place)


def age(now_ms: int, then_ms: int) -> str:
    """Returns how long ago a moment was, in one unit."""
    return span(max(0, now_ms - then_ms))


def _rate(a_minute: float | None) -> str:
    if a_minute is None:
        return "-"
    return f"{a_minute:.1f}" if 0 < a_minute < 10 and a_minute != round(a_minute) else number(round(a_minute))


def _trigger(row: QueueRow) -> str:
    if row.paused:
        return "HELD" if row.held else "PAUSED"
    return f"{row.trigger_type} {row.trigger_control}" if row.process_name else "-"


def _fitted(text: str, width: int) -> str:
    """Returns a text that fits a column of this width, with the blank behind it."""
    return text if len(text) < width else f"{text[: width - 2]}\u2026"
