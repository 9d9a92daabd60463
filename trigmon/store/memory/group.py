"""A queue-sharing group in memory: its shared queues, and one lock for the members' turns.

It serves simulations and tests, and is the reference for the group's store on PostgreSQL, with the same methods. A
member works through :class:`Membership`: from ``begin`` to ``end`` it has a turn, and no other member has one. The
group outlives its members, as a group's database outlives their machines.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from trigmon.mq.attributes import AnyDefinition, LocalQueue
from trigmon.mq.enums import ObjectType, UnitOutcome
from trigmon.rules.model import changes as c
from trigmon.rules.model import group_changes, handle_changes
from trigmon.rules.model.group_members import Member
from trigmon.rules.model.handles import Decided, HandleFacts
from trigmon.rules.model.shared_queue import SharedQueue, at_work, came, counts_of, has_fired, left, lies, opened
from trigmon.rules.model.shared_view import NOTHING_MOVED, Moved
from trigmon.rules.model.stored_messages import Found, Selection, StoredMessage
from trigmon.store.memory.rows import Row, Rows, once_more

FIRST_NUMBER = 1 << 60
"""The numbers of a group's messages begin here, above all numbers of members' own messages."""

OWN_NUMBERS = 1 << 48
"""Each member numbers its handles and units of work by itself, below this."""


class MemoryGroup:
    """A queue-sharing group in memory. ``version`` rises with every change that a member must see."""

    def __init__(self, name: str = "QSG1") -> None:
        self.name = name
        self.lock = threading.RLock()
        self.version = 0
        self.queues: dict[str, SharedQueue] = {}
        self.versions: dict[str, int] = {}
        self.definitions: dict[tuple[ObjectType, str], AnyDefinition] = {}
        self.definition_versions: dict[tuple[ObjectType, str], int] = {}
        self.locks: dict[int, int] = {}
        self.rows = Rows(self.locks)
        self.decided: dict[str, dict[str, list[Decided]]] = {}
        self.active: set[str] = set()
        self.roles: dict[str, tuple[str, int]] = {}
        self.members: dict[str, int] = {}
        self.next_number = FIRST_NUMBER

    def join(self, member: str) -> Membership:
        """Returns a membership for a queue manager; it is active once :meth:`Membership.open` has returned."""
        self.members.setdefault(member, len(self.members) + 1)
        return Membership(self, member)

    def recover(self, member: str) -> None:
        """Recovers a member that has ended or died: backs out its uncommitted work and closes its open handles.

        Any member may call it, repeatedly: a repetition finds nothing.
        """
        with self.lock:
            self.active.discard(member)
            self.roles = {role: held for role, held in self.roles.items() if held[0] != member}
            own = self.members.get(member, 0)
            for name, queue in self.queues.items():
                if member in queue.uses:
                    self.write(name, self._backed_out(name, left(queue, member), own))
            for number, handle in list(self.locks.items()):
                if handle // OWN_NUMBERS == own:
                    del self.locks[number]
            self.rows.notes.clear()

    def _backed_out(self, q_name: str, queue: SharedQueue, own: int) -> SharedQueue:
        for row in list(self.rows.of.get(q_name, {}).values()):
            if row.put_by // OWN_NUMBERS == own:
                self.rows.drop(row)
            elif row.taken_by // OWN_NUMBERS == own:
                self.rows.set(Row(once_more(row.message), row.put_by))
                queue = lies(queue, counts_of([row.message.priority]))
        return queue

    def write(self, name: str, queue: SharedQueue | None) -> None:
        """Changes a queue; None deletes it."""
        self.version += 1
        self.versions[name] = self.version
        if queue is None:
            del self.queues[name]
        else:
            self.queues[name] = queue


class Membership:
    """A member's access to the group. Its numbers of handles and units of work are its own."""

    def __init__(self, group: MemoryGroup, member: str) -> None:
        self.group = group
        self.member = member
        self._own = group.members[member] * OWN_NUMBERS
        self._seen = 0
        self._is_in_turn = False
        self._notes: list[tuple[dict[Any, Any], object, object]] = []

    @property
    def group_name(self) -> str:
        """The group's name."""
        return self.group.name

    # -- life -------------------------------------------------------------------------------------------

    def open(self) -> Sequence[Decided]:
        """Makes the member active; returns its units whose shared half is committed, the last of each client."""
        self.group.recover(self.member)  # work of an earlier process that nobody has recovered yet
        self.group.active.add(self.member)
        self._seen = 0
        return [each for of_client in self.group.decided.get(self.member, {}).values() for each in of_client]

    def close(self) -> None:
        """Ends the membership."""
        self.abandon()

    def abandon(self) -> None:
        """Ends the member's turn, and recovers its work."""
        self._release_turn()
        self.group.recover(self.member)

    # -- a turn -----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begins a turn: only its own calls change shared objects."""
        if not self._is_in_turn:
            self.group.lock.acquire()
            self._is_in_turn = True

    is_entered = True
    """Every turn enters the group at its begin."""

    def enter(self) -> None:
        """Changes nothing: every turn enters the group at its begin."""

    is_full = False
    """Records of decided units are not limited in memory."""

    def end(self) -> None:
        """Ends the turn; its changes can no longer be undone."""
        self.mark()
        self._release_turn()

    def _release_turn(self) -> None:
        if self._is_in_turn:
            self._is_in_turn = False
            self.group.lock.release()

    def mark(self) -> None:
        """Begins a call: :meth:`undo` returns to this point."""
        self._notes.clear()
        self.group.rows.notes.clear()

    def undo(self) -> None:
        """Undoes the call."""
        self.group.rows.undo()
        for table, key, before in reversed(self._notes):
            if before is None:
                table.pop(key, None)
            else:
                table[key] = before
        self._notes.clear()

    def changed(self) -> Moved:
        """Returns what changed since the last call of this method, by any member."""
        if self._seen == self.group.version:
            return NOTHING_MOVED
        names = tuple(name for name, version in self.group.versions.items() if version > self._seen)
        copied = tuple(key for key, version in self.group.definition_versions.items() if version > self._seen)
        self._seen = self.group.version
        return Moved(names, copied)

    def definition(self, object_type: ObjectType, name: str) -> AnyDefinition | None:
        """Returns a definition that every member copies, in its present state."""
        return self.group.definitions.get((object_type, name))

    def takes_role(self, role: str, now: int, until_ms: int) -> bool:
        """Returns whether this member holds the role: it did already, or the previous holder ended or let it expire."""
        with self.group.lock:
            holder, until = self.group.roles.get(role, ("", 0))
            if holder not in ("", self.member) and holder in self.group.active and until > now:
                return False
            self.group.roles[role] = (self.member, until_ms)
            return True

    def members(self) -> list[Member]:
        """Returns all members that ever joined, by name. In memory they have no lease and no process."""
        group = self.group
        return [
            Member(
                name,
                epoch=1,
                is_serving=name in group.active,
                silent_ms=0,
                lease_ms=0,
                host="",
                pid=0,
                roles=tuple(sorted(role for role, (holder, _) in group.roles.items() if holder == name)),
            )
            for name in sorted(group.members)
        ]

    def queue(self, name: str) -> SharedQueue | None:
        """Returns a shared queue in its present state."""
        return self.group.queues.get(name)

    def find(self, selection: Selection) -> Found:
        """Returns the messages of a shared queue that a call looks for, in get order."""
        return self.group.rows.find(
            replace(selection, unit_id=self._of_group(selection.unit_id), handle=self._own + selection.handle)
        )

    def apply(self, change: c.AnyChange, handle: HandleFacts | None = None) -> None:
        """Writes one change of a shared queue; ``handle`` is the one that it opens or closes."""
        if isinstance(change, handle_changes.OpenHandle | handle_changes.CloseHandle):
            assert handle is not None
            by = 1 if isinstance(change, handle_changes.OpenHandle) else -1
            self._write(opened(self.group.queues[handle.q_name], self.member, handle, by))
        else:
            _WRITE[type(change)](self, change)

    @property
    def has_leftovers(self) -> bool:
        """Whether deferred work is to be done: rows are written at once here."""
        return False

    def remove_leftovers(self) -> None:
        """Returns at once: nothing is deferred."""

    def end_unit(self, change: c.EndUnit, q_names: Sequence[str]) -> None:
        """Commits or backs out a unit's work on these shared queues.

        This decides the outcome of the whole unit, including the member's own half.
        """
        unit, rows = change.unit, self.group.rows
        of_group = self._of_group(unit.unit_id)
        committed = change.outcome is UnitOutcome.COMMITTED
        for name in q_names:
            queue = self.group.queues[name]
            mine = list(rows.of_unit(of_group, [name]))
            put: list[int] = []
            back: list[int] = []
            for row in mine:
                settled = rows.settle(row, of_group, change.outcome)
                if settled is not None:
                    is_put = row.put_by == of_group and not row.is_held
                    (put if is_put else back).append(settled.message.priority)
            queue = at_work(
                queue,
                self.member,
                puts=-sum(row.put_by == of_group for row in mine),
                gets=-sum(row.taken_by == of_group for row in mine),
            )
            self._write(came(lies(queue, counts_of(back)), counts_of(put)))
        if committed:
            of_member = self.group.decided.setdefault(self.member, {})
            before = of_member.get(unit.client_id, [])
            self._note(of_member, unit.client_id)
            of_member[unit.client_id] = [*before[-1:], Decided(unit.client_id, unit.number, unit.unit_id)]

    # -- the changes ------------------------------------------------------------------------------------

    def _add(self, change: c.AddMessage) -> None:
        number, self.group.next_number = self.group.next_number, self.group.next_number + 1
        self.group.rows.add(replace(change, number=number, unit_id=self._of_group(change.unit_id)))
        queue = self.group.queues[change.q_name]
        counts = counts_of([change.priority])
        if change.unit_id:
            self._write(at_work(queue, self.member, puts=1))
        else:
            self._write(came(queue, counts) if change.trigger is None else lies(queue, counts))

    def _take(self, change: c.TakeMessage) -> None:
        message = change.message
        self.group.rows.take(message, self._of_group(change.unit_id))
        queue = at_work(self.group.queues[message.q_name], self.member, gets=1)
        self._write(queue if message.is_own else self._without(queue, message))
        self._unlock(message.number)

    def _carry_over(self, change: c.CarryOver) -> None:
        self.group.rows.carry_over(change.message, self._of_group(change.unit_id))

    def _remove(self, change: c.RemoveMessage) -> None:
        message = change.message
        self.group.rows.drop(self.group.rows.row(message))
        self._write(self._without(self.group.queues[message.q_name], message))
        self._unlock(message.number)

    def _without(self, queue: SharedQueue, message: StoredMessage) -> SharedQueue:
        return lies(queue, [-count for count in counts_of([message.priority])])

    def _lock(self, change: handle_changes.LockMessage) -> None:
        for number in change.numbers:
            self._note(self.group.locks, number)
            self.group.locks[number] = self._own + change.handle

    def _unlock_all(self, change: handle_changes.UnlockMessage) -> None:
        for number, handle in list(self.group.locks.items()):
            if handle == self._own + change.handle:
                self._unlock(number)
        self._write(self.group.queues[change.q_name])  # others' gets may go on

    def _unlock(self, number: int) -> None:
        if number in self.group.locks:
            self._note(self.group.locks, number)
            del self.group.locks[number]

    def _define(self, change: c.SetDefinition) -> None:
        definition = change.definition
        assert isinstance(definition, LocalQueue)
        there = self.group.queues.get(definition.name)
        self._write(SharedQueue(definition) if there is None else replace(there, definition=definition))

    def _drop(self, change: c.DropDefinition) -> None:
        assert change.object_type is ObjectType.QLOCAL
        self.group.rows.drop_all(change.name)
        self._note(self.group.queues, change.name)
        self.group.write(change.name, None)

    def _define_for_all(self, change: group_changes.SetGroupDefinition) -> None:
        self._define_copied((change.object_type, change.definition.name), change.definition)

    def _drop_for_all(self, change: group_changes.DropGroupDefinition) -> None:
        self._define_copied((change.object_type, change.name), None)

    def _define_copied(self, key: tuple[ObjectType, str], definition: AnyDefinition | None) -> None:
        self._note(self.group.definitions, key)
        self.group.version += 1
        self.group.definition_versions[key] = self.group.version
        if definition is None:
            del self.group.definitions[key]
        else:
            self.group.definitions[key] = definition

    def _fired(self, change: group_changes.NoteTriggered) -> None:
        queue = self.group.queues[change.q_name]
        fired = has_fired(queue, is_for_group=change.is_for_group, is_disarmed=change.is_disarmed)
        if fired != queue:
            self._write(fired)

    # -- helps ------------------------------------------------------------------------------------------

    def _of_group(self, unit_id: int) -> int:
        return self._own + unit_id if unit_id else 0

    def _write(self, queue: SharedQueue) -> None:
        name = queue.definition.name
        self._note(self.group.queues, name)
        self.group.write(name, queue)

    def _note(self, table: dict[Any, Any], key: object) -> None:
        """Remembers a table's value at a key for undo. The version is not undone: it costs others one more look."""
        self._notes.append((table, key, table.get(key)))


_WRITE: Mapping[type[c.AnyChange], Callable[[Membership, Any], None]] = {
    c.AddMessage: Membership._add,
    c.TakeMessage: Membership._take,
    c.CarryOver: Membership._carry_over,
    c.RemoveMessage: Membership._remove,
    c.SetAside: Membership._remove,
    handle_changes.LockMessage: Membership._lock,
    handle_changes.UnlockMessage: Membership._unlock_all,
    c.SetDefinition: Membership._define,
    c.DropDefinition: Membership._drop,
    group_changes.SetGroupDefinition: Membership._define_for_all,
    group_changes.DropGroupDefinition: Membership._drop_for_all,
    group_changes.NoteTriggered: Membership._fired,
}
