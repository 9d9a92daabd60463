"""The run ledger of the memory store: run records in the order they were recorded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from trigmon.mq.run import Run
from trigmon.rules.model import changes as c
from trigmon.rules.model.run_facts import EndedRun
from trigmon.rules.model.stored_messages import SLICE
from trigmon.store.undo_notes import UndoNotes


class RunRecords:
    """The records by run id, and when each run ended in ms since 1970, 0 before."""

    def __init__(self, notes: UndoNotes) -> None:
        self._notes = notes
        self._records: dict[str, Run] = {}
        self._ended_ms: dict[str, int] = {}

    def write(self, change: c.WriteRun) -> None:
        """Writes a record."""
        self._notes.set(self._records, change.run_id, change.run)
        self._notes.set(self._ended_ms, change.run_id, change.ended_ms)

    def drop(self, change: c.DropRun) -> None:
        """Removes a run at once: the call consists of nothing else, so it is never undone."""
        del self._records[change.run_id], self._ended_ms[change.run_id]

    def run(self, run_id: str) -> Run | None:
        """Returns a run's record, or None."""
        return self._records.get(run_id)

    def runs(self, where: dict[str, object], before: str, limit: int) -> Sequence[Run]:
        """Returns runs whose record has every value of ``where``, newest first, behind the run ``before`` if named."""
        run_ids = list(self._records)
        if before:
            run_ids = run_ids[: run_ids.index(before)] if before in self._records else []
        chosen = [
            run
            for run in map(self._records.__getitem__, reversed(run_ids))
            if all(run.json.get(name) == value for name, value in where.items())
        ]
        return chosen[:limit]

    def held(self, line: tuple[str, str, str], limit: int, *, from_last: bool) -> Sequence[str]:
        """Returns the ids of the first, or last, held runs of a line, in the order they were recorded."""
        held = [run_id for run_id, run in self._records.items() if run.is_held and run.line == line]
        return held[-limit:] if from_last else held[:limit]

    def history(self, since_ms: int, until_ms: int, limit: int) -> Sequence[EndedRun]:
        """Returns the first runs that ended from one time to before the other, the oldest end first."""
        meant = (run_id for run_id, at in self._ended_ms.items() if at > 0 and since_ms <= at < until_ms)
        ended = islice(sorted(meant, key=self._ended_ms.__getitem__), limit)
        return [_ended(self._ended_ms[run_id], self._records[run_id]) for run_id in ended]

    def outdated(self, keep_count: int, ended_before_ms: int) -> Sequence[str]:
        """Returns the first slice of the runs that ended before this time or are too many; the oldest end first."""
        ended = sorted(filter(self._ended_ms.get, self._records), key=self._ended_ms.__getitem__)
        surplus = len(ended) - keep_count
        return [r for n, r in enumerate(ended[:SLICE]) if n < surplus or self._ended_ms[r] < ended_before_ms]


def _ended(ended_ms: int, run: Run) -> EndedRun:
    trigger, outcome = run.trigger, run.outcome
    return EndedRun(
        ended_ms,
        str(run.state),
        trigger.q_name,
        trigger.process_name,
        outcome.exit_status,
        run.program.start_ms,
        outcome.was_stopped,
    )
