"""The history of runs: how many ended, by hour or day, queue, process and outcome."""

from __future__ import annotations

from typing import Any

from trigmon.mq.calls import RunHistory
from trigmon.mq.errors import OptionsError
from trigmon.mq.replies import Values
from trigmon.mq.run import ending_of
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import LedgerFacts, LedgerWants
from trigmon.rules.model.run_facts import EndedRun
from trigmon.rules.model.stored_messages import Found

COUNTED_AT_ONCE = 2000
"""So many runs are counted in one call, so that no other call waits long for it."""
EVER = 2**62
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
_SPANS = {"hour": HOUR_MS, "day": DAY_MS}
FIELDS = {"hour": "since_ms", "day": "since_ms", "queue": "q_name", "process": "process_name", "outcome": "outcome"}
"""What counts can be split by, and the field of a row that holds it."""


def last_24_hours_ms(now: int) -> int:
    """Returns when the last 24 hours begin wherever runs are counted: the hour of the clock (UTC) and the 23 before."""
    return now // HOUR_MS * HOUR_MS - 23 * HOUR_MS


def span_of(call: RunHistory) -> tuple[int, int]:
    """Returns from when and until when runs are counted, in ms since 1970. Raises OptionsError for what is no time."""
    for time_ms in (call.since_ms, call.until_ms):
        if not 0 <= time_ms <= EVER:
            raise OptionsError(f"run history from {call.since_ms} to {call.until_ms}: milliseconds since 1970")
    return call.since_ms, call.until_ms or EVER


def wants_history(call: RunHistory, connection: int) -> LedgerWants:
    """Returns the wanted facts: the runs that ended in the span of time."""
    return LedgerWants(connection, history=span_of(call), limit=COUNTED_AT_ONCE)


def decide_run_history(call: RunHistory, facts: LedgerFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Counts a slice of the runs that have ended, in the order of their ends."""
    wrong = [each for each in call.by if each not in FIELDS]
    if wrong or {"hour", "day"} <= set(call.by):
        raise OptionsError(f"run history by {', '.join(call.by)}: hour or day, queue, process, outcome")
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for run in facts.ended:
        key = tuple(_value(run, each) for each in call.by)
        row = rows.get(key)
        if row is None:
            fields = dict(zip((FIELDS[each] for each in call.by), key, strict=True))
            row = rows[key] = {**fields, "runs": 0, "took_ms": 0, "last_ms": 0}
        row["runs"] += 1
        row["took_ms"] += max(0, run.ended_ms - run.start_ms) if run.start_ms > 0 else 0
        row["last_ms"] = run.ended_ms
    values = {"rows": [rows[key] for key in sorted(rows)], "more": bool(facts.more_from_ms)}
    return Decision(Values(values={**values, "next_ms": facts.more_from_ms}))


def _value(run: EndedRun, by: str) -> int | str:
    if span := _SPANS.get(by):
        return run.ended_ms - run.ended_ms % span
    if by == "outcome":
        return ending_of(run.state, run.exit_status, run.was_stopped)
    return run.q_name if by == "queue" else run.process_name
