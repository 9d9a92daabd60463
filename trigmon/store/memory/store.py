"""The reference store in memory: plain dictionaries and sorted lists. Its contents outlive :meth:`close`.

It serves simulations and tests. A restart recovers it like a database, so one test suite covers all stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from trigmon.mq.enums import DefinitionType, ObjectType, UnitOutcome
from trigmon.mq.run import Run
from trigmon.rules.model import changes as c
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.reservation import Reservation
from trigmon.rules.model.state import Standing
from trigmon.rules.model.stored_messages import SLICE, Found, Selection
from trigmon.rules.model.transitions import after_restart
from trigmon.store.base import ID_BLOCK, KEPT_RESERVATIONS, BaseStore
from trigmon.store.memory.rows import Row, Rows, once_more


class MemoryStore(BaseStore):
    """A store in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._rows = Rows(self.standing.locks)
        self._outcomes: dict[str, dict[int, UnitOutcome]] = {}
        self._recorded_ms: dict[str, int] = {}
        self._run_records: dict[str, Run] = {}
        self._ended_ms: dict[str, int] = {}
        self._reservations: dict[int, Reservation] = {}
        self._notes: list[tuple[dict[Any, Any], Any, Any]] = []
        self._next = 1

    def open(self, q_mgr_name: str, now: int) -> int:
        """See the port. Ids continue at the next block, as in a database."""
        before = self.standing
        self.standing = Standing(q_mgr_name)
        self._rows.locks = self.standing.locks
        if before.q_mgr[""].name:
            self.standing.q_mgr[""] = before.q_mgr[""]
        for table in (before.aliases, before.remotes, before.models, before.processes):
            for definition in table.values():
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
        for number, reservation in list(self._reservations.items()):
            if reservation.q_name not in self.standing.queues:
                del self._reservations[number]
            elif not reservation.is_over:
                self.standing.follow(c.SetReservation(reservation))
        self.standing.mark()
        first = self._next
        self._next += ID_BLOCK
        return first

    def _recover(self, now: int) -> None:
        for each in self.decided:
            for row in self._rows.of_unit(each.unit_id, list(self._rows.of)):
                self._rows.settle(row, each.unit_id, UnitOutcome.COMMITTED)
            self._outcomes.setdefault(each.client_id, {})[each.number] = UnitOutcome.COMMITTED
            self._recorded_ms[each.client_id] = now
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
        for table, key, before in reversed(self._notes):
            if before is None:
                del table[key]
            else:
                table[key] = before
        self._notes.clear()

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
        there = {connection.client_id for connection in self.standing.connections.values()}
        old = [c for c, at_ms in self._recorded_ms.items() if at_ms < before_ms and c not in there]
        for client_id in old[:SLICE]:
            del self._outcomes[client_id], self._recorded_ms[client_id]

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

    def _add(self, change: c.AddMessage) -> None:
        self._rows.add(change)

    def _take(self, change: c.TakeMessage) -> None:
        self._rows.take(change.message, change.unit_id)

    def _carry_over(self, change: c.CarryOver) -> None:
        self._rows.carry_over(change.message, change.unit_id)

    def _remove(self, change: c.RemoveMessage) -> None:
        self._rows.drop(self._rows.row(change.message))

    def _end_unit(self, change: c.EndUnit) -> None:
        unit = change.unit
        for row in self._rows.of_unit(unit.unit_id, {name for name, _ in (*unit.puts, *unit.gets)}):
            self._rows.settle(row, unit.unit_id, change.outcome)
        self._record(unit.client_id, unit.number, change.outcome, change.now)

    def _skip_unit(self, change: c.SkipUnit) -> None:
        self._record(change.client_id, change.number, change.outcome, change.now)

    def _record(self, client_id: str, number: int, outcome: UnitOutcome, now: int) -> None:
        recorded = self._outcomes.get(client_id, {})
        kept = {each: ended for each, ended in recorded.items() if each >= number - 1}
        self._write_key(self._outcomes, client_id, {**kept, number: outcome})
        self._write_key(self._recorded_ms, client_id, now)

    def _begin_unit(self, change: c.BeginUnit) -> None:
        recorded = self._outcomes.get(change.client_id, {})
        first = {change.number - 1: UnitOutcome.UNKNOWN}
        self._write_key(self._outcomes, change.client_id, {**first, **recorded})
        self._write_key(self._recorded_ms, change.client_id, change.now)

    def _drop_definition(self, change: c.DropDefinition) -> None:
        if change.object_type is ObjectType.QLOCAL:
            self._rows.drop_all(change.name)
            for number, reservation in list(self._reservations.items()):
                if reservation.q_name == change.name:
                    self._note_key(self._reservations, number)
                    del self._reservations[number]

    def _reserve_messages(self, change: c.ReserveMessages) -> None:
        for ordinal, message in enumerate(change.messages, change.first):
            row = self._rows.row(message)
            self._rows.set(Row(replace(row.message, ordinal=ordinal), 0, change.reservation))

    def _set_reservation(self, change: c.SetReservation) -> None:
        if change.is_stored:
            stored = replace(change.reservation, holder=0, readers=())
            self._write_key(self._reservations, stored.number, stored)
            if stored.is_over:
                self._forget_reservations(stored.q_name, stored.consumer)

    def _forget_reservations(self, q_name: str, consumer: str) -> None:
        of = sorted(n for n, r in self._reservations.items() if (r.q_name, r.consumer) == (q_name, consumer))
        for number in of[:-KEPT_RESERVATIONS]:
            if self._reservations[number].is_over:
                self._note_key(self._reservations, number)
                del self._reservations[number]

    def _settle_reserved(self, change: c.SettleReserved) -> None:
        for message in change.messages:
            self._rows.drop(self._rows.row(message))

    def _return_reserved(self, change: c.ReturnReserved) -> None:
        for message in change.messages:
            row = self._rows.row(message)
            self._rows.set(Row(replace(once_more(row.message, change.adds), ordinal=-1)))

    def _write_run(self, change: c.WriteRun) -> None:
        self._write_key(self._run_records, change.run_id, change.run)
        self._write_key(self._ended_ms, change.run_id, change.ended_ms)

    def _drop_run(self, change: c.DropRun) -> None:
        """Removes a run at once: the call consists of nothing else, so it is never undone."""
        del self._run_records[change.run_id], self._ended_ms[change.run_id]

    def _write_key(self, table: dict[Any, Any], key: object, value: object) -> None:
        self._note_key(table, key)
        table[key] = value

    def _note_key(self, table: dict[Any, Any], key: object) -> None:
        self._notes.append((table, key, table.get(key)))

    def _recorded(self, client_id: str) -> dict[int, UnitOutcome]:
        return self._outcomes.get(client_id, {})

    def _ended(self, reservation: int) -> Reservation | None:
        return self._reservations.get(reservation)

    def _run(self, run_id: str) -> Run | None:
        return self._run_records.get(run_id)

    def _runs(self, where: dict[str, object], before: str, limit: int) -> Sequence[Run]:
        run_ids = list(self._run_records)
        if before:
            run_ids = run_ids[: run_ids.index(before)] if before in self._run_records else []
        chosen = [
            run
            for run in map(self._run_records.__getitem__, reversed(run_ids))
            if all(run.json.get(name) == value for name, value in where.items())
        ]
        return chosen[:limit]

    def _held(self, line: tuple[str, str, str], limit: int, *, from_last: bool = False) -> Sequence[str]:
        held = [run_id for run_id, run in self._run_records.items() if run.is_held and run.line == line]
        return held[-limit:] if from_last else held[:limit]

    def _outdated(self, keep_count: int, ended_before_ms: int) -> Sequence[str]:
        ended = sorted(filter(self._ended_ms.get, self._run_records), key=self._ended_ms.__getitem__)
        surplus = len(ended) - keep_count
        return [r for n, r in enumerate(ended[:SLICE]) if n < surplus or self._ended_ms[r] < ended_before_ms]


_WRITE: dict[type[c.AnyChange], Any] = {
    c.AddMessage: MemoryStore._add,
    c.TakeMessage: MemoryStore._take,
    c.CarryOver: MemoryStore._carry_over,
    c.RemoveMessage: MemoryStore._remove,
    c.BeginUnit: MemoryStore._begin_unit,
    c.EndUnit: MemoryStore._end_unit,
    c.SkipUnit: MemoryStore._skip_unit,
    c.DropDefinition: MemoryStore._drop_definition,
    c.WriteRun: MemoryStore._write_run,
    c.DropRun: MemoryStore._drop_run,
    c.ReserveMessages: MemoryStore._reserve_messages,
    c.SetReservation: MemoryStore._set_reservation,
    c.SettleReserved: MemoryStore._settle_reserved,
    c.ReturnReserved: MemoryStore._return_reserved,
}
