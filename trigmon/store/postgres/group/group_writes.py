"""Writes of a member's changes to its group's tables: message rows, counts of shared queues, locks and definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.enums import ObjectType, UnitOutcome
from trigmon.rules.model import changes as c
from trigmon.rules.model import group_changes, handle_changes
from trigmon.rules.model.shared_queue import SharedQueue, at_work, came, lies
from trigmon.rules.model.stored_messages import SLICE
from trigmon.store.memory.group import OWN_NUMBERS
from trigmon.store.postgres import group_sql
from trigmon.store.postgres.group.group_leftovers import GroupLeftovers
from trigmon.store.postgres.group.group_snapshot import GroupSnapshot
from trigmon.store.postgres.group.unit_totals import NO_UNIT, Unit, available, expected
from trigmon.store.postgres.turn import Turn
from trigmon.store.shared_writes import after_add, after_define, after_take, after_trigger, without
from trigmon.store.sql import statements as sql
from trigmon.store.sql.read_ahead import Ahead
from trigmon.store.sql.row_writes import Messages

_ONE_ROW = frozenset({sql.TAKE_MESSAGE, sql.REMOVE_MESSAGE, sql.SET_ASIDE})


class GroupWrites:
    """The writes of one member, in its turns. ``WRITE_GROUP`` maps each change to the function that writes it.

    ``number`` is the member's: its units of work and handles have numbers of their own in the group, from ``own`` on.
    ``units``: what its units of work in flight did on shared queues. ``groups``: the completeness of message groups.
    ``leftovers``: the deferred work of the group.
    """

    def __init__(
        self, turn: Turn, snapshot: GroupSnapshot, ahead: Ahead, leftovers: GroupLeftovers, member: str, number: int
    ) -> None:
        self._turn = turn
        self._snapshot = snapshot
        self._ahead = ahead
        self.leftovers = leftovers
        self._member = member
        self.own = number * OWN_NUMBERS
        self._messages = Messages(self._execute)
        self.groups = self._messages.groups
        snapshot.with_groups = self.groups.queues
        self.units: dict[int, Unit] = {}
        self._settles: dict[str, int] = {}

    def of_group(self, unit_id: int) -> int:
        """Returns a unit of work's number in the group; 0 for no unit."""
        return self.own + unit_id if unit_id else 0

    def end_unit(self, change: c.EndUnit, q_names: Sequence[str]) -> None:
        """Commits or backs out a unit's work on these shared queues."""
        unit, is_commit = change.unit.on(q_names), change.outcome is UnitOutcome.COMMITTED
        known = self.units.get(unit.unit_id, NO_UNIT)
        number, numbers = self.of_group(unit.unit_id), self._snapshot.numbers
        has_groups = self.groups.has_any_of(number)
        left = self.leftovers.of_unit(unit, numbers, is_commit=is_commit, has_groups=has_groups)
        self._settles = expected(unit, known, left, is_commit=is_commit)
        self._messages.end_unit(unit, number, is_commit=is_commit, left=left)
        self._settles = {}
        if left:
            self.leftovers.leave(unit, number, left, numbers)
        self._ahead.follow(replace(change, unit=unit))
        for name in q_names:
            put, back = available(unit, known, name, is_commit=is_commit)
            uncommitted = [sum(n for (q_name, _), n in of.items() if q_name == name) for of in (unit.puts, unit.gets)]
            queue = at_work(self._queue(name), self._member, puts=-uncommitted[0], gets=-uncommitted[1])
            self._write(came(lies(queue, back), put))
        self._snapshot.set(self.units, unit.unit_id, None)

    def _execute(self, statement: str, values: tuple[object, ...] = ()) -> Any:
        """Runs a statement; it fails unless it changes as many rows as expected, if that is known."""
        rows = 1 if statement in _ONE_ROW else self._settles.get(statement)
        return self._turn.execute(statement, values, rows)

    def _add(self, change: c.AddMessage) -> None:
        snapshot = self._snapshot
        number, snapshot.next_number = snapshot.next_number, snapshot.next_number + 1
        change = replace(change, number=number)
        unit_id, name = change.unit_id, change.q_name
        self._messages.add(change, snapshot.numbers[name], number, self.of_group(unit_id))
        self._ahead.follow(change)
        if unit_id:
            unit = self.units.get(unit_id, NO_UNIT)
            snapshot.set(self.units, unit_id, replace(unit, put_to=unit.put_to | {name}))
        self._write(after_add(self._queue(name), change, self._member))

    def _take(self, change: c.TakeMessage) -> None:
        message = change.message
        queue = self._snapshot.numbers[message.q_name]
        self.leftovers.rewrite(queue, (message.number,))
        self._messages.take(message, queue, self.of_group(change.unit_id))
        self._ahead.follow(change)
        unit = self.units.get(change.unit_id, NO_UNIT)
        if message.is_own:
            key = message.q_name, message.priority
            unit = replace(unit, own_gets={**unit.own_gets, key: unit.own_gets.get(key, 0) + 1})
        self._snapshot.set(self.units, change.unit_id, unit)
        self._write(after_take(self._queue(message.q_name), message, self._member))
        self._unlock(message.number)

    def _carry_over(self, change: c.CarryOver) -> None:
        self._messages.carry_over(change.message.number, self.of_group(change.unit_id))
        self._ahead.follow(change)
        self._snapshot.set(self.units, change.unit_id, self.units.get(change.unit_id, NO_UNIT))

    def _remove(self, change: c.RemoveMessage) -> None:
        self._messages.remove(change.message, self._snapshot.numbers[change.message.q_name])
        self._gone(change)

    def _set_aside(self, change: c.SetAside) -> None:
        self._messages.set_aside(change.message, self._snapshot.numbers[change.message.q_name])
        self._gone(change)

    def _gone(self, change: c.RemoveMessage | c.SetAside) -> None:
        self._ahead.follow(change)
        self._write(without(self._queue(change.message.q_name), change.message))
        self._unlock(change.message.number)

    def _lock(self, change: handle_changes.LockMessage) -> None:
        handle = self.own + change.handle
        for number in change.numbers:
            self._snapshot.lock(number, handle)
            self._turn.execute(group_sql.SET_LOCK, (number, handle))

    def _unlock_all(self, change: handle_changes.UnlockMessage) -> None:
        handle = self.own + change.handle
        for number in [number for number, holder in self._snapshot.locks.items() if holder == handle]:
            self._unlock(number)
        self._write(self._queue(change.q_name))  # others' gets may go on

    def _unlock(self, number: int) -> None:
        if number in self._snapshot.locks:
            self._snapshot.lock(number, None)
            self._turn.execute(group_sql.DROP_LOCK, (number,))

    def _define(self, change: c.SetDefinition) -> None:
        definition = change.definition
        assert isinstance(definition, LocalQueue)
        name = definition.name
        if name not in self._snapshot.numbers:
            ((number,),) = self._turn.execute(sql.ADD_QUEUE, (name,))
            self._snapshot.set(self._snapshot.numbers, name, number)
        self._write(after_define(self._snapshot.queues.get(name), definition))

    def _drop(self, change: c.DropDefinition) -> None:
        assert change.object_type is ObjectType.QLOCAL
        name, numbers = change.name, self._snapshot.numbers
        if self.leftovers or sum(self._snapshot.queues[name].depths) > SLICE:
            self.leftovers.of_queue(numbers[name])
            # The next queue of this name has other rows; its deletion is written to its own row.
            ((number,),) = self._turn.execute(sql.ADD_QUEUE, (name,))
            self._snapshot.set(numbers, name, number)
        else:
            self._turn.execute(sql.CLEAR_QUEUE, (numbers[name],))
        self._ahead.follow(change)
        self._snapshot.write(name, None)

    def _define_for_all(self, change: group_changes.SetGroupDefinition) -> None:
        self._snapshot.define((change.object_type, change.definition.name), change.definition)

    def _drop_for_all(self, change: group_changes.DropGroupDefinition) -> None:
        self._snapshot.define((change.object_type, change.name), None)

    def _note_triggered(self, change: group_changes.NoteTriggered) -> None:
        queue = self._queue(change.q_name)
        fired = after_trigger(queue, change)
        if fired != queue:
            self._write(fired)

    def _queue(self, name: str) -> SharedQueue:
        return self._snapshot.queues[name]

    def _write(self, queue: SharedQueue) -> None:
        self._snapshot.write(queue.definition.name, queue)


WRITE_GROUP: Mapping[type[c.AnyChange], Callable[[GroupWrites, Any], None]] = {
    c.AddMessage: GroupWrites._add,
    c.TakeMessage: GroupWrites._take,
    c.CarryOver: GroupWrites._carry_over,
    c.RemoveMessage: GroupWrites._remove,
    c.SetAside: GroupWrites._set_aside,
    handle_changes.LockMessage: GroupWrites._lock,
    handle_changes.UnlockMessage: GroupWrites._unlock_all,
    c.SetDefinition: GroupWrites._define,
    c.DropDefinition: GroupWrites._drop,
    group_changes.SetGroupDefinition: GroupWrites._define_for_all,
    group_changes.DropGroupDefinition: GroupWrites._drop_for_all,
    group_changes.NoteTriggered: GroupWrites._note_triggered,
}
