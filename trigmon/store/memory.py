"""The reference store: dictionaries and sorted lists, no cleverness. What it holds outlives :meth:`close`.

It serves rehearsals and tests; a restart treats it as a disk would be treated, so both stores keep one suite.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from trigmon.mq.descriptors import NO_ID
from trigmon.mq.enums import DefinitionType, ObjectType, UnitOutcome
from trigmon.mq.run_states import HELD
from trigmon.rules import changes as c
from trigmon.rules.facts import SLICE, Found, QueueFacts, Selection, StoredMessage, fits, follows
from trigmon.rules.following import after_restart
from trigmon.rules.order.place import SEGMENT
from trigmon.rules.order.wholeness import Item, Whole, has_message, reach
from trigmon.rules.records import line_of
from trigmon.rules.reserved import Reservation
from trigmon.rules.world import Standing
from trigmon.store.base import ID_BLOCK, KEPT_RESERVATIONS, BaseStore

Key = tuple[int, int]


class Row(msgspec.Struct):
    """A message as it lies here: ``put_by`` and ``taken_by`` are units of work, 0 for none."""

    message: StoredMessage
    put_by: int = 0
    taken_by: int = 0
    is_held: bool = False
    on_backout: bool = False

    @property
    def key(self) -> Key:
        """Get order: highest priority first, then arrival."""
        return -self.message.priority, self.message.number


class Rows:
    """All messages, by queue in get order. ``copy`` is what an undo returns to."""

    def __init__(self) -> None:
        self.of: dict[str, dict[Key, Row]] = {}
        self.order: dict[str, list[Key]] = {}
        self.notes: list[tuple[str, Row, Row | None]] = []

    def set(self, row: Row) -> None:
        """Writes a row, new or changed."""
        rows = self.of.setdefault(row.message.q_name, {})
        before = rows.get(row.key)
        self.notes.append((row.message.q_name, row, before))
        if before is None:
            insort(self.order.setdefault(row.message.q_name, []), row.key)
        rows[row.key] = row

    def drop(self, row: Row) -> None:
        """Removes a row."""
        q_name = row.message.q_name
        self.notes.append((q_name, row, row))
        del self.of[q_name][row.key]
        order = self.order[q_name]
        del order[bisect_right(order, row.key) - 1]

    def undo(self) -> None:
        """Back to the last time the notes were cleared."""
        for q_name, row, before in reversed(self.notes):
            rows = self.of.setdefault(q_name, {})
            was_there = row.key in rows
            if before is None:
                del rows[row.key]
                self.order[q_name].remove(row.key)
            else:
                rows[row.key] = before
                if not was_there:
                    insort(self.order.setdefault(q_name, []), row.key)
        self.notes.clear()

    def all(self) -> Iterator[Row]:
        """Every row of every queue."""
        for rows in self.of.values():
            yield from rows.values()


class MemoryStore(BaseStore):
    """A store in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._rows = Rows()
        self._outcomes: dict[str, dict[int, UnitOutcome]] = {}
        self._run_records: dict[str, dict[str, object]] = {}
        self._ended_ms: dict[str, int] = {}
        self._reservations: dict[int, Reservation] = {}
        self._notes: list[tuple[dict[Any, Any], Any, Any]] = []
        self._next = 1

    def open(self, q_mgr_name: str, now: int) -> int:
        """See the port. Ids go on from a round number above the last, as on disk."""
        before = self.standing
        self.standing = Standing(q_mgr_name)
        if before.q_mgr[""].name:
            self.standing.q_mgr[""] = before.q_mgr[""]
        for table in (before.aliases, before.remotes, before.models, before.processes):
            for definition in table.values():
                self.standing.define(definition)
        self.standing.pauses = dict(before.pauses)
        self.standing.cancelling = dict(before.cancelling)
        self.standing.running = {run_id: after_restart(doing) for run_id, doing in before.running.items()}
        self.standing.causes, self.standing.held = dict(before.causes), dict(before.held)
        self._recover()
        for name, queue in before.queues.items():
            if queue.is_deleted or queue.definition.definition_type is DefinitionType.TEMPORARY_DYNAMIC:
                self._drop_rows(name)
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

    def _recover(self) -> None:
        for row in list(self._rows.all()):
            if row.message.ordinal >= 0:
                continue
            if row.put_by or not row.message.is_persistent:
                self._rows.drop(row)
            elif row.taken_by:
                self._rows.set(Row(_once_more(row.message)))
        self._rows.notes.clear()

    def keep_time(self, said: str, *, must: bool = False) -> bool:
        """See the port. Nothing here outlives the clock."""
        return True

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

    def find(self, selection: Selection) -> Found:
        """See the port."""
        if selection.oldest_from is not None or selection.counts_expired:
            return Found(self._oldest(selection), expired_count=self._count_expired(selection))
        if selection.is_expired:
            return Found(expired=self._expired(selection))
        if selection.reserved_by:
            return Found(self._reserved(selection))
        messages: list[StoredMessage] = []
        expired: list[StoredMessage] = []
        size = 0
        for row in self._chosen(selection):
            if row.message.expires_ms and row.message.expires_ms <= selection.now:
                if not row.put_by:
                    expired.append(row.message)
                if len(expired) >= SLICE:
                    break
                continue
            messages.append(replace(row.message, is_own=True) if row.put_by else row.message)
            size += len(row.message.data)
            if len(messages) >= selection.limit or size >= selection.limit_bytes:
                break
        if selection.gathers and messages:
            messages = self._segments(messages[0], selection)
        return Found(tuple(messages), tuple(expired))

    def _chosen(self, selection: Selection) -> Iterator[Row]:
        """What the selection names, in get order, expired or not."""
        rows = self._rows.of.get(selection.q_name, {})
        keys = self._rows.order.get(selection.q_name, [])
        if selection.at is not None:
            keys = [(-selection.at.priority, selection.at.number)]
        elif selection.after is not None:
            keys = keys[bisect_right(keys, (-selection.after.priority, selection.after.number)) :]
        for key in keys:
            row = rows.get(key)
            if row is None or not _is_chosen(row, selection) or self._is_locked(row.message.number, selection):
                continue
            if self._is_whole(row.message, selection):
                yield row

    def _is_locked(self, number: int, selection: Selection) -> bool:
        return self.standing.locks.get(number, selection.handle) != selection.handle

    def _group(self, message: StoredMessage, selection: Selection, now: int) -> list[StoredMessage]:
        """What is there of a message's group, in the order of the places."""
        rows = self._rows.of.get(selection.q_name, {}).values()
        group = [
            row.message
            for row in rows
            if _is_visible(row, selection)
            and not self._is_locked(row.message.number, selection)
            and row.message.descriptor.group_id == message.descriptor.group_id
            and not 0 < row.message.expires_ms <= now
        ]
        return sorted(group, key=lambda m: (m.descriptor.msg_seq_number, m.descriptor.offset, -m.priority, m.number))

    def _is_whole(self, message: StoredMessage, selection: Selection) -> bool:
        """Whether enough of its group is there. One that has expired is judged as if none had: it is discarded."""
        if selection.whole is Whole.NOTHING or message.descriptor.group_id == NO_ID:
            return True
        has_expired = 0 < message.expires_ms <= selection.now
        items = [_item(each) for each in self._group(message, selection, 0 if has_expired else selection.now)]
        if selection.whole is Whole.GROUP:
            return reach(items)[1] is Whole.GROUP
        return has_message(items, message.descriptor.msg_seq_number)

    def _segments(self, first: StoredMessage, selection: Selection) -> list[StoredMessage]:
        """The segments of a logical message in their order, from this one on."""
        if not first.descriptor.msg_flags & SEGMENT:
            return [first]
        segments = [first]
        for each in self._group(first, selection, selection.now):
            if follows(segments[-1], each):
                segments.append(each)
        return segments

    def _reserved(self, selection: Selection) -> tuple[StoredMessage, ...]:
        first, end = selection.ordinals
        rows = self._rows.of.get(selection.q_name, {}).values()
        of = [row.message for row in rows if row.taken_by == selection.reserved_by]
        of.sort(key=lambda message: message.ordinal)
        messages: list[StoredMessage] = []
        size = 0
        for message in (message for message in of if first <= message.ordinal < end):
            messages.append(message)
            size += len(message.data)
            if len(messages) >= selection.limit or size >= selection.limit_bytes:
                break
        return tuple(messages)

    def _oldest(self, selection: Selection) -> tuple[StoredMessage, ...]:
        if selection.oldest_from is None:
            return ()
        messages = [
            row.message
            for row in self._rows.of.get(selection.q_name, {}).values()
            if _is_chosen(row, selection)
            and row.message.priority >= selection.oldest_from
            and not 0 < row.message.expires_ms <= selection.now
        ]
        return tuple(sorted(messages, key=lambda message: message.number)[:1])

    def _expired(self, selection: Selection) -> tuple[StoredMessage, ...]:
        messages = [
            row.message
            for row in self._rows.of.get(selection.q_name, {}).values()
            if 0 < row.message.expires_ms <= selection.now and not row.put_by and not row.taken_by
        ]
        messages.sort(key=lambda message: (message.expires_ms, message.number))
        return tuple(messages[: selection.limit])

    def _count_expired(self, selection: Selection) -> int:
        return len(self._expired(replace(selection, limit=selection.counts_expired)))

    def apply(self, changes: Sequence[c.AnyChange], can_be_undone: bool) -> None:
        """See the port."""
        for change in changes:
            write = _WRITE.get(type(change))
            if write is not None:
                write(self, change)
            self.standing.follow(change)

    def end(self) -> None:
        """See the port."""

    def idle(self) -> None:
        """See the port."""

    def close(self) -> None:
        """See the port."""

    def abandon(self) -> None:
        """See the port."""

    def _add(self, change: c.AddMessage) -> None:
        self._rows.set(Row(change.message, change.unit_id, 0, change.is_held, change.on_backout))

    def _take(self, change: c.TakeMessage) -> None:
        row = self._row(change.message)
        self._rows.set(Row(row.message, row.put_by, change.unit_id, row.is_held, row.on_backout))

    def _carry_over(self, change: c.CarryOver) -> None:
        row = self._rows.of[change.message.q_name][-change.message.priority, change.message.number]
        self._rows.set(Row(row.message, row.put_by, change.unit_id))

    def _remove(self, change: c.RemoveMessage) -> None:
        self._rows.drop(self._row(change.message))

    def _row(self, message: StoredMessage) -> Row:
        return self._rows.of[message.q_name][-message.priority, message.number]

    def _end_unit(self, change: c.EndUnit) -> None:
        unit = change.unit
        for q_name in {name for name, _ in (*unit.puts, *unit.gets)}:
            for row in list(self._rows.of.get(q_name, {}).values()):
                if unit.unit_id in (row.put_by, row.taken_by):
                    self._settle(row, unit.unit_id, change.outcome)
        recorded = self._outcomes.get(unit.client_id, {})
        kept = {number: outcome for number, outcome in recorded.items() if number >= unit.number - 1}
        self._write_key(self._outcomes, unit.client_id, {**kept, unit.number: change.outcome})

    def _settle(self, row: Row, unit_id: int, outcome: UnitOutcome) -> None:
        committed = outcome is UnitOutcome.COMMITTED
        if committed and row.taken_by == unit_id:
            self._rows.drop(row)
        elif row.put_by == unit_id:
            if committed or row.on_backout:
                self._rows.set(Row(row.message))
            else:
                self._rows.drop(row)
        else:
            self._rows.set(Row(_once_more(row.message), row.put_by))

    def _begin_unit(self, change: c.BeginUnit) -> None:
        recorded = self._outcomes.get(change.client_id, {})
        first = {change.number - 1: UnitOutcome.UNKNOWN}
        self._write_key(self._outcomes, change.client_id, {**first, **recorded})

    def _drop_definition(self, change: c.DropDefinition) -> None:
        if change.object_type is ObjectType.QLOCAL:
            self._drop_rows(change.name)
            for number, reservation in list(self._reservations.items()):
                if reservation.q_name == change.name:
                    self._note_key(self._reservations, number)
                    del self._reservations[number]

    def _reserve_messages(self, change: c.ReserveMessages) -> None:
        for ordinal, message in enumerate(change.messages, change.first):
            row = self._row(message)
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
            self._rows.drop(self._row(message))

    def _return_reserved(self, change: c.ReturnReserved) -> None:
        for message in change.messages:
            row = self._row(message)
            self._rows.set(Row(replace(_once_more(row.message, change.adds), ordinal=-1)))

    def _drop_rows(self, q_name: str) -> None:
        for row in list(self._rows.of.get(q_name, {}).values()):
            self._rows.drop(row)

    def _write_run(self, change: c.WriteRun) -> None:
        self._write_key(self._run_records, change.run_id, change.record)
        self._write_key(self._ended_ms, change.run_id, change.ended_ms)

    def _drop_run(self, change: c.DropRun) -> None:
        """Nothing can take it back: it is the whole of its call."""
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

    def _run(self, run_id: str) -> dict[str, object] | None:
        return self._run_records.get(run_id)

    def _runs(self, where: dict[str, object], before: str, limit: int) -> Sequence[dict[str, object]]:
        run_ids = list(self._run_records)
        if before:
            run_ids = run_ids[: run_ids.index(before)] if before in self._run_records else []
        chosen = [
            run
            for run in map(self._run_records.__getitem__, reversed(run_ids))
            if all(run.get(name) == value for name, value in where.items())
        ]
        return chosen[:limit]

    def _held(self, line: tuple[str, str, str], limit: int, *, from_last: bool = False) -> Sequence[str]:
        held = [
            run_id
            for run_id, record in self._run_records.items()
            if record.get("state") == HELD and line_of(record) == line
        ]
        return held[-limit:] if from_last else held[:limit]

    def _outdated(self, keep_count: int, ended_before_ms: int) -> Sequence[str]:
        ended = sorted(filter(self._ended_ms.get, self._run_records), key=self._ended_ms.__getitem__)
        surplus = len(ended) - keep_count
        return [r for n, r in enumerate(ended[:SLICE]) if n < surplus or self._ended_ms[r] < ended_before_ms]


def _is_visible(row: Row, selection: Selection) -> bool:
    return not row.taken_by and not row.is_held and row.put_by in (0, selection.unit_id)


def _is_chosen(row: Row, selection: Selection) -> bool:
    if row.put_by and selection.own_persistent and not row.message.is_persistent:
        return False
    return _is_visible(row, selection) and fits(selection, row.message.descriptor)


def _item(message: StoredMessage) -> Item:
    descriptor = message.descriptor
    return Item(descriptor.msg_seq_number, descriptor.offset, len(message.data), descriptor.msg_flags)


def _once_more(message: StoredMessage, by: int = 1) -> StoredMessage:
    """The message backed out: its place as before, its backout count so much higher."""
    descriptor = message.descriptor
    return replace(message, descriptor=replace(descriptor, backout_count=descriptor.backout_count + by))


_WRITE: dict[type[c.Change], Any] = {
    c.AddMessage: MemoryStore._add,
    c.TakeMessage: MemoryStore._take,
    c.CarryOver: MemoryStore._carry_over,
    c.RemoveMessage: MemoryStore._remove,
    c.BeginUnit: MemoryStore._begin_unit,
    c.EndUnit: MemoryStore._end_unit,
    c.DropDefinition: MemoryStore._drop_definition,
    c.WriteRun: MemoryStore._write_run,
    c.DropRun: MemoryStore._drop_run,
    c.ReserveMessages: MemoryStore._reserve_messages,
    c.SetReservation: MemoryStore._set_reservation,
    c.SettleReserved: MemoryStore._settle_reserved,
    c.ReturnReserved: MemoryStore._return_reserved,
}
