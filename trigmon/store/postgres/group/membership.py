"""A member's access to its group on PostgreSQL: the shared half of its turns, each one transaction.

A turn locks the group's one row when it enters, until its end, so turns of members in the group follow one another.
The member's snapshot of the group is exact during that time, and otherwise as old as its last look. Turns without work
in the group lock nothing. Units of work are numbers in rows. A member that stops in the middle of a turn loses its
session, and the turn is rolled back.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from msgspec.structs import replace

from trigmon.mq.attributes import AnyDefinition
from trigmon.mq.enums import ObjectType, UnitOutcome
from trigmon.rules.model import changes as c
from trigmon.rules.model import handle_changes
from trigmon.rules.model.change import SYNCED
from trigmon.rules.model.group_members import Member
from trigmon.rules.model.handles import Decided, HandleFacts
from trigmon.rules.model.shared_queue import SharedQueue, opened
from trigmon.rules.model.shared_view import Moved
from trigmon.rules.model.stored_messages import Found, Selection
from trigmon.store.postgres import group_sql, lease
from trigmon.store.postgres.chunk_reader import ChunkReader
from trigmon.store.postgres.connection import Place
from trigmon.store.postgres.group.group_leftovers import GroupLeftovers
from trigmon.store.postgres.group.group_snapshot import GroupSnapshot
from trigmon.store.postgres.group.group_writes import WRITE_GROUP, GroupWrites
from trigmon.store.postgres.group.member_session import NOTHING_REACHED, Reached, Session
from trigmon.store.postgres.group.recovery import recover
from trigmon.store.postgres.group.unit_totals import NO_UNIT
from trigmon.store.postgres.pipeline import Row
from trigmon.store.postgres.turn import Turn
from trigmon.store.sql.queue_heads import QueueHeads
from trigmon.store.sql.read_ahead import Ahead
from trigmon.store.sql.select import Look

PEEK_S = 0.05
"""A member that looked so recently, without a notification since, begins a turn without looking for changes."""
MOST_KEPT = 1000
"""After so many recorded decisions on units that need not be durable, the member's own half must be made durable."""


def member_of(row: Row) -> Member:
    """Returns a member, by its row of MEMBERS."""
    values = (*row[:7], tuple(row[7].split()), *row[8:])
    return Member(*values)


class PostgresMembership:
    """See :class:`trigmon.qmgr.two_stores.SharedHalf`; also heartbeats and recovery, which a daemon does between turns.

    ``session``: the member's, used by one thread at a time. ``reached``: the state known to be durable, in this process
    or a previous one; a server with less is refused. Every method may raise StoreBroken, and Fenced if another process
    took this member's name or another member recovered it: then this process must end and start again.
    """

    def __init__(
        self, place: Place, group_name: str, name: str, peek_s: float = PEEK_S, reached: Reached = NOTHING_REACHED
    ) -> None:
        self.member = name
        self.reached = reached
        self._peek_s = peek_s
        self._looked_s = 0.0
        self._is_notified = False
        self._was_busy = False  # the last turn worked in the group: this one probably will
        self._group_name = group_name
        self.session = Session(place, group_name, name, reached)
        self._place = place
        self._snapshot = GroupSnapshot()
        self._ahead = Ahead()
        self._must_last = False
        # Committed units stay recorded in the group until the member's own half of them is durable, since its next
        # start commits that half by the record. The number of these records; whether those of the turn become durable
        # with the turn's own half; whether all of them are.
        self._kept = 0
        self._ends_last = False
        self._is_settled = False
        self.is_full = False
        self._leftovers: GroupLeftovers
        self._writes: GroupWrites
        self._heads: QueueHeads
        self._turn: Turn

    @property
    def group_name(self) -> str:
        """The group's name."""
        return self._group_name

    @property
    def version(self) -> int:
        """The group's version, as this member last saw it: one more with every turn that changes something shared."""
        return self._snapshot.version

    # -- beside the turns -------------------------------------------------------------------------------

    def take(self) -> bool:
        """Makes this process serve this member, with a new epoch; returns False while another process does.

        :meth:`open` calls it and waits for a lease to expire; it raises DirectoryInUse.
        """
        if not self.session.take():
            return False
        self._turn = self.session.turn
        number = self.session.number
        self._leftovers = GroupLeftovers(self._turn.execute, self._turn.ask, self._snapshot, number)
        self._writes = GroupWrites(self._turn, self._snapshot, self._ahead, self._leftovers, self.member, number)
        self._heads = QueueHeads(self._ahead, ChunkReader(self._turn).read)
        return True

    @property
    def waits_for(self) -> str:
        """What its session waits for in the database, as text; empty if it does not wait. Thread-safe."""
        awaited = self._turn.link.awaited
        if not awaited:
            return ""
        is_commit = "COMMIT" in awaited and group_sql.LOCK not in awaited
        return "the commit is not confirmed" if is_commit else "the turn does not come"

    def beat(self) -> None:
        """Sends a heartbeat, by the database's clock. Does nothing within a turn. Raises Fenced."""
        if not self._turn.is_open:
            self.session.beat()

    def dead(self) -> list[str]:
        """Returns members that need recovery: their lease has expired, or their session is gone."""
        return [name for (name,) in self._turn.ask(lease.DEAD, (self.member,))]

    def recover(self, name: str) -> bool:
        """Recovers a member that is dead by the database's clock; returns False if it lives or was recovered before.

        Removes its uncommitted puts, returns its uncommitted gets with their backout counts raised, closes its handles,
        and frees its roles and locks. Not within a turn.
        """
        self.enter()
        was_dead = bool(self._turn.ask(lease.DISMISS, (name,)))
        if was_dead:
            ((number,),) = self._turn.ask(group_sql.NUMBER, (name,))
            left = recover(self._turn, self._snapshot, self._writes, name, number)
            for q_name in left.q_names:
                self._ahead.forget(q_name)
            self._turn.execute(group_sql.NOTE_RECOVERY, (self.member, *left.counts, name))
            self._must_last = True
        self.end()
        return was_dead

    def fileno(self) -> int:
        """Returns the session's socket, readable when a notification may have come; for an event loop between turns."""
        return self._turn.link.fileno()

    def was_notified(self) -> bool:
        """Returns whether another member has changed something shared since the last turn. Makes no round trip."""
        self._is_notified = self._is_notified or self._turn.link.was_notified()
        return self._is_notified

    # -- life -------------------------------------------------------------------------------------------

    def open(self) -> Sequence[Decided]:
        """Makes the member active; returns its committed units of work whose own half may not be committed yet."""
        lease.wait_to_take(self.take, self._place, self.session.holder)
        try:
            self.enter()
            recover(self._turn, self._snapshot, self._writes, self.member, self.session.number)
            decided = [Decided(*row) for row in self._turn.ask(group_sql.DECIDED, (self.member,))]
            self._must_last = True
            self.end()
            self._is_settled = bool(decided)  # before its first turn the member has committed its half
            self.session.listen()
        except BaseException:
            self.abandon()
            raise
        return decided

    def close(self) -> None:
        """Recovers the member's work and ends its lease, so that nothing is left for others to recover."""
        self.enter()
        recover(self._turn, self._snapshot, self._writes, self.member, self.session.number)
        self._turn.execute(lease.LEAVE, self.session.who)
        self._must_last = True
        self.end()
        self.abandon()

    def abandon(self) -> None:
        """Ends the session at once; other members detect that and recover this one."""
        self.session.close()

    # -- a turn -----------------------------------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """Whether the next turn enters the group at its begin, as far as is known without a look at the socket."""
        return self._is_notified or self._was_busy

    def begin(self) -> None:
        """Begins a turn. Looks for others' changes after a notification, and at least every ``peek_s`` seconds."""
        if self._turn.is_open:
            return
        if self.was_notified() or self._was_busy:
            self._is_notified = False
            self.enter()
        elif time.monotonic() - self._looked_s >= self._peek_s:
            self._looked_s = time.monotonic()
            ((version,),) = self._turn.ask(group_sql.PEEK, ())
            if version != self._snapshot.version:
                self.enter()

    @property
    def is_entered(self) -> bool:
        """Whether the turn has entered the group: only this member's own calls change shared objects."""
        return self._turn.is_open

    def enter(self) -> None:
        """Enters the group until the end of the turn; other members' turns wait. Raises Fenced."""
        if self._turn.is_open:
            return
        self.session.beat_if_due()
        version = self._snapshot.version
        self._turn.begin()
        if self._is_settled:  # earlier turns have ended in both stores
            self._turn.execute(group_sql.FORGET_DECIDED, (self.member,))
            self._kept, self._is_settled = 0, False
        rows: list[Row] = self._turn.link.ask(group_sql.LOOK, (version, version, version, version))
        self._looked_s = time.monotonic()
        for q_name in (*self._snapshot.take(rows), *self._leftovers.look()):
            self._ahead.forget(q_name)

    def mark(self) -> None:
        """Begins a call: :meth:`undo` returns to this point."""
        self._turn.release()
        self._snapshot.mark()
        self._ahead.mark()

    def undo(self) -> None:
        """Undoes the call."""
        self._turn.undo()
        self._snapshot.undo()
        self._leftovers.look()
        self._ahead.undo(self._writes.units)
        self._ends_last = False

    def end(self) -> None:
        """Commits the turn and notifies the other members."""
        self.is_full = self._was_busy = False
        if not self._turn.is_open:
            return
        self.mark()
        writes = self._snapshot.writes()
        self._was_busy = bool(writes)
        for statement, values in writes:
            self._turn.execute(statement, values)
        self._turn.commit(lasts=self._must_last, then=self.session.notify if writes else "")
        if self._must_last:
            self.reached = Reached(self.session.timeline, self._snapshot.version)
        self._must_last = False
        self.is_full = self._kept >= MOST_KEPT and not self._ends_last
        self._is_settled = self._is_settled or self._ends_last or self.is_full
        self._ends_last = False

    def changed(self) -> Moved:
        """Returns what changed since the last call of this method, by any member."""
        return self._snapshot.changed()

    def definition(self, object_type: ObjectType, name: str) -> AnyDefinition | None:
        """Returns a definition that every member copies, in its present state."""
        return self._snapshot.definitions.get((object_type, name))

    def takes_role(self, role: str, now: int, until_ms: int) -> bool:
        """Returns whether this member holds the role: it did already, or the previous holder ended or let it expire."""
        self._turn.link.send(lease.FENCE, self.session.who)
        return bool(self._turn.link.ask(group_sql.TAKE_ROLE, (role, self.member, until_ms, now)))

    def members(self) -> list[Member]:
        """Returns all members that ever joined, by name."""
        return [member_of(row) for row in self._turn.link.ask(group_sql.MEMBERS)]

    def queue(self, name: str) -> SharedQueue | None:
        """Returns a shared queue in its present state."""
        return self._snapshot.queues.get(name)

    # -- looking ----------------------------------------------------------------------------------------

    def find(self, selection: Selection) -> Found:
        """Returns the messages of a shared queue that a call looks for, in get order."""
        number = self._snapshot.numbers.get(selection.q_name)
        if number is None:
            return Found()
        has_own = selection.q_name in self._writes.units.get(selection.unit_id, NO_UNIT).put_to
        unit_id = self._writes.of_group(selection.unit_id)
        selection = replace(selection, unit_id=unit_id, handle=self._writes.own + selection.handle)
        locks, has_groups = self._snapshot.locks, self._writes.groups.has_groups(number)
        available = self._leftovers.available.get(number, ())
        if not has_own and not has_groups and not available:
            found = self._heads.found(selection, number, locks)
            if found is not None:
                return found
        look = Look(
            self._turn.open_rows,
            selection,
            number,
            locks,
            has_groups=has_groups,
            has_own=has_own,
            available=available,
        )
        found = look.found()
        return replace(found, newest=self._snapshot.next_number - 1) if selection.summary is not None else found

    # -- writing ----------------------------------------------------------------------------------------

    def apply(self, change: c.AnyChange, handle: HandleFacts | None = None) -> None:
        """Writes one change of a shared queue; ``handle`` is the one that it opens or closes."""
        self._turn.save()
        self._must_last = self._must_last or change.durability is SYNCED
        if isinstance(change, handle_changes.OpenHandle | handle_changes.CloseHandle):
            assert handle is not None
            by = 1 if isinstance(change, handle_changes.OpenHandle) else -1
            queue = self._snapshot.queues[handle.q_name]
            self._snapshot.write(handle.q_name, opened(queue, self.member, handle, by))
        else:
            WRITE_GROUP[type(change)](self._writes, change)

    def end_unit(self, change: c.EndUnit, q_names: Sequence[str]) -> None:
        """Commits or backs out a unit's work on these shared queues; durable at the turn's end.

        This decides the outcome of the whole unit, including the member's own half.
        """
        self._turn.save()
        self._must_last = self._must_last or change.unit.is_durable
        self._writes.end_unit(change, q_names)
        if change.outcome is UnitOutcome.COMMITTED:
            unit = change.unit
            epoch = self.session.who[1]
            self._turn.execute(group_sql.DECIDE, (self.member, unit.client_id, unit.number, unit.unit_id, epoch))
            self._kept += 1
            self._ends_last = self._ends_last or change.durability is SYNCED

    @property
    def has_leftovers(self) -> bool:
        """Whether this member has deferred work to do."""
        return bool(self._leftovers)

    def remove_leftovers(self) -> None:
        """Performs a slice of the deferred work, in the turn."""
        self.enter()
        if self._leftovers:
            self._leftovers.remove()
