"""One member's way into its group on PostgreSQL: the shared half of its turns, each one transaction.

A turn holds the group's one row from when it enters to its end, so members in the group follow one another; what a
member knows of the group is exact meanwhile, and otherwise as old as its last look. Turns that do nothing there hold
nothing. Units of work are numbers in rows, and a member that stops in the middle of a turn loses its session with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from msgspec.structs import replace

from trigmon.mq.attributes import AnyDefinition, LocalQueue
from trigmon.mq.enums import ObjectType, UnitOutcome
from trigmon.rules.model import changes as c
from trigmon.rules.model import group_changes, handle_changes
from trigmon.rules.model.change import SYNCED
from trigmon.rules.model.group_members import Member
from trigmon.rules.model.handles import Decided, HandleFacts
from trigmon.rules.model.shared_queue import SharedQueue, at_work, came, counts_of, has_fired, lies, opened
from trigmon.rules.model.shared_view import Moved
from trigmon.rules.model.stored_messages import Found, Selection, StoredMessage
from trigmon.store.memory.group import OWN_NUMBERS
from trigmon.store.postgres import group_sql, lease
from trigmon.store.postgres.connection import Place
from trigmon.store.postgres.group.group_snapshot import Picture
from trigmon.store.postgres.group.member_session import BEATS, NOTHING_REACHED, Reached, Session
from trigmon.store.postgres.group.recovery import recover
from trigmon.store.postgres.group.unit_totals import NO_UNIT, Unit, available, expected, only
from trigmon.store.postgres.pipeline import Row
from trigmon.store.postgres.queue_heads import Known
from trigmon.store.postgres.read_ahead import Ahead
from trigmon.store.postgres.turn import Turn
from trigmon.store.sql import statements as sql
from trigmon.store.sql.message_rows import Messages
from trigmon.store.sql.select import Look

PEEK_S = 0.05
"""A member that has looked so lately, and heard no bell since, begins a turn without asking what moved."""
MOST_KEPT = 1000
"""So many units of work that need not last are kept for a next life; then the member's own ends of them must last."""
_ONE_ROW = frozenset({sql.TAKE_MESSAGE, sql.REMOVE_MESSAGE, sql.SET_ASIDE})


def member_of(row: Row) -> Member:
    """A member, by its row of MEMBERS."""
    values = (*row[:7], tuple(row[7].split()), *row[8:])
    return Member(*values)


class PostgresMembership:
    """See :class:`trigmon.qmgr.two_stores.SharedHalf`; and what a daemon does beside its turns.

    ``reached`` is what it was told to last, in this life or before: a server that has less is no group to go on with.
    One session, used by one thread at a time. Every method may raise StoreBroken, and Fenced where another process
    took this member's name, or another member recovered it: then it must end, and start again.
    """

    def __init__(
        self, place: Place, group_name: str, name: str, peek_s: float = PEEK_S, reached: Reached = NOTHING_REACHED
    ) -> None:
        self.member = name
        self.reached = reached
        self._peek_s = peek_s
        self._looked_s = 0.0
        self._has_rung = False
        self._was_busy = False  # the last turn did something here: so will this one
        self._group_name = group_name
        self._session = Session(place, group_name, name, reached)
        self._own = self._session.number * OWN_NUMBERS
        self._place = place
        self._picture = Picture()
        self._ahead = Ahead()
        self._messages = Messages(self._execute)
        self._picture.with_groups = self._messages.groups.queues
        self._units: dict[int, Unit] = {}
        self._settles: dict[str, int] = {}
        self._must_last = False
        # Of what was decided here the member's own half is told at its next life, until its end lasts there: how many
        # are kept for that, whether those of the turn are sure to last with its own end, and whether all of them do.
        self._kept = 0
        self._ends_last = False
        self._is_settled = False
        self.is_full = False
        self._known: Known
        self._turn: Turn

    @property
    def group_name(self) -> str:
        """The group's name."""
        return self._group_name

    @property
    def version(self) -> int:
        """The group's, as this member last saw it: one more with every turn that members must look at."""
        return self._picture.version

    # -- beside the turns -------------------------------------------------------------------------------

    def take(self) -> bool:
        """Makes this process the one that is this member, with a new epoch; False while another process is.

        :meth:`open` takes by itself, and waits for a lease to be over; raises DirectoryInUse.
        """
        if not self._session.take():
            return False
        self._turn = self._session.turn
        self._known = Known(self._ahead, self._turn)
        return True

    @property
    def waits_for(self) -> str:
        """What its session waits for in the database, for a person; empty where it does not. For any thread."""
        awaited = self._turn.link.awaited
        if not awaited:
            return ""
        is_commit = "COMMIT" in awaited and group_sql.LOCK not in awaited
        return "the commit is not confirmed" if is_commit else "the turn does not come"

    def holder(self) -> str:
        """The process that is this member now, for a person."""
        return self._session.holder()

    @property
    def beat_s(self) -> float:
        """How often :meth:`beat` is to be called."""
        return self.lease_s / BEATS

    def beat(self) -> None:
        """Says that this member lives, by the database's clock. Not within a turn. Raises Fenced."""
        if not self._turn.is_open:
            self._session.beat()

    def kept_alive(self) -> AbstractContextManager[None]:
        """Within the block it is said that this member lives, whatever it does: its own store may open slowly."""
        return self._session.kept_alive()

    def dead(self) -> list[str]:
        """Members that serve no more and were not recovered: their lease is over, or their session is gone."""
        return [name for (name,) in self._turn.ask(lease.DEAD, (self.member,))]

    def recover(self, name: str) -> bool:
        """Recovers a member that is dead by the database's clock; False where it lives, or nothing was left of it.

        Uncommitted puts are gone, uncommitted gets are back with their backout counts raised, what it had open is
        closed, its roles and locks are free. Not within a turn.
        """
        self.enter()
        was_dead = bool(self._turn.ask(lease.DISMISS, (name,)))
        if was_dead:
            ((number,),) = self._turn.ask(group_sql.NUMBER, (name,))
            left = recover(self._turn, self._picture, self._messages.groups, name, number)
            for q_name in left.q_names:
                self._ahead.forget(q_name)
            self._turn.execute(group_sql.NOTE_RECOVERY, (self.member, *left.counts, name))
            self._must_last = True
        self.end()
        return was_dead

    @property
    def lease_s(self) -> float:
        """How long a member is believed to live that says nothing."""
        return self._place.lease_ms / 1000

    def end_stuck(self) -> None:
        """Ends what keeps the turn from all others: a dead member that takes nothing of an answer. For any thread."""
        self._session.end_stuck()

    def fileno(self) -> int:
        """The session's socket: readable when a bell may have come, for an event loop that is not in a turn."""
        return self._turn.link.fileno()

    def rang(self) -> bool:
        """Whether another member has changed something shared since the last turn; then one is due. No trip."""
        self._has_rung = self._has_rung or self._turn.link.was_notified()
        return self._has_rung

    # -- life -------------------------------------------------------------------------------------------

    def open(self) -> Sequence[Decided]:
        """The member is active. Returns its units of work that its own half may not know to be committed."""
        lease.wait_to_take(self.take, self._place, self.holder)
        try:
            self.enter()
            recover(self._turn, self._picture, self._messages.groups, self.member, self._session.number)
            decided = [Decided(*row) for row in self._turn.ask(group_sql.DECIDED, (self.member,))]
            self._must_last = True
            self.end()
            self._is_settled = bool(decided)  # who has a turn has taken in what its last lives had decided
            self._session.listen()
        except BaseException:
            self.abandon()
            raise
        return decided

    def close(self) -> None:
        """The orderly end: nothing of it is left for others to recover."""
        self.enter()
        recover(self._turn, self._picture, self._messages.groups, self.member, self._session.number)
        self._turn.execute(lease.LEAVE, self._session.who)
        self._must_last = True
        self.end()
        self.abandon()

    def abandon(self) -> None:
        """The member is gone, and others find that out."""
        self._session.close()

    # -- a turn -----------------------------------------------------------------------------------------

    def begin(self) -> None:
        """A turn begins. What others did may be looked at later, but it is asked for at least so often."""
        if self._turn.is_open:
            return
        if self.rang() or self._was_busy:
            self._has_rung = False
            self.enter()
        elif time.monotonic() - self._looked_s >= self._peek_s:
            self._looked_s = time.monotonic()
            ((version,),) = self._turn.ask(group_sql.PEEK, ())
            if version != self._picture.version:
                self.enter()

    @property
    def is_entered(self) -> bool:
        """Whether the turn is in the group: nothing moves but by this member's own calls."""
        return self._turn.is_open

    def enter(self) -> None:
        """The turn is in the group, until its end: nobody else's is. Raises Fenced."""
        if self._turn.is_open:
            return
        self._session.beat_if_due()
        version = self._picture.version
        self._turn.begin()
        if self._is_settled:  # the turns before this one have ended here and there
            self._turn.execute(group_sql.FORGET_DECIDED, (self.member,))
            self._kept, self._is_settled = 0, False
        rows: list[Row] = self._turn.link.ask(group_sql.LOOK, (version, version, version))
        self._looked_s = time.monotonic()
        for q_name in self._picture.take(rows):
            self._ahead.forget(q_name)

    def mark(self) -> None:
        """A call begins: :meth:`undo` goes back to here."""
        self._turn.release()
        self._picture.mark()
        self._ahead.mark()

    def undo(self) -> None:
        """The call is taken back."""
        self._turn.undo()
        self._picture.undo()
        self._ahead.undo(self._units)
        self._ends_last = False

    def end(self) -> None:
        """What was done in the turn is durable when this returns, and the others are told of it."""
        self.is_full = self._was_busy = False
        if not self._turn.is_open:
            return
        self.mark()
        writes = self._picture.writes()
        self._was_busy = bool(writes)
        for statement, values in writes:
            self._turn.execute(statement, values)
        self._turn.commit(lasts=self._must_last, then=self._session.bell if writes else "")
        if self._must_last:
            self.reached = Reached(self._session.timeline, self._picture.version)
        self._must_last = False
        self.is_full = self._kept >= MOST_KEPT and not self._ends_last
        self._is_settled = self._is_settled or self._ends_last or self.is_full
        self._ends_last = False

    def changed(self) -> Moved:
        """What moved since this was last asked, whoever moved it."""
        return self._picture.changed()

    def definition(self, object_type: ObjectType, name: str) -> AnyDefinition | None:
        """A definition that each member has a copy of, as it stands."""
        return self._picture.definitions.get((object_type, name))

    def takes_role(self, role: str, now: int, until_ms: int) -> bool:
        """Whether the role is this member's: it was already, or the one who had it ended or let it lapse."""
        self._turn.link.send(lease.FENCE, self._session.who)
        return bool(self._turn.link.ask(group_sql.TAKE_ROLE, (role, self.member, until_ms, now)))

    def members(self) -> list[Member]:
        """All members that ever were, by name."""
        return [member_of(row) for row in self._turn.link.ask(group_sql.MEMBERS)]

    def queue(self, name: str) -> SharedQueue | None:
        """A shared queue as it stands."""
        return self._picture.queues.get(name)

    # -- looking ----------------------------------------------------------------------------------------

    def find(self, selection: Selection) -> Found:
        """The messages of a shared queue that a call looks for, in get order."""
        number = self._picture.numbers.get(selection.q_name)
        if number is None:
            return Found()
        has_own = selection.q_name in self._units.get(selection.unit_id, NO_UNIT).put_to
        unit_id = self._of_group(selection.unit_id)
        selection = replace(selection, unit_id=unit_id, handle=self._own + selection.handle)
        look = partial(self._look, selection, number, has_own)
        found = None
        if not self._messages.groups.has_groups(number):
            found = self._known.found(selection, number, look)
        return look(None).found() if found is None else found

    def _look(
        self, selection: Selection, number: int, has_own: bool, ahead: Generator[StoredMessage, None, None] | None
    ) -> Look:
        has_groups = self._messages.groups.has_groups(number)
        return Look(
            self._turn.open_rows,
            selection,
            number,
            self._picture.locks,
            has_groups=has_groups,
            has_own=has_own,
            ahead=ahead,
        )

    # -- writing ----------------------------------------------------------------------------------------

    def apply(self, change: c.AnyChange, handle: HandleFacts | None = None) -> None:
        """Writes one change of a shared queue; ``handle`` is the one that it opens or closes."""
        self._turn.save()
        self._must_last = self._must_last or change.durability is SYNCED
        if isinstance(change, handle_changes.OpenHandle | handle_changes.CloseHandle):
            assert handle is not None
            by = 1 if isinstance(change, handle_changes.OpenHandle) else -1
            self._write(opened(self._queue(handle.q_name), self.member, handle, by))
        else:
            _WRITE[type(change)](self, change)

    def end_unit(self, change: c.EndUnit, q_names: Sequence[str]) -> None:
        """Settles what a unit of work did on these shared queues, all at once, when the turn ends.

        That this is done decides for the whole unit, the member's own half as well.
        """
        self._turn.save()
        self._must_last = self._must_last or change.unit.is_durable
        unit, is_commit = only(change.unit, q_names), change.outcome is UnitOutcome.COMMITTED
        known = self._units.get(unit.unit_id, NO_UNIT)
        self._settles = expected(unit, known, is_commit=is_commit)
        self._messages.end_unit(unit, self._of_group(unit.unit_id), is_commit=is_commit)
        self._settles = {}
        self._ahead.follow(replace(change, unit=unit))
        for name in q_names:
            put, back = available(unit, known, name, is_commit=is_commit)
            uncommitted = [sum(n for (q_name, _), n in of.items() if q_name == name) for of in (unit.puts, unit.gets)]
            queue = at_work(self._queue(name), self.member, puts=-uncommitted[0], gets=-uncommitted[1])
            self._write(came(lies(queue, back), put))
        self._picture.set(self._units, unit.unit_id, None)
        if is_commit:
            epoch = self._session.who[1]
            self._turn.execute(group_sql.DECIDE, (self.member, unit.client_id, unit.number, unit.unit_id, epoch))
            self._kept += 1
            self._ends_last = self._ends_last or change.durability is SYNCED

    def _execute(self, statement: str, values: tuple[object, ...] = ()) -> Any:
        """Runs a statement; of what it must change as many rows as are believed to be there is made sure."""
        rows = 1 if statement in _ONE_ROW else self._settles.get(statement)
        return self._turn.execute(statement, values, rows)

    # -- the changes ------------------------------------------------------------------------------------

    def _add(self, change: c.AddMessage) -> None:
        picture = self._picture
        number, picture.next_number = picture.next_number, picture.next_number + 1
        change = replace(change, number=number)
        unit_id, name = change.unit_id, change.q_name
        self._messages.add(change, picture.numbers[name], number, self._of_group(unit_id))
        self._ahead.follow(change)
        queue = self._queue(name)
        counts = counts_of([change.priority])
        if unit_id:
            unit = self._units.get(unit_id, NO_UNIT)
            picture.set(self._units, unit_id, replace(unit, put_to=unit.put_to | {name}))
            self._write(at_work(queue, self.member, puts=1))
        else:
            self._write(came(queue, counts) if change.trigger is None else lies(queue, counts))

    def _take(self, change: c.TakeMessage) -> None:
        message = change.message
        self._messages.take(message, self._picture.numbers[message.q_name], self._of_group(change.unit_id))
        self._ahead.follow(change)
        unit = self._units.get(change.unit_id, NO_UNIT)
        queue = at_work(self._queue(message.q_name), self.member, gets=1)
        if message.is_own:
            key = message.q_name, message.priority
            unit = replace(unit, own_gets={**unit.own_gets, key: unit.own_gets.get(key, 0) + 1})
        else:
            queue = _without(queue, message)
        self._picture.set(self._units, change.unit_id, unit)
        self._write(queue)
        self._unlock(message.number)

    def _carry_over(self, change: c.CarryOver) -> None:
        self._messages.carry_over(change.message.number, self._of_group(change.unit_id))
        self._ahead.follow(change)
        self._picture.set(self._units, change.unit_id, self._units.get(change.unit_id, NO_UNIT))

    def _remove(self, change: c.RemoveMessage) -> None:
        self._messages.remove(change.message, self._picture.numbers[change.message.q_name])
        self._gone(change)

    def _set_aside(self, change: c.SetAside) -> None:
        self._messages.set_aside(change.message, self._picture.numbers[change.message.q_name])
        self._gone(change)

    def _gone(self, change: c.RemoveMessage | c.SetAside) -> None:
        self._ahead.follow(change)
        self._write(_without(self._queue(change.message.q_name), change.message))
        self._unlock(change.message.number)

    def _lock(self, change: handle_changes.LockMessage) -> None:
        handle = self._own + change.handle
        for number in change.numbers:
            self._picture.lock(number, handle)
            self._turn.execute(group_sql.SET_LOCK, (number, handle))

    def _unlock_all(self, change: handle_changes.UnlockMessage) -> None:
        handle = self._own + change.handle
        for number in [number for number, holder in self._picture.locks.items() if holder == handle]:
            self._unlock(number)
        self._write(self._queue(change.q_name))  # others' gets may go on

    def _unlock(self, number: int) -> None:
        if number in self._picture.locks:
            self._picture.lock(number, None)
            self._turn.execute(group_sql.DROP_LOCK, (number,))

    def _define(self, change: c.SetDefinition) -> None:
        definition = change.definition
        assert isinstance(definition, LocalQueue)
        name = definition.name
        there = self._picture.queues.get(name)
        if name not in self._picture.numbers:
            ((number,),) = self._turn.execute(sql.ADD_QUEUE, (name,))
            self._picture.set(self._picture.numbers, name, number)
        self._write(SharedQueue(definition) if there is None else replace(there, definition=definition))

    def _drop(self, change: c.DropDefinition) -> None:
        assert change.object_type is ObjectType.QLOCAL
        self._turn.execute(sql.CLEAR_QUEUE, (self._picture.numbers[change.name],))
        self._ahead.follow(change)
        self._picture.write(change.name, None)

    def _define_for_all(self, change: group_changes.SetGroupDefinition) -> None:
        self._picture.define((change.object_type, change.definition.name), change.definition)

    def _drop_for_all(self, change: group_changes.DropGroupDefinition) -> None:
        self._picture.define((change.object_type, change.name), None)

    def _fired(self, change: group_changes.NoteTriggered) -> None:
        queue = self._queue(change.q_name)
        fired = has_fired(queue, is_for_group=change.is_for_group, is_disarmed=change.is_disarmed)
        if fired != queue:
            self._write(fired)

    # -- helps ------------------------------------------------------------------------------------------

    def _of_group(self, unit_id: int) -> int:
        return self._own + unit_id if unit_id else 0

    def _queue(self, name: str) -> SharedQueue:
        return self._picture.queues[name]

    def _write(self, queue: SharedQueue) -> None:
        self._picture.write(queue.definition.name, queue)


def _without(queue: SharedQueue, message: StoredMessage) -> SharedQueue:
    return lies(queue, [-count for count in counts_of([message.priority])])


_WRITE: Mapping[type[c.AnyChange], Callable[[PostgresMembership, Any], None]] = {
    c.AddMessage: PostgresMembership._add,
    c.TakeMessage: PostgresMembership._take,
    c.CarryOver: PostgresMembership._carry_over,
    c.RemoveMessage: PostgresMembership._remove,
    c.SetAside: PostgresMembership._set_aside,
    handle_changes.LockMessage: PostgresMembership._lock,
    handle_changes.UnlockMessage: PostgresMembership._unlock_all,
    c.SetDefinition: PostgresMembership._define,
    c.DropDefinition: PostgresMembership._drop,
    group_changes.SetGroupDefinition: PostgresMembership._define_for_all,
    group_changes.DropGroupDefinition: PostgresMembership._drop_for_all,
    group_changes.NoteTriggered: PostgresMembership._fired,
}
