"""``trigmon runs history``: how many runs ended, by hour, day, process, queue and outcome."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import click

from trigmon.cli.command import command, invocation, since
from trigmon.mq.run import WENT_WRONG, Ending

_OUTCOMES = tuple(map(str, Ending))
_NAMES = {"hour": "since_ms", "day": "since_ms", "process": "process_name", "queue": "q_name"}


@command(
    "history",
    "trigmon runs history\ntrigmon runs history --by day --since 7d\n"
    "trigmon runs history --by hour --by process --since yesterday --output json",
)
@click.option(
    "--by",
    type=click.Choice(["hour", "day", "process", "queue"]),
    multiple=True,
    default=("hour",),
    show_default=True,
    help="A row for each; several may be given.",
)
@click.option(
    "--since",
    "since_ms",
    metavar="TIME",
    callback=since,
    help="Since 90m, 2h or 7d ago (default: the last 24 hours).",
)
@click.option("--until", "until_ms", metavar="TIME", callback=since, help="Until such a time, or 2026-11-21T09:30.")
def history(by: tuple[str, ...], since_ms: int, until_ms: int) -> None:
    """Count the runs that ended, by how they ended: what happened yesterday, and what fails again and again.

    A run counts at its end. could_not_start: it never became a process; unknown: nobody saw its end; stopped: its
    monitor's stop ended it; joined: another run did its work. average_s is how long a run's process lived. Hours and
    days are UTC's. The last 24 hours are this hour and the 23 before it, as in trigmon top and trigmon web.
    """
    from trigmon.cli import output

    if {"hour", "day"} <= set(by):
        raise click.UsageError("--by hour or --by day: not both")
    kept = tuple(each for each in _NAMES if each in by)
    rows = list(_rows(_counts(since_ms, until_ms, kept), kept))
    names = [{"since_ms": "since_time"}.get(_NAMES[each], _NAMES[each]) for each in kept]
    if not output.listing(rows, [*names, "runs", *_OUTCOMES, "average_s"], _went_wrong):
        output.note("no run ended in that time")


def _went_wrong(row: Any) -> bool:
    return any(row[outcome] for outcome in WENT_WRONG)


def _counts(since_ms: int, until_ms: int, by: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yields what the queue manager counts, slice after slice; without a begin of the last 24 hours."""
    import time

    from trigmon.mq.calls import RunHistory
    from trigmon.mq.replies import Values
    from trigmon.rules.runs.run_history import last_24_hours_ms

    from_ms = since_ms or last_24_hours_ms(time.time_ns() // 1_000_000)
    with invocation().connected() as qm:
        while True:
            call = RunHistory(since_ms=from_ms, until_ms=until_ms, by=[*by, "outcome"])
            counted = qm.ask(call, Values).values
            yield from counted["rows"]
            if not counted["more"]:
                return
            from_ms = counted["next_ms"]


def _rows(counts: Iterable[dict[str, Any]], by: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yields a row for each hour, day, process or queue, with a number for each outcome."""
    sums: dict[tuple[Any, ...], dict[str, int]] = {}
    for count in counts:
        key = tuple(count[_NAMES[each]] for each in by)
        row = sums.setdefault(key, dict.fromkeys(("runs", *_OUTCOMES, "took_ms"), 0))
        row["runs"] += count["runs"]
        row[count["outcome"]] += count["runs"]
        row["took_ms"] += count["took_ms"]
    for key, row in sorted(sums.items()):
        took_ms = row.pop("took_ms")
        named = dict(zip((_NAMES[each] for each in by), key, strict=True))
        lived = sum(row[ending] for ending in Ending if ending not in (Ending.COULD_NOT_START, Ending.JOINED))
        yield {**named, **row, "average_s": round(took_ms / 1000 / lived, 3) if lived else None}
