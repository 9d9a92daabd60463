"""Writes of a member's changes to its group in memory: message rows, facts of shared queues, locks and definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from trigmon.mq.attributes import AnyDefinition, LocalQueue
from trigmon.mq.enums import ObjectType, UnitOutcome
from trigmon.rules.model import changes as c
from trigmon.rules.model import group_changes, handle_changes
from trigmon.rules.model.handles import Decided
from trigmon.rules.model.shared_queue import SharedQueue, at_work, came, counts_of, lies
from trigmon.store.shared_writes import after_add, after_define, after_take, after_trigger, without
from trigmon.store.undo_notes import UndoNotes

if TYPE_CHECKING:
    from trigmon.store.memory.group import MemoryGroup


class MemberWrites:
    """The writes of one member, in its turns. ``WRITE_MEMBER`` maps each change to the function that writes it.

    Its units of work and handles have numbers of their own in the group, from ``own`` on.
    """

    def __init__(self, group: MemoryGroup, notes: UndoNotes, member: str, own: int) -> None:
        self.group = group
        self._notes = notes
        self._member = member
        self._own = own

    def of_group(self, unit_id: int) -> int:
        """Returns a unit of work's number in the group; 0 for no unit."""
        return self._own + unit_id if unit_id else 0

    def write(self, queue: SharedQueue) -> None:
        """Changes a shared queue's facts. The version is not undone: it costs others one more look."""
        self._write_name(queue.definition.name, queue)

    def end_unit(self, change: c.EndUnit, q_names: Sequence[str]) -> None:
        """Commits or backs out a unit's work on these shared queues; a commit is recorded as decided."""
        unit, rows = change.unit, self.group.rows
        of_group = self.of_group(unit.unit_id)
        for name in q_names:
            mine = list(rows.of_unit(of_group, [name]))
            put: list[int] = []
            back: list[int] = []
            for row in mine:
                settled = rows.settle(row, of_group, change.outcome)
                if settled is not None:
                    is_put = row.put_by == of_group and not row.is_held
                    (put if is_put else back).append(settled.message.priority)
            queue = at_work(
                self.group.queues[name],
                self._member,
                puts=-sum(row.put_by == of_group for row in mine),
                gets=-sum(row.taken_by == of_group for row in mine),
            )
            self.write(came(lies(queue, counts_of(back)), counts_of(put)))
        if change.outcome is UnitOutcome.COMMITTED:
            of_member = self.group.decided.setdefault(self._member, {})
            before = of_member.get(unit.client_id, [])
            decided = Decided(unit.client_id, unit.number, unit.unit_id)
            self._notes.set(of_member, unit.client_id, [*before[-1:], decided])

    def _add(self, change: c.AddMessage) -> None:
        number, self.group.next_number = self.group.next_number, self.group.next_number + 1
        self.group.rows.add(replace(change, number=number, unit_id=self.of_group(change.unit_id)))
        self.write(after_add(self.group.queues[change.q_name], change, self._member))

    def _take(self, change: c.TakeMessage) -> None:
        message = change.message
        self.group.rows.take(message, self.of_group(change.unit_id))
        self.write(after_take(self.group.queues[message.q_name], message, self._member))
        self._unlock(message.number)

    def _carry_over(self, change: c.CarryOver) -> None:
        self.group.rows.carry_over(change.message, self.of_group(change.unit_id))

    def _remove(self, change: c.RemoveMessage) -> None:
        message = change.message
        self.group.rows.drop(self.group.rows.row(message))
        self.write(without(self.group.queues[message.q_name], message))
        self._unlock(message.number)

    def _lock(self, change: handle_changes.LockMessage) -> None:
        for number in change.numbers:
            self._notes.set(self.group.locks, number, self._own + change.handle)

    def _unlock_all(self, change: handle_changes.UnlockMessage) -> None:
        for number, handle in list(self.group.locks.items()):
            if handle == self._own + change.handle:
                self._unlock(number)
        self.write(self.group.queues[change.q_name])  # others' gets may go on

    def _unlock(self, number: int) -> None:
        if number in self.group.locks:
            self._notes.set(self.group.locks, number, None)

    def _define(self, change: c.SetDefinition) -> None:
        definition = change.definition
        assert isinstance(definition, LocalQueue)
        self.write(after_define(self.group.queues.get(definition.name), definition))

    def _drop(self, change: c.DropDefinition) -> None:
        assert change.object_type is ObjectType.QLOCAL
        self.group.rows.drop_all(change.name)
        self._write_name(change.name, None)

    def _define_for_all(self, change: group_changes.SetGroupDefinition) -> None:
        self._define_copied((change.object_type, change.definition.name), change.definition)

    def _drop_for_all(self, change: group_changes.DropGroupDefinition) -> None:
        self._define_copied((change.object_type, change.name), None)

    def _define_copied(self, key: tuple[ObjectType, str], definition: AnyDefinition | None) -> None:
        self.group.version += 1
        self.group.definition_versions[key] = self.group.version
        self._notes.set(self.group.definitions, key, definition)

    def _note_triggered(self, change: group_changes.NoteTriggered) -> None:
        queue = self.group.queues[change.q_name]
        fired = after_trigger(queue, change)
        if fired != queue:
            self.write(fired)

    def _write_name(self, name: str, queue: SharedQueue | None) -> None:
        self.group.count_change(name)
        self._notes.set(self.group.queues, name, queue)


WRITE_MEMBER: Mapping[type[c.AnyChange], Callable[[MemberWrites, Any], None]] = {
    c.AddMessage: MemberWrites._add,
    c.TakeMessage: MemberWrites._take,
    c.CarryOver: MemberWrites._carry_over,
    c.RemoveMessage: MemberWrites._remove,
    c.SetAside: MemberWrites._remove,
    handle_changes.LockMessage: MemberWrites._lock,
    handle_changes.UnlockMessage: MemberWrites._unlock_all,
    c.SetDefinition: MemberWrites._define,
    c.DropDefinition: MemberWrites._drop,
    group_changes.SetGroupDefinition: MemberWrites._define_for_all,
    group_changes.DropGroupDefinition: MemberWrites._drop_for_all,
    group_changes.NoteTriggered: MemberWrites._note_triggered,
}
