"""The run ledger's rows: records, the lines of held runs, what programs are doing, how the last runs ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import starmap
from typing import Any

import msgspec

from trigmon.mq.run import Run, RunJson, decode_run, encode_run, read_run
from trigmon.rules.model import changes as c
from trigmon.rules.model.run_facts import Cause, EndedRun, Serving
from trigmon.rules.model.state import Standing
from trigmon.rules.model.stored_messages import SLICE
from trigmon.rules.model.transitions import after_restart
from trigmon.store.sql import statements as sql

BEHIND_ALL = 2**63 - 1
Execute = Callable[..., Any]
Rows = Callable[..., list[Any]]
Scan = Callable[[str, tuple[object, ...]], Iterable[Any]]


class Ledger:
    """The ledger in one database. ``execute`` writes, ``rows`` reads all there is, ``scan`` one row after another."""

    def __init__(self, execute: Execute, rows: Rows, scan: Scan) -> None:
        self._execute = execute
        self._rows = rows
        self._scan = scan

    def load(self, standing: Standing) -> None:
        """Loads the facts that the ledger's rows hold, at a start."""
        standing.held.update({(q, slot, name): count for q, slot, name, count in self._rows(sql.HELD_LINES)})
        standing.running.update(
            (doing.run_id, doing)
            for (text,) in self._rows(sql.SERVING)
            for doing in [after_restart(msgspec.json.decode(text, type=Serving))]
        )
        standing.causes.update(((cause.slot, cause.q_name), cause) for cause in starmap(Cause, self._rows(sql.CAUSES)))
        for run_id, text in self._rows(sql.UNDER_WAY):
            run = decode_run(text)
            if run.is_being_cancelled:
                standing.cancelling[run_id] = run.program.monitor

    def run(self, run_id: str) -> Run | None:
        """Returns a recorded run; None if there is none of this id."""
        rows = self._rows(sql.RUN, (run_id,))
        return decode_run(rows[0][0]) if rows else None

    def runs(self, where: dict[str, object], before: str, limit: int) -> Sequence[Run]:
        """See :class:`trigmon.store.base.BaseStore`."""
        last = self._rows(sql.RUN_NUMBER, (before,))
        behind = last[0][0] if last else 0 if before else BEHIND_ALL
        statement: str = sql.RUNS
        values: tuple[object, ...] = (behind,)
        for name, by_index in sql.RUNS_BY.items():
            if name in where:
                statement, values = by_index, (str(where[name]), behind)
                break
        chosen: list[Run] = []
        for (text,) in self._scan(statement, values):
            record: RunJson = msgspec.json.decode(text)
            if all(record.get(name) == value for name, value in where.items()):
                chosen.append(read_run(record))
            if len(chosen) >= limit:
                break
        return chosen

    def held(self, line: tuple[str, str, str], limit: int, *, from_last: bool = False) -> Sequence[str]:
        """See :class:`trigmon.store.base.BaseStore`."""
        return [run_id for (run_id,) in self._rows(sql.HELD[from_last], (*line, limit))]

    def outdated(self, keep_count: int, ended_before_ms: int) -> Sequence[str]:
        """See :class:`trigmon.store.base.BaseStore`."""
        surplus = self._rows(sql.COUNT_ENDED)[0][0] - keep_count
        oldest = self._rows(sql.OLDEST_ENDED, (SLICE,))
        return [run_id for n, (run_id, ended_ms) in enumerate(oldest) if n < surplus or ended_ms < ended_before_ms]

    def history(self, since_ms: int, until_ms: int, limit: int) -> list[EndedRun]:
        """See :class:`trigmon.store.base.BaseStore`."""
        rows = self._rows(sql.HISTORY, (since_ms, until_ms, min(limit, BEHIND_ALL)))
        return [_ended(*row) for row in rows]

    def write_run(self, change: c.WriteRun) -> None:
        """Writes a record, and its place in the line where it waits."""
        run = change.run
        row = (change.run_id, str(run.state), run.trigger.q_name, encode_run(run), change.ended_ms or None)
        self._execute(sql.WRITE_RUN, row)
        for held, statement in ((change.before, sql.NO_LONGER_HOLD), (run, sql.HOLD)):
            if held is not None and held.is_held:
                self._execute(statement, (*held.line, change.run_id))

    def drop_run(self, change: c.DropRun) -> None:
        """Deletes a run's rows."""
        self._execute(sql.DROP_RUN, (change.run_id,))

    def serve(self, change: c.Serve) -> None:
        """Writes what a program is doing."""
        self._execute(sql.SERVE, (change.serving.run_id, msgspec.json.encode(change.serving).decode()))

    def unserve(self, change: c.Unserve) -> None:
        """Deletes what a program was doing."""
        self._execute(sql.UNSERVE, (change.run_id,))

    def set_cause(self, change: c.SetCause) -> None:
        """Writes how the last runs ended."""
        cause = change.cause
        if cause.failed or cause.fruitless:
            self._execute(sql.SET_CAUSE, msgspec.structs.astuple(cause))
        else:
            self._execute(sql.DROP_CAUSE, (cause.slot, cause.q_name))


class _Counted(msgspec.Struct, gc=False):
    """The fields of a record that a history counts; the others are not decoded."""

    process_name: str = ""
    exit_status: int | None = None
    start_ms: int = 0
    was_stopped: bool = False


def _ended(ended_ms: int, state: str, q_name: str, record: str) -> EndedRun:
    try:
        it = msgspec.json.decode(record, type=_Counted)
    except msgspec.ValidationError:  # a monitor may write anything
        run = decode_run(record)
        it = _Counted(run.trigger.process_name, run.outcome.exit_status, run.program.start_ms, run.outcome.was_stopped)
    return EndedRun(ended_ms, state, q_name, it.process_name, it.exit_status, it.start_ms, it.was_stopped)


LEDGER_WRITES: dict[type[c.AnyChange], Callable[[Ledger, Any], None]] = {
    c.WriteRun: Ledger.write_run,
    c.DropRun: Ledger.drop_run,
    c.Serve: Ledger.serve,
    c.Unserve: Ledger.unserve,
    c.SetCause: Ledger.set_cause,
}
