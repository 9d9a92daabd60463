"""The store of a member of a queue-sharing group: its own store, and the group's for the shared queues.

Both are one behind the port of a store. The member's facts have a copy of every shared queue, renewed when it moves,
so rules treat all queues alike; its rows and its counters are the group's. The queue of a change decides which store
writes it.

A unit of work may have worked on both. The group's store decides it: the unit's work in the member's own store is made
durable first, without its end; then the group's store commits its half, and with that the unit is committed; then the
end is written in the member's own store. A member that was cut off between the two asks the group's store when it
starts. A message that the queue manager itself moves is in no unit of work: it is added before it is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

from trigmon.mq.attributes import AnyDefinition, LocalQueue
from trigmon.mq.enums import ObjectType, UnitOutcome
from trigmon.qmgr.member_copy import MemberCopy
from trigmon.rules.model import changes as c
from trigmon.rules.model import group_changes, handle_changes
from trigmon.rules.model.facts import Facts, Wants, WorldWants
from trigmon.rules.model.group_members import Group, Holding, Member
from trigmon.rules.model.handles import Decided, HandleFacts
from trigmon.rules.model.shared_queue import SharedQueue
from trigmon.rules.model.shared_view import NOTHING_MOVED, Moved
from trigmon.rules.model.state import Standing
from trigmon.rules.model.stored_messages import Found, Selection
from trigmon.rules.shared_triggers import is_quiet
from trigmon.store.port import FileCopy, NotEntered, Store


class SharedHalf(Protocol):
    """The port of a member to the group's store; :class:`trigmon.store.memory.group.Membership` is the reference."""

    member: str
    is_full: bool
    """Whether so many decided units are recorded that the member's own half of the turn must be durable."""

    @property
    def group_name(self) -> str:
        """The group's name."""

    def open(self) -> Sequence[Decided]:
        """Makes the member active; returns its committed units of work whose own half may not be committed yet."""

    def close(self) -> None:
        """Ends the member in order."""

    def abandon(self) -> None:
        """Ends the session at once, as when the process is killed."""

    def begin(self) -> None:
        """Begins a turn; it need not enter the group before it does something there."""

    @property
    def is_entered(self) -> bool:
        """Whether the turn has entered the group: only this member's own calls change shared objects."""

    def enter(self) -> None:
        """Enters the group until the end of the turn."""

    def mark(self) -> None:
        """Begins a call: :meth:`undo` returns to this point."""

    def undo(self) -> None:
        """Undoes the call."""

    def end(self) -> None:
        """Ends the turn; its work on shared queues is durable when this returns."""

    def changed(self) -> Moved:
        """Returns what has changed since the last call of this method, by any member."""

    def takes_role(self, role: str, now: int, until_ms: int) -> bool:
        """Returns whether this member holds the role: it did already, or the previous holder ended or let it expire."""

    def members(self) -> Sequence[Member]:
        """Returns all members that ever joined, by name."""

    def queue(self, name: str) -> SharedQueue | None:
        """Returns a shared queue in its present state; None if there is none of this name."""

    def definition(self, object_type: ObjectType, name: str) -> AnyDefinition | None:
        """Returns a definition that every member copies; None if there is none."""

    def find(self, selection: Selection) -> Found:
        """Returns the messages of a shared queue that a call looks for, in get order."""

    def apply(self, change: c.AnyChange, handle: HandleFacts | None = None) -> None:
        """Writes one change of a shared queue; ``handle`` is the one that it opens or closes."""

    def end_unit(self, change: c.EndUnit, q_names: Sequence[str]) -> None:
        """Ends the shared half of a unit of work; with that the whole of it is decided."""

    @property
    def has_leftovers(self) -> bool:
        """Whether this member has deferred work of the group to do."""

    def remove_leftovers(self) -> None:
        """Performs a slice of the deferred work; enters the group."""


class OwnHalf(Store, Protocol):
    """A member's own store: a store that also accepts what the group has decided."""

    standing: Standing
    decided: Sequence[Decided]

    def prepare(self) -> None:
        """Makes everything written so far durable; units of work in flight stay in flight."""

    def use_number(self, number: int) -> None:
        """Records that a number is in use in the group's store: no later start gives it again."""


class TwoStores:
    """The store of a queue manager in a group. See :class:`trigmon.store.port.Store` for each method."""

    is_in_group = True

    def __init__(self, own: OwnHalf, shared: SharedHalf) -> None:
        self._own = own
        self._shared = shared
        self.idle, self.local_queue = own.idle, own.local_queue
        self.copy: FileCopy | None = None if own.copy is None else MemberCopy(own.copy, self._decide)
        self._copies: dict[str, SharedQueue] = {}
        self._moved: dict[str, None] = {}
        self._copied: dict[tuple[ObjectType, str], None] = {}
        # Whether the end of a unit of work is written in both, and decided in neither. Its outcome is recorded in the
        # own store even if it did nothing else there, and must not be durable before it is decided.
        self._is_deciding = False
        self._was_deciding = False  # when the call began
        # Whether the call removed a message of the group and added one here, and whether a call of the turn did both.
        self._removes = self._adds = False
        self._moves = False

    @property
    def _standing(self) -> Standing:
        return self._own.standing

    def open(self, q_mgr_name: str, now: int) -> int:
        """Opens both. What is in the group already did not happen to this member."""
        self._own.decided = self._shared.open()
        first = self._own.open(q_mgr_name, now)
        self._standing.group = self._shared.group_name
        self._look()  # definitions are copied in the first turn
        self._standing.judged = {n: queue for n, queue in self._standing.queues.items() if queue.shared is not None}
        self._moved.clear()
        return first

    def keep_time(self, text: str, *, must: bool = False) -> bool:
        """See the port: in the member's own store."""
        return self._own.keep_time(text, must=must)

    def begin(self) -> None:
        """Begins a turn in both; enters the group if something has changed there."""
        self._own.begin()
        self._shared.begin()
        self._look()

    def enter(self) -> None:
        """Enters the group. The end of one unit of work is committed before another is prepared."""
        self._decide()
        self._shared.enter()
        self._look()

    def _decide(self) -> None:
        if self._is_deciding:
            self.end()
            self.begin()

    def changed(self) -> Moved:
        """Returns what has changed: each shared queue and definition once, in an order that no store decides."""
        self._look()
        if not self._moved and not self._copied:
            return NOTHING_MOVED
        queues, judged = self._standing.queues, self._standing.judged
        quiet = frozenset(name for name in self._moved if is_quiet(queues.get(name), judged.get(name)))
        moved = Moved(tuple(sorted(self._moved)), tuple(sorted(self._copied)), quiet)
        self._moved.clear()
        self._copied.clear()
        return moved

    def takes_role(self, role: str, now: int, until_ms: int) -> bool:
        """See the port: in the group's store, on which all members agree."""
        return self._shared.takes_role(role, now, until_ms)

    def mark(self) -> None:
        """Begins a call in both."""
        self._removes = self._adds = False
        self._was_deciding = self._is_deciding
        self._own.mark()
        self._shared.mark()

    def undo(self) -> None:
        """Undoes the call in both."""
        self._own.undo()
        self._shared.undo()

    def facts(self, wants: Wants, is_wide: bool) -> Facts:
        """Returns the member's own facts, which have copies of the shared queues.

        A name that is new to the member may be known in the group.
        """
        facts = self._own.facts(wants, is_wide)
        of_group = isinstance(wants, WorldWants) and wants.of_group
        if of_group or (wants.object_name and facts.queue is None):
            self._must_be_entered()
        return replace(facts, members=self._group()) if of_group else facts

    def find(self, selection: Selection) -> Found:
        """See the port: in the store of the queue."""
        if not self._is_shared(selection.q_name):
            return self._own.find(selection)
        self._must_be_entered()
        return self._shared.find(selection)

    def _must_be_entered(self) -> None:
        if not self._shared.is_entered:
            raise NotEntered

    def end(self) -> None:
        """Ends the turn in the group's store first: what that has committed decides.

        A message that has moved from there to the member's own store is made durable here before: rather twice than
        not at all.
        """
        if self._moves:
            self._own.prepare()
        self._is_deciding = self._moves = False
        self._shared.end()
        if self._shared.is_full:
            self._own.prepare()
        self._own.end()

    def forget_outcomes(self, before_ms: int) -> None:
        """See the port: the outcomes of the member's own clients."""
        self._own.forget_outcomes(before_ms)

    @property
    def has_leftovers(self) -> bool:
        """See the port: in its own store, and in the group's what this member has to do."""
        return self._own.has_leftovers or self._shared.has_leftovers

    def remove_leftovers(self) -> None:
        """See the port: its own store first."""
        if self._own.has_leftovers:
            self._own.remove_leftovers()
        else:
            self._shared.remove_leftovers()

    def close(self) -> None:
        """Closes both in order."""
        self._shared.close()
        self._own.close()

    def abandon(self) -> None:
        """Abandons both at once."""
        self._own.abandon()
        self._shared.abandon()

    # -- writing ----------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[c.AnyChange], can_be_undone: bool) -> None:
        """Writes each change to its store, in order. A call of a member can always be undone until its end."""
        own: list[c.AnyChange] = []
        for change in changes:
            if isinstance(change, c.EndUnit):
                self._apply_own(own)
                self._end_unit(change)
            elif self._is_of_shared(change):
                self._apply_own(own)
                self._apply_shared(change)
                self._removes = self._removes or (isinstance(change, c.RemoveMessage) and change.message.is_persistent)
            else:
                own.append(change)
                if isinstance(change, c.AddMessage) and change.is_persistent and not change.unit_id:
                    self._adds = True
        self._apply_own(own)
        if self._removes and self._adds and not self._moves:
            if self._was_deciding:
                raise NotEntered  # as for a second unit of work
            self._moves = not self._is_deciding

    def _apply_own(self, changes: list[c.AnyChange]) -> None:
        if changes:
            self._own.apply(changes, True)
            dropped = [change.name for change in changes if isinstance(change, c.DropDefinition)]
            changes.clear()
            for name in dropped:
                self._renew_copy(name)  # a shared queue of the same name is visible again

    def _apply_shared(self, change: c.AnyChange) -> None:
        """Writes a change of the group; the member's own units and handles follow, the queue is as in the group."""
        self._must_be_entered()
        handle = self._handle_of(change)
        if isinstance(change, c.AddMessage):
            self._own.use_number(change.number)
        self._shared.apply(change, handle)
        self._standing.follow(change)
        if isinstance(change, group_changes.SetGroupDefinition | group_changes.DropGroupDefinition):
            return
        self._renew_copy(change.written_to or (handle.q_name if handle is not None else ""), is_own=True)

    def _end_unit(self, change: c.EndUnit) -> None:
        touched = {q_name for q_name, _ in (*change.unit.puts, *change.unit.gets)}
        shared = sorted(filter(self._is_shared, touched))
        if shared:
            self._must_be_entered()
            is_on_both = len(touched) > len(shared)
            if is_on_both and self._is_deciding:
                raise NotEntered  # preparing this unit would make the end of the last one durable before it is decided
            if is_on_both or self._moves:
                self._own.prepare()
                self._moves = False
            self._own.use_number(change.unit.unit_id)
            self._is_deciding = True
            if not is_on_both and change.outcome is UnitOutcome.COMMITTED:
                change = replace(change, is_decided=True)
            self._shared.end_unit(change, shared)
            change = replace(change, unit=change.unit.on(touched.difference(shared)))
        self._own.apply([change], True)
        for q_name in shared:
            self._renew_copy(q_name, is_own=True)

    def _is_of_shared(self, change: c.AnyChange) -> bool:
        if isinstance(change, group_changes.SetGroupDefinition | group_changes.DropGroupDefinition):
            return True
        if isinstance(change, c.SetDefinition):
            return isinstance(change.definition, LocalQueue) and change.definition.is_shared
        if isinstance(change, c.DropDefinition) and change.object_type is not ObjectType.QLOCAL:
            return False
        handle = self._handle_of(change)
        return self._is_shared(handle.q_name if handle is not None else change.written_to)

    def _is_shared(self, q_name: str) -> bool:
        queue = self._standing.queues.get(q_name)
        return queue is not None and queue.shared is not None

    def _handle_of(self, change: c.AnyChange) -> HandleFacts | None:
        if isinstance(change, handle_changes.OpenHandle):
            return change.handle
        return self._standing.handles[change.handle] if isinstance(change, handle_changes.CloseHandle) else None

    def _group(self) -> Group:
        """Returns the members, and what each has of the shared queues."""
        shared = [(name, self._shared.queue(name)) for name in self._standing.queues if self._is_shared(name)]
        holdings = [
            Holding(name, member, use)
            for name, queue in shared
            if queue is not None
            for member, use in sorted(queue.uses.items())
        ]
        return Group(tuple(self._shared.members()), tuple(holdings))

    # -- the copies -------------------------------------------------------------------------------------

    def _look(self) -> None:
        moved = self._shared.changed()
        for name in moved.queues:
            if self._shared.queue(name) is not self._copies.get(name):
                self._renew_copy(name)
            self._moved[name] = None
        for key in moved.definitions:
            definition = self._shared.definition(*key)
            if definition is not None:
                self._standing.of_group[key] = definition
            else:
                self._standing.of_group.pop(key, None)
            self._copied[key] = None

    def _renew_copy(self, name: str, *, is_own: bool = False) -> None:
        """Renews the copy of a shared queue among the member's own; ``is_own``: by a call, which may be undone."""
        standing = self._standing
        queue, there = self._shared.queue(name), standing.queues.get(name)
        self._copies.pop(name, None)
        if queue is None:
            standing.ambiguous -= {name}
            standing.judged.pop(name, None)
            if there is not None and there.shared is not None:
                standing.serving = None
                del standing.queues[name]
            return
        others = (standing.aliases, standing.remotes, standing.models)
        if not is_own and ((there is not None and there.shared is None) or any(name in table for table in others)):
            standing.ambiguous |= {name}
            return
        standing.ambiguous -= {name}
        seen = queue.seen_by(self._shared.member, there.trigger_stamp_ms if there is not None else None)
        if there is None or there.definition.initiation_q_name != seen.definition.initiation_q_name:
            standing.serving = None
        self._copies[name] = queue
        if is_own:
            standing.write(standing.queues, name, seen)
        else:
            standing.queues[name] = seen
