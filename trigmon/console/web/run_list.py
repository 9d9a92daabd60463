"""Runs as the lists of the pages show them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from trigmon.mq.run import WENT_WRONG, Ending, Run, RunJson, read_run


class RunRow(msgspec.Struct, frozen=True):
    """A run in a list. ``mark``: good, bad, open or other."""

    run_id: str
    process_name: str
    q_name: str
    state: str
    outcome: str
    mark: str
    recorded_ms: int
    duration_s: float | None
    committed: int
    put_aside: int
    why: str


def run_row(run: Run) -> RunRow:
    """Returns a run as a row of a list."""
    start, end = run.program.start_ms, run.outcome.end_ms
    outcome, mark = outcome_of(run)
    return RunRow(
        run.run_id,
        run.slot,
        run.trigger.q_name,
        str(run.state),
        outcome,
        mark,
        run.origin.recorded_ms,
        (end - start) / 1000 if start and end else None,
        run.work.committed,
        run.work.put_aside,
        run.why,
    )


def run_rows(rows: Iterable[RunJson]) -> list[RunRow]:
    """Returns records as rows of a list."""
    return [run_row(read_run(row)) for row in rows]


def outcome_of(run: Run) -> tuple[str, str]:
    """Returns how a run ended, or its state while it has not; and whether that is good, bad, open or neither."""
    ending = run.ending
    if ending is None:
        return str(run.state), "open"
    return worded(ending), "good" if ending is Ending.OK else "bad" if ending in WENT_WRONG else "other"


def worded(ending: str) -> str:
    """Returns an ending as the pages write it."""
    return ending.replace("_", " ")
