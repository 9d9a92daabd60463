"""The reference store in memory: plain dictionaries and sorted lists. Its contents outlive :meth:`close`.

It serves simulations and tests. A restart recovers it like a database, so one test suite covers all stores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trigmon.mq.enums import DefinitionType, ObjectType, UnitOutcome
from trigmon.mq.run import Run
from trigmon.rules.model import changes as c
from trigmon.rules.model import reservation_changes as r
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.reservation import Reservation
from trigmon.rules.model.state import Standing
from trigmon.rules.model.stored_messages import Found, Selection
from trigmon.rules.model.transitions import after_restart
from trigmon.store.base import ID_BLOCK, BaseStore
from trigmon.store.memory.reserved_messages import ReservedMessages
from trigmon.store.memory.rows import Row, Rows, once_more
from trigmon.store.memory.run_records import RunRecords
from trigmon.store.memory.unit_outcomes import UnitOutcomes
from trigmon.store.undo_notes import UndoNotes


class MemoryStore(BaseStore):
    """A store in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._rows = Rows(self.standing.locks)
        self._notes = UndoNotes()
        self._outcomes = UnitOutcomes(self._notes)
        self._run_records = RunRecords(self._notes)
        self._ended_runs = self._run_records.history
        self._reserved = ReservedMessages(self._rows, self._notes)
        self._next = 1

    def open(self, q_mgr_name: str, now: int) -> int:
        """See the port. Ids continue at the next block, as in a database."""
        before = self.standing
        self.standing = Standing(q_mgr_name)
        self._rows.locks = self.standing.locks
        if before.q_mgr[""].name:
            self.standing.q_mgr[""] = before.q_mgr[""]
        for which, table in before.tables().items():
            for definition in table.values() if which not in (ObjectType.QLOCAL, ObjectType.QMGR) else ():
                self.standing.define(definition)
        self.standing.pauses = dict(before.pauses)
        self.standing.cancelling = dict(before.cancelling)
        self.standing.running = {run_id: after_restart(doing) for run_id, doing in before.running.items()}
        self.standing.causes, self.standing.held = dict(before.causes), dict(before.held)
        self._recover(now)
        for name, queue in before.queues.items():
            if queue.shared is not None:
                continue  # it belongs to the group; this was a copy
            if queue.is_deleted or queue.definition.definition_type is DefinitionType.TEMPORARY_DYNAMIC:
                self._rows.drop_all(name)
                self.standing.pauses.pop(("queue", name), None)
                continue
            depths = [0] * 10
            for row in self._rows.of.get(name, {}).values():
                depths[row.message.priority] += not row.taken_by
            self.standing.queues[name] = QueueFacts(queue.definition, tuple(depths))
        self._reserved.restore(self.standing)
        self.standing.mark()
        first = self._next
        self._next += ID_BLOCK
        return first

    def _recover(self, now: int) -> None:
        for each in self.decided:
            for row in self._rows.of_unit(each.unit_id, list(self._rows.of)):
                self._rows.settle(row, each.unit_id, UnitOutcome.COMMITTED)
        self._outcomes.commit(self.decided, now)
        for row in list(self._rows.all()):
            if row.message.ordinal >= 0:
                continue
            if row.put_by or not row.message.is_persistent:
                self._rows.drop(row)
            elif row.taken_by:
                self._rows.set(Row(once_more(row.message)))
        self._rows.notes.clear()

    def keep_time(self, text: str, *, must: bool = False) -> bool:
        """See the port. Nothing is written: the store does not outlive the clock."""
        return True

    def use_number(self, number: int) -> None:
        """Records that a number is in use that no row here has."""
        self._next = max(self._next, number + 1)

    def prepare(self) -> None:
        """Changes nothing: everything written is kept, units of work in flight included."""

    def begin(self) -> None:
        """See the port."""

    def mark(self) -> None:
        """See the port."""
        self.standing.mark()
        self._rows.notes.clear()
        self._notes.clear()

    def undo(self) -> None:
        """See the port."""
        self.standing.undo()
        self._rows.undo()
        self._notes.undo()

    def apply(self, changes: Sequence[c.AnyChange], can_be_undone: bool) -> None:
        """See the port."""
        for change in changes:
            write = _WRITE.get(type(change))
            if write is not None:
                write(self, change)
            self.standing.follow(change)

    def end(self) -> None:
        """See the port."""

    def forget_outcomes(self, before_ms: int) -> None:
        """See the port."""
        connected = {connection.client_id for connection in self.standing.connections.values()}
        self._outcomes.forget(before_ms, connected)

    @property
    def has_leftovers(self) -> bool:
        """See the port. Rows are removed at once here."""
        return False

    def remove_leftovers(self) -> None:
        """See the port."""

    def idle(self) -> None:
        """See the port."""

    def close(self) -> None:
        """See the port."""

    def abandon(self) -> None:
        """See the port."""

    def find(self, selection: Selection) -> Found:
        """See the port."""
        return self._rows.find(selection)

    def _end_unit(self, change: c.EndUnit) -> None:
        unit = change.unit
        for row in self._rows.of_unit(unit.unit_id, {name for name, _ in (*unit.puts, *unit.gets)}):
            self._rows.settle(row, unit.unit_id, change.outcome)
        self._outcomes.record(unit.client_id, unit.number, change.outcome, change.now)

    def _drop_definition(self, change: c.DropDefinition) -> None:
        if change.object_type is ObjectType.QLOCAL:
            self._rows.drop_all(change.name)
            self._reserved.drop_queue(change.name)

    def _recorded(self, client_id: str) -> dict[int, UnitOutcome]:
        return self._outcomes.of_client(client_id)

    def _ended(self, reservation: int) -> Reservation | None:
        return self._reserved.reservation(reservation)

    def _run(self, run_id: str) -> Run | None:
        return self._run_records.run(run_id)

    def _runs(self, where: dict[str, object], before: str, limit: int) -> Sequence[Run]:
        return self._run_records.runs(where, before, limit)

    def _held(self, line: tuple[str, str, str], limit: int, *, from_last: bool = False) -> Sequence[str]:
        return self._run_records.held(line, limit, from_last=from_last)

    def _outdated(self, keep_count: int, ended_before_ms: int) -> Sequence[str]:
        return self._run_records.outdated(keep_count, ended_before_ms)


_WRITE: dict[type[c.AnyChange], Callable[[MemoryStore, Any], None]] = {
    c.AddMessage: lambda store, it: store._rows.add(it),
    c.TakeMessage: lambda store, it: store._rows.take(it.message, it.unit_id),
    c.CarryOver: lambda store, it: store._rows.carry_over(it.message, it.unit_id),
    c.RemoveMessage: lambda store, it: store._rows.drop(store._rows.row(it.message)),
    c.BeginUnit: lambda store, it: store._outcomes.begin(it),
    c.EndUnit: MemoryStore._end_unit,
    c.SkipUnit: lambda store, it: store._outcomes.record(it.client_id, it.number, it.outcome, it.now),
    c.DropDefinition: MemoryStore._drop_definition,
    c.WriteRun: lambda store, it: store._run_records.write(it),
    c.DropRun: lambda store, it: store._run_records.drop(it),
    r.ReserveMessages: lambda store, it: store._reserved.reserve(it),
    r.SetReservation: lambda store, it: store._reserved.write(it),
    r.SettleReserved: lambda store, it: store._reserved.settle(it),
    r.ReturnReserved: lambda store, it: store._reserved.give_back(it),
}
