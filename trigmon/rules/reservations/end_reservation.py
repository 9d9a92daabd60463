"""Ends reservations: Settle, Release, the work on their rows a slice at a time, and the end of a connection."""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.calls import Call, Release, Settle
from trigmon.mq.enums import UnitOutcome
from trigmon.mq.errors import (
    BackedOut,
    CommandFailed,
    NotAuthorized,
    UnitOfWorkNotStarted,
)
from trigmon.mq.replies import Counted, Done, Settled
from trigmon.rules.messages.get import MOST_BYTES
from trigmon.rules.messages.reports import delivery_report
from trigmon.rules.model.access import check_may_end
from trigmon.rules.model.changes import AnyChange
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.events import SweepDue
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.internal_calls import LeaveReservation, Sweep
from trigmon.rules.model.reservation import Due, Reservation, ended, without
from trigmon.rules.model.reservation_changes import ReturnReserved, SetReservation, SettleReserved
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.model.stored_messages import (
    LARGE_SLICE,
    SLICE,
    Form,
    Found,
    Reserved,
    ReservedNumbers,
    Selection,
    count_in,
    stretches,
)
from trigmon.rules.reservations.find_reservation import asked_for, check_stretches, left_of, named
from trigmon.rules.triggers.effects import trigger


def decide_settle(call: Settle, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Settles all of it before it is answered; its rows go later, with the reports that senders asked for."""
    reservation = asked_for(call, facts)
    check_may_end(reservation, named(reservation), facts.connection)
    if reservation.outcome is UnitOutcome.COMMITTED:
        return Decision(Settled(count=0, already=True))
    if reservation.outcome is UnitOutcome.BACKED_OUT:
        raise BackedOut(f"{named(reservation)} was given back")
    if not reservation.is_sealed:
        raise CommandFailed(f"{named(reservation)} is still being made: nobody can have read it")
    parts = [Due(first, end) for first, end in left_of(call, reservation)]
    return _end(reservation, parts, UnitOutcome.COMMITTED, now)


def decide_release(call: Release, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Returns the messages to the queue. That is no occasion, like a backout: the close of the queue is judged."""
    reservation = asked_for(call, facts)
    if reservation.outcome is UnitOutcome.BACKED_OUT:
        return Decision(Settled(count=0, already=True))
    if reservation.outcome is UnitOutcome.COMMITTED:
        raise UnitOfWorkNotStarted(f"{named(reservation)} was settled")
    connection = facts.connection
    if reservation.holder not in (0, connection.connection) and not connection.is_administrator:
        raise NotAuthorized(
            f"{named(reservation)} is held by {reservation.by}: that or an administrator may release it"
        )
    adds = reservation.offers + 1 if call.counts else 0
    parts = [Due(first, end, True, adds) for first, end in left_of(call, reservation)]
    return _end(reservation, parts, UnitOutcome.BACKED_OUT, now)


def _end(reservation: Reservation, parts: list[Due], outcome: UnitOutcome, now: int) -> Decision:
    if not parts:
        return Decision(Settled(count=0, left=reservation.left, already=True))
    count = sum(part.end - part.first for part in parts)
    after = ended(reservation, parts, outcome, now)
    if outcome is UnitOutcome.COMMITTED:
        after = replace(after, settled=after.settled + count)
    check_stretches(after)
    sweep = Sweep(reservation=reservation.number)
    return Decision(Settled(count=count, left=after.left), [SetReservation(after)], [sweep])


def look_for_sweep(call: Sweep, facts: Facts, now: int) -> Selection | None:
    """Selects a slice of what the reservation is done with."""
    reservation = facts.reservation
    if reservation is None or not reservation.due:
        return None
    due = reservation.due[0]
    # What is settled and plain goes unread: no report has to be sent, and none of it is very large.
    is_unread = reservation.is_plain and not due.returns
    form = Form.NUMBERS if is_unread else Form.WHOLE
    return Selection(
        reservation.q_name,
        now,
        limit=_unread_slice(reservation) if is_unread else SLICE,
        limit_bytes=MOST_BYTES,
        reserved=Reserved(reservation.number, due.first, due.end),
        form=form,
    )


def _unread_slice(reservation: Reservation) -> int:
    """Returns how many rows go at a time, unread: fewer where they are large on average."""
    return max(SLICE, min(LARGE_SLICE, MOST_BYTES * reservation.count // max(1, reservation.size)))


def decide_sweep(call: Sweep, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Deletes rows, or gives them back. A damaged one goes back: the next one that reads it sets it aside."""
    reservation = facts.reservation
    if reservation is None or found is None:
        return Decision(Counted(count=0))
    due, *others = reservation.due
    numbers = found.numbers or _settled(found, due)
    rest = [replace(due, first=numbers.end)] if numbers.end < due.end else []
    after = replace(reservation, due=(*rest, *others))
    backs = (*found.messages, *found.damaged) if due.returns else found.damaged
    changes: list[AnyChange] = [ReturnReserved(backs, due.adds)] if backs else []
    internal_calls: list[Call] = []
    if numbers.stretches:
        changes.append(SettleReserved(reservation.q_name, numbers.stretches, found.messages))
        asking = () if reservation.is_plain else found.messages
        internal_calls = [each for message in asking for each in delivery_report(message, facts, now, 0)]
    # A message that is back may be got and be gone: then the record must not bring it back once more.
    changes.append(SetReservation(after, must_last=bool(backs)))
    events = (SweepDue((reservation.number,)),) if after.due else ()
    count = count_in(numbers.stretches) + len(backs)
    return Decision(Counted(count=count, more=bool(after.due)), changes, internal_calls, events)


def _settled(found: Found, due: Due) -> ReservedNumbers:
    """Returns the numbers of whole messages that are settled; where nothing was found, nothing is left of this part."""
    behind = max((row.ordinal + 1 for row in (*found.messages, *found.damaged)), default=due.end)
    numbers = [] if due.returns else [message.number for message in found.messages]
    return ReservedNumbers(tuple(stretches(numbers)), behind)


def decide_leave_reservation(call: LeaveReservation, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Removes an ended connection. Behind the last one the messages wait again, which is occasion R."""
    reservation, queue = facts.reservation, facts.queue
    if reservation is None or queue is None:
        return Decision(Done())
    after = without(reservation, facts.connection.connection)
    changes: list[AnyChange] = [SetReservation(after, is_stored=False)]
    if after.behind or not after.left:
        return Decision(Done(), changes)
    depths = tuple(
        depth + new - old for depth, old, new in zip(queue.depths, reservation.waiting, after.waiting, strict=True)
    )
    waits = replace(queue, depths=depths, reserved=queue.reserved - reservation.held)
    situation = Situation(
        Happened.RESERVATION_LOST, waits, facts.process, facts.initiation, facts.q_mgr.trigger_interval, now
    )
    effects = trigger(situation, facts.q_mgr.name, ids)
    return Decision(Done(), [*changes, *effects.changes], effects.internal_calls, effects.events, judged=effects.judged)
