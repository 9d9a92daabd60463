"""A queue-sharing group in memory: its shared queues, and one lock for the members' turns.

It serves simulations and tests, and is the reference for the group's store on PostgreSQL, with the same methods. A
member works through :class:`Membership`: from ``begin`` to ``end`` it has a turn, and no other member has one. The
group outlives its members, as a group's database outlives their machines.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from msgspec.structs import replace

from trigmon.mq.attributes import AnyDefinition
from trigmon.mq.enums import ObjectType
from trigmon.rules.model import changes as c
from trigmon.rules.model import handle_changes
from trigmon.rules.model.group_members import Member
from trigmon.rules.model.handles import Decided, HandleFacts
from trigmon.rules.model.shared_queue import SharedQueue, counts_of, left, lies, opened
from trigmon.rules.model.shared_view import NOTHING_MOVED, Moved
from trigmon.rules.model.stored_messages import Found, Selection
from trigmon.store.memory.member_writes import WRITE_MEMBER, MemberWrites
from trigmon.store.memory.rows import Row, Rows, once_more
from trigmon.store.undo_notes import UndoNotes

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
            for name, queue in list(self.queues.items()):
                if member in queue.uses:
                    self.queues[name] = self._backed_out(name, left(queue, member), own)
                    self.count_change(name)
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

    def count_change(self, name: str) -> None:
        """Counts a change of a queue that the members must see."""
        self.version += 1
        self.versions[name] = self.version


class Membership:
    """A member's access to the group. Its numbers of handles and units of work are its own."""

    def __init__(self, group: MemoryGroup, member: str) -> None:
        self.group = group
        self.member = member
        self._own = group.members[member] * OWN_NUMBERS
        self._seen = 0
        self._is_in_turn = False
        self._notes = UndoNotes()
        self._writes = MemberWrites(group, self._notes, member, self._own)

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
        self._notes.undo()

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
        found = self.group.rows.find(
            replace(selection, unit_id=self._writes.of_group(selection.unit_id), handle=self._own + selection.handle)
        )
        return replace(found, newest=self.group.next_number - 1) if selection.summary is not None else found

    def apply(self, change: c.AnyChange, handle: HandleFacts | None = None) -> None:
        """Writes one change of a shared queue; ``handle`` is the one that it opens or closes."""
        if isinstance(change, handle_changes.OpenHandle | handle_changes.CloseHandle):
            assert handle is not None
            by = 1 if isinstance(change, handle_changes.OpenHandle) else -1
            self._writes.write(opened(self.group.queues[handle.q_name], self.member, handle, by))
        else:
            WRITE_MEMBER[type(change)](self._writes, change)

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
        self._writes.end_unit(change, q_names)
