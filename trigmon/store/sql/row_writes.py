"""Writes of changes to the rows of an SQL store: one function for each change, by the table ``WRITE``.

The rows of messages are written by :class:`Messages`: queues, units of work and handles are given by the numbers of the
store that keeps the rows. Counts of queues are kept elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from trigmon.checksum import crc32
from trigmon.mq.attributes import LocalQueue
from trigmon.mq.descriptors import NO_ID, MessageDescriptor
from trigmon.mq.enums import ObjectType, UnitOutcome
from trigmon.rules.model import changes as c
from trigmon.rules.model import reservation_changes as r
from trigmon.rules.model.group_completeness import START, Item, Whole
from trigmon.rules.model.handles import UnitFacts
from trigmon.rules.model.stored_messages import SLICE, StoredMessage, stretches
from trigmon.rules.model.transitions import causes_of, pause_of
from trigmon.store.base import KEPT_RESERVATIONS
from trigmon.store.sql import statements as sql
from trigmon.store.sql.group_progress import Group, Groups, Mark, Order, Place
from trigmon.store.sql.leftovers import COMMITTED, GOT, PUT, RETURNED
from trigmon.store.sql.run_rows import LEDGER_WRITES, Ledger

if TYPE_CHECKING:
    from trigmon.store.sql.store import RowStore

_encode = msgspec.msgpack.Encoder().encode
Many = Callable[[str, Iterable[tuple[object, ...]]], None]


def row_of(change: c.AddMessage, queue: int, number: int, unit: int) -> tuple[object, ...]:
    """Returns the values of :data:`sql.ADD_MESSAGE`; ``unit`` 0 is none."""
    descriptor = change.descriptor
    head = _encode(descriptor)
    return (
        number,
        queue,
        change.priority,
        int(change.is_persistent),
        unit or None,
        (2 if change.on_backout else 1) if change.is_held else 0,
        change.expires_ms,
        descriptor.backout_count,
        descriptor.msg_id,
        None if descriptor.correl_id == NO_ID else descriptor.correl_id,
        head,
        change.data,
        crc32(change.data, crc32(head)),
    )


def _place_in_group(descriptor: MessageDescriptor, mark: Mark | None = None) -> tuple[object, ...]:
    """Returns the values of :data:`sql.ADD_ITEM` behind those of its row; ``mark`` is for a first item."""
    seq, offset = descriptor.msg_seq_number, descriptor.offset
    of_first = mark or (Whole.NOTHING.value, 0)
    return (descriptor.group_id, seq, offset, descriptor.msg_flags, *(of_first if (seq, offset) == START else (0, 0)))


def _item_of(put: c.AddMessage) -> tuple[Order, Item]:
    descriptor = put.descriptor
    item = Item(descriptor.msg_seq_number, descriptor.offset, len(put.data), descriptor.msg_flags)
    return (-put.priority, put.number), item


def row_sum(*values: object) -> int:
    """Returns the checksum of a row of any other table, where a store keeps one."""
    return crc32(repr(values).encode())


class Messages:
    """Writes messages, and the completeness of their groups. ``execute`` runs a statement and returns its rows."""

    def __init__(self, execute: Callable[..., Iterable[Any]]) -> None:
        self._execute = execute
        self.groups = Groups(execute)

    def add(self, change: c.AddMessage, queue: int, number: int, unit: int) -> None:
        """Adds a message."""
        descriptor, row = change.descriptor, row_of(change, queue, number, unit)
        if descriptor.group_id == NO_ID:
            self._execute(sql.ADD_MESSAGE, row)
            return
        self._execute(sql.ADD_ITEM, (*row, *_place_in_group(descriptor)))
        place = descriptor.msg_seq_number, descriptor.offset
        self.groups.came(queue, descriptor.group_id, (-change.priority, number), place, unit)

    def add_items(self, puts: Sequence[c.AddMessage], numbers: Mapping[str, int], many: Many) -> None:
        """Adds committed messages of groups. A group that is new is looked at in memory, and its rows are written once.

        ``numbers`` are those of the queues; ``many`` runs a statement for many rows.
        """
        by_group: dict[Group, list[c.AddMessage]] = {}
        for put in puts:
            by_group.setdefault((numbers[put.q_name], put.descriptor.group_id), []).append(put)
        rows: list[tuple[object, ...]] = []
        extended: dict[Group, Place] = {}
        for group, of in by_group.items():
            items = [_item_of(put) for put in of]
            mark = self.groups.mark_of_new(group, items)
            if mark is None:
                extended[group] = min(item[:2] for _, item in items)
            rows += [(*row_of(put, group[0], put.number, 0), *_place_in_group(put.descriptor, mark)) for put in of]
        many(sql.ADD_ITEM, rows)
        for group, place in extended.items():
            self.groups.changed(group, place, has_new_heads=place == START)

    def take(self, message: StoredMessage, queue: int, unit: int) -> None:
        """Marks a message as got under a unit of work."""
        self._execute(sql.TAKE_MESSAGE, (unit, message.number))
        self.groups.took(queue, message, unit)

    def carry_over(self, number: int, unit: int) -> None:
        """Moves a marked message (skip backout) to another unit of work."""
        self._execute(sql.TAKE_MESSAGE, (unit, number))
        self.groups.carried(unit)

    def remove(self, message: StoredMessage, queue: int) -> None:
        """Removes a message."""
        self._execute(sql.REMOVE_MESSAGE, (message.number,))
        self.groups.took(queue, message, 0)

    def set_aside(self, message: StoredMessage, queue: int) -> None:
        """Takes a damaged message off its queue; its row stays."""
        self._execute(sql.SET_ASIDE, (message.number,))
        self.groups.set_aside(queue, message.number)

    def end_unit(self, unit: UnitFacts, number: int, *, is_commit: bool, left: Container[str] = ()) -> None:
        """Commits or backs out a unit's puts and gets, except the parts ``left`` for later; releases held messages."""
        ends: tuple[str, ...]
        groups = self.groups.before_end(number, is_commit=is_commit)
        if is_commit:
            ends = (
                sql.COMMIT_GETS if unit.gets and GOT not in left else "",
                sql.COMMIT_PUTS if unit.puts and COMMITTED not in left else "",
            )
        else:
            ends = (
                sql.BACK_OUT_PUTS if unit.puts and PUT not in left else "",
                sql.RELEASE_HELD if unit.held and PUT not in left else "",
                sql.BACK_OUT_GETS if unit.gets and RETURNED not in left else "",
            )
        for statement in filter(None, ends):
            self._execute(statement, (number,))
        for group, place in groups.items():
            self.groups.changed(group, place, has_new_heads=place == START)


def _add(store: RowStore, change: c.AddMessage) -> None:
    store.keep_ids_behind(change.number)
    store.messages.add(change, store.numbers[change.q_name], change.number, change.unit_id)


def _take(store: RowStore, change: c.TakeMessage) -> None:
    queue = store.numbers[change.message.q_name]
    store.leftovers.rewrite(queue, (change.message.number,))
    store.messages.take(change.message, queue, change.unit_id)


def _carry_over(store: RowStore, change: c.CarryOver) -> None:
    store.messages.carry_over(change.message.number, change.unit_id)


def _remove(store: RowStore, change: c.RemoveMessage) -> None:
    store.messages.remove(change.message, store.numbers[change.message.q_name])


def _set_aside(store: RowStore, change: c.SetAside) -> None:
    store.messages.set_aside(change.message, store.numbers[change.message.q_name])


def _reserve_messages(store: RowStore, change: r.ReserveMessages) -> None:
    numbers = change.columns.numbers
    queue = store.numbers[change.columns.q_name]
    store.leftovers.rewrite(queue, numbers)
    has_groups = store.messages.groups.has_groups(queue)
    is_recorded = (
        store.reserves_ranges
        and not has_groups
        and queue not in store.leftovers.available
        and not change.messages
        and store.ranges.take(queue, change.reservation, change.first, numbers)
    )
    if not is_recorded:
        store.mark_reserved(queue, change.reservation, change.first, numbers)
    if has_groups:
        store.messages.groups.took_many(queue, change.messages)


def _set_reservation(store: RowStore, change: r.SetReservation) -> None:
    if not change.is_stored:
        return
    reservation = replace(change.reservation, holder=0, readers=())
    number, queue = reservation.number, store.numbers[reservation.q_name]
    store.keep_ids_behind(number)
    ended_ms = (reservation.ended_ms or 1) if reservation.is_over else None
    text = msgspec.json.encode(reservation).decode()
    store.execute(sql.SET_RESERVATION, (number, queue, reservation.consumer, ended_ms, text))
    if ended_ms is not None:
        own = queue, reservation.consumer
        store.execute(sql.FORGET_RESERVATIONS, (*own, *own, KEPT_RESERVATIONS - 1))


def _settle_reserved(store: RowStore, change: r.SettleReserved) -> None:
    store.ranges.remove(store.numbers[change.q_name], change.stretches)
    store.remove_stretches(change.stretches)


def _return_reserved(store: RowStore, change: r.ReturnReserved) -> None:
    store.many(sql.RETURN_RESERVED, ((change.adds, message.number) for message in change.messages))
    queue = store.numbers[change.messages[0].q_name]
    store.ranges.remove(queue, stretches([message.number for message in change.messages]))
    for message in change.messages:
        store.messages.groups.returned(queue, message.number)


def _begin_unit(store: RowStore, change: c.BeginUnit) -> None:
    store.keep_ids_behind(change.unit_id)
    # Every ended unit of this connection has a recorded outcome. Before the first unit, or behind a gap, there is
    # none, and a unit that was cut off could not be recognized without this record. A replay of the journal knows no
    # connections: the record changes nothing where there is one.
    connection = store.standing.connections.get(change.connection)
    before = 0 if connection is None else connection.unit_number
    if not before or before != change.number - 1:
        store.execute(sql.RECORD_BEFORE_FIRST, (change.client_id, change.number - 1, change.now))
        store.must_commit = True


def _end_unit(store: RowStore, change: c.EndUnit) -> None:
    unit = change.unit
    if not change.is_decided:
        is_commit = change.outcome is UnitOutcome.COMMITTED
        has_groups = store.messages.groups.has_any_of(unit.unit_id)
        left = store.leftovers.of_unit(unit, store.numbers, is_commit=is_commit, has_groups=has_groups)
        store.messages.end_unit(unit, unit.unit_id, is_commit=is_commit, left=left)
        if left:
            store.leftovers.leave(unit, unit.unit_id, left, store.numbers)
    store.outcomes.add(unit.client_id, unit.number, change.outcome, change.now)


def _skip_unit(store: RowStore, change: c.SkipUnit) -> None:
    store.outcomes.add(change.client_id, change.number, change.outcome, change.now)


def _set_definition(store: RowStore, change: c.SetDefinition) -> None:
    definition = change.definition
    text = msgspec.json.encode(definition).decode()
    store.execute(sql.SET_OBJECT, (change.object_type.name, definition.name, text))
    if isinstance(definition, LocalQueue) and definition.name not in store.numbers:
        store.numbers[definition.name] = store.rows(sql.ADD_QUEUE, (definition.name,))[0][0]


def _drop_definition(store: RowStore, change: c.DropDefinition) -> None:
    store.execute(sql.DROP_OBJECT, (change.object_type.name, change.name))
    store.execute(sql.DROP_PAUSE, pause_of(change))
    for cause in causes_of(change, store.standing.causes):
        store.execute(sql.DROP_CAUSE, cause)
    if change.object_type is ObjectType.QLOCAL:
        number = store.numbers[change.name]
        del store.numbers[change.name]
        store.execute(sql.DROP_RESERVATIONS, (number,))
        store.ranges.drop_queue(number)
        facts = store.standing.queues.get(change.name)
        if store.leftovers or facts is None or facts.depth > SLICE:
            store.leftovers.of_queue(number)
        else:
            store.execute(sql.CLEAR_QUEUE, (number,))
            store.execute(sql.DROP_QUEUE, (number,))


def _delete_logically(store: RowStore, change: c.DeleteLogically) -> None:
    """Removes the definition. Rows stay for open handles; a start removes rows without a definition."""
    store.execute(sql.DROP_OBJECT, (ObjectType.QLOCAL.name, change.q_name))


def _set_pause(store: RowStore, change: c.SetPause) -> None:
    store.execute(sql.SET_PAUSE, msgspec.structs.astuple(change.pause))


def _drop_pause(store: RowStore, change: c.DropPause) -> None:
    store.execute(sql.DROP_PAUSE, (change.what, change.name))


def _in_ledger(write: Callable[[Ledger, Any], None], store: RowStore, change: c.AnyChange) -> None:
    write(store.ledger, change)


WRITE: dict[type[c.AnyChange], Any] = {
    c.AddMessage: _add,
    c.TakeMessage: _take,
    c.CarryOver: _carry_over,
    c.RemoveMessage: _remove,
    c.SetAside: _set_aside,
    c.BeginUnit: _begin_unit,
    c.EndUnit: _end_unit,
    c.SkipUnit: _skip_unit,
    c.SetDefinition: _set_definition,
    c.DropDefinition: _drop_definition,
    c.DeleteLogically: _delete_logically,
    c.SetPause: _set_pause,
    c.DropPause: _drop_pause,
    r.ReserveMessages: _reserve_messages,
    r.SetReservation: _set_reservation,
    r.SettleReserved: _settle_reserved,
    r.ReturnReserved: _return_reserved,
}
WRITE |= {kind: partial(_in_ledger, write) for kind, write in LEDGER_WRITES.items()}
"""The changes that are written to the database; the others change only facts in memory."""
