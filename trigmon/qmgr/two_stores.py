"""A member of a queue-sharing group: its own store for what is its own, the group's for the shared queues.

Behind the one port of a store both are one. The member's standing facts hold a picture of every shared queue, taken
anew when it moves, so rules ask no different questions for it; its rows, and what counts in the group, are the
group's. Whose a change is follows from the queue it is about.

A unit of work may have done something on both. The group's store decides it: what the unit did here is made durable
first, without its end; then the group's store commits its half, and with that the unit is committed, whatever happens
next; then the end is written here. A member that was cut off between the two asks the group's store when it starts.
What a queue manager moves by itself is in no unit of work: it is added where it goes before it is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

from trigmon.mq.attributes import AnyDefinition, LocalQueue
from trigmon.mq.enums import ObjectType, UnitOutcome
from trigmon.rules.model import changes as c
from trigmon.rules.model import group_changes, handle_changes
from trigmon.rules.model.facts import Facts, Wants
from trigmon.rules.model.group_members import Group, Holding, Member
from trigmon.rules.model.handles import Decided, HandleFacts
from trigmon.rules.model.shared_queue import SharedQueue
from trigmon.rules.model.shared_view import NOTHING_MOVED, Moved
from trigmon.rules.model.state import Standing
from trigmon.rules.model.stored_messages import Found, Selection
from trigmon.rules.shared_triggers import is_quiet
from trigmon.store.port import NotEntered, Store


class SharedHalf(Protocol):
    """One member's way into the group's store; :class:`trigmon.store.memory.group.Membership` is the reference."""

    member: str
    is_full: bool
    """Whether so much is kept for the member's next life that its own end of the turn must last, whatever it did."""

    @property
    def group_name(self) -> str:
        """The group's name."""

    def open(self) -> Sequence[Decided]:
        """The member is active; returns units of work that its last life may not know to be committed."""

    def close(self) -> None:
        """The orderly end of the member."""

    def abandon(self) -> None:
        """The member is gone, as a killed process is."""

    def begin(self) -> None:
        """A turn begins; it need not enter the group before it does something there."""

    @property
    def is_entered(self) -> bool:
        """Whether the turn is in the group: nothing moves but by this member's own calls."""

    def enter(self) -> None:
        """The turn is in the group, until its end."""

    def mark(self) -> None:
        """A call begins."""

    def undo(self) -> None:
        """The call is taken back."""

    def end(self) -> None:
        """What the turn did on shared queues is durable when this returns."""

    def changed(self) -> Moved:
        """What moved since this was last asked, whoever moved it."""

    def takes_role(self, role: str, now: int, until_ms: int) -> bool:
        """Whether the role is this member's until then: it was already, or the one who had it ended or let it lapse."""

    def members(self) -> Sequence[Member]:
        """All members that ever were, by name."""

    def queue(self, name: str) -> SharedQueue | None:
        """A shared queue as it stands, None where there is none of this name."""

    def definition(self, object_type: ObjectType, name: str) -> AnyDefinition | None:
        """A definition that each member has a copy of, None where there is none."""

    def find(self, selection: Selection) -> Found:
        """The messages of a shared queue that a call looks for, in get order."""

    def apply(self, change: c.AnyChange, handle: HandleFacts | None = None) -> None:
        """Writes one change of a shared queue; ``handle`` is the one that it opens or closes."""

    def end_unit(self, change: c.EndUnit, q_names: Sequence[str]) -> None:
        """Ends the shared half of a unit of work; with that the whole of it is decided."""

    @property
    def has_leftovers(self) -> bool:
        """Whether this member has deferred work of the group to do."""

    def remove_leftovers(self) -> None:
        """Does a slice of it; enters the group."""


class OwnHalf(Store, Protocol):
    """A member's own store: any that can also be told what the group's has decided."""

    standing: Standing
    decided: Sequence[Decided]

    def prepare(self) -> None:
        """Everything written so far is durable when this returns, units of work in flight as such."""

    def use_number(self, number: int) -> None:
        """A number of this life's is in use in the group's store: no later life gives it again."""


class TwoStores:
    """The store of a queue manager in a group. See :class:`trigmon.store.port.Store` for each method."""

    is_in_group = True

    def __init__(self, own: OwnHalf, shared: SharedHalf) -> None:
        self._own = own
        self._shared = shared
        self._pictured: dict[str, SharedQueue] = {}
        self._moved: dict[str, None] = {}
        self._copied: dict[tuple[ObjectType, str], None] = {}
        # Whether the end of a unit of work is written in both, and decided in neither. Its outcome stands here as well
        # where it did nothing else here, and must not last before it is decided.
        self._is_deciding = False
        self._was_deciding = False  # when the call began
        # Whether a call has removed a message there and added one here, and whether one of the turn's has done both.
        self._removes = self._adds = False
        self._moves = False

    @property
    def _standing(self) -> Standing:
        return self._own.standing

    def open(self, q_mgr_name: str, now: int) -> int:
        """Takes both up. What stands in the group already is nothing that happened to this member."""
        self._own.decided = self._shared.open()
        first = self._own.open(q_mgr_name, now)
        self._standing.group = self._shared.group_name
        self._look()  # what is to be copied is so in the first turn
        self._standing.judged = {n: queue for n, queue in self._standing.queues.items() if queue.shared is not None}
        self._moved.clear()
        return first

    def keep_time(self, said: str, *, must: bool = False) -> bool:
        """The member's own time."""
        return self._own.keep_time(said, must=must)

    def begin(self) -> None:
        """A turn in both, in the group where something moved there; otherwise the first call that needs it enters."""
        self._own.begin()
        self._shared.begin()
        self._look()

    def enter(self) -> None:
        """The group, as it is now. What has ended one unit of work ends before another is prepared."""
        if self._is_deciding:
            self.end()
            self.begin()
        self._shared.enter()
        self._look()

    def changed(self) -> Moved:
        """Each shared queue and each definition that moved is named once, in an order that no store decides."""
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
        """Of the group's store, by which members agree."""
        return self._shared.takes_role(role, now, until_ms)

    def mark(self) -> None:
        """A call in both."""
        self._removes = self._adds = False
        self._was_deciding = self._is_deciding
        self._own.mark()
        self._shared.mark()

    def undo(self) -> None:
        """The call is taken back in both."""
        self._own.undo()
        self._shared.undo()

    def facts(self, wants: Wants, is_wide: bool) -> Facts:
        """The member's own facts hold the picture of the shared queues. A name that is new here may be known there."""
        facts = self._own.facts(wants, is_wide)
        if wants.of_group or (wants.object_name and facts.queue is None):
            self._must_be_entered()
        return replace(facts, members=self._group()) if wants.of_group else facts

    def find(self, selection: Selection) -> Found:
        """Of the queue's own store."""
        if not self._is_shared(selection.q_name):
            return self._own.find(selection)
        self._must_be_entered()
        return self._shared.find(selection)

    def _must_be_entered(self) -> None:
        if not self._shared.is_entered:
            raise NotEntered

    def end(self) -> None:
        """The group's store first: what it has committed decides.

        But where a message has moved from there to here it is made durable here before: rather twice than not at all.
        """
        if self._moves:
            self._own.prepare()
        self._is_deciding = self._moves = False
        self._shared.end()
        if self._shared.is_full:
            self._own.prepare()
        self._own.end()

    def forget_outcomes(self, before_ms: int) -> None:
        """Of the member's own clients."""
        self._own.forget_outcomes(before_ms)

    @property
    def has_leftovers(self) -> bool:
        """Of the member's own, and of the group's what this member has to do."""
        return self._own.has_leftovers or self._shared.has_leftovers

    def remove_leftovers(self) -> None:
        """Of the member's own first."""
        if self._own.has_leftovers:
            self._own.remove_leftovers()
        else:
            self._shared.remove_leftovers()

    def idle(self) -> None:
        """The member's own upkeep."""
        self._own.idle()

    def close(self) -> None:
        """The orderly end of both."""
        self._shared.close()
        self._own.close()

    def abandon(self) -> None:
        """Both are let go at once."""
        self._own.abandon()
        self._shared.abandon()

    # -- writing ----------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[c.AnyChange], can_be_undone: bool) -> None:
        """Each change where it belongs, in their order. A call of a member can always be taken back until its end."""
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
                self._picture(name)  # a shared queue of the same name comes to light

    def _apply_shared(self, change: c.AnyChange) -> None:
        """What stands of the member's own follows (units, handles); the queue itself is as the group says."""
        self._must_be_entered()
        handle = self._handle_of(change)
        if isinstance(change, c.AddMessage):
            self._own.use_number(change.number)
        self._shared.apply(change, handle)
        self._standing.follow(change)
        if isinstance(change, group_changes.SetGroupDefinition | group_changes.DropGroupDefinition):
            return
        self._picture(change.written_to or (handle.q_name if handle is not None else ""), is_own=True)

    def _end_unit(self, change: c.EndUnit) -> None:
        touched = {q_name for q_name, _ in (*change.unit.puts, *change.unit.gets)}
        shared = sorted(filter(self._is_shared, touched))
        if shared:
            self._must_be_entered()
            is_on_both = len(touched) > len(shared)
            if is_on_both and self._is_deciding:
                raise NotEntered  # what is prepared now would make the last one's end here last first
            if is_on_both or self._moves:
                self._own.prepare()
                self._moves = False
            self._own.use_number(change.unit.unit_id)
            self._is_deciding = True
            if not is_on_both and change.outcome is UnitOutcome.COMMITTED:
                change = replace(change, is_decided=True)
            self._shared.end_unit(change, shared)
        self._own.apply([change], True)
        for q_name in shared:
            self._picture(q_name, is_own=True)

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
        """The members, and what each has of the shared queues."""
        shared = [(name, self._shared.queue(name)) for name in self._standing.queues if self._is_shared(name)]
        holdings = [
            Holding(name, member, use)
            for name, queue in shared
            if queue is not None
            for member, use in sorted(queue.uses.items())
        ]
        return Group(tuple(self._shared.members()), tuple(holdings))

    # -- the picture ------------------------------------------------------------------------------------

    def _look(self) -> None:
        moved = self._shared.changed()
        for name in moved.queues:
            if self._shared.queue(name) is not self._pictured.get(name):
                self._picture(name)
            self._moved[name] = None
        for key in moved.definitions:
            definition = self._shared.definition(*key)
            if definition is not None:
                self._standing.of_group[key] = definition
            else:
                self._standing.of_group.pop(key, None)
            self._copied[key] = None

    def _picture(self, name: str, *, is_own: bool = False) -> None:
        """A shared queue as this member sees it now, among its own; ``is_own``: by a call, which may be taken back."""
        standing = self._standing
        queue, there = self._shared.queue(name), standing.queues.get(name)
        self._pictured.pop(name, None)
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
        self._pictured[name] = queue
        if is_own:
            standing.write(standing.queues, name, seen)
        else:
            standing.queues[name] = seen
