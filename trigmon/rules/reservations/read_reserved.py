"""Reads the messages of a reservation: ReadReserved, IssueTicket and Attempt."""

from __future__ import annotations

from itertools import chain

from msgspec.structs import replace

from trigmon.mq.calls import Attempt, Call, IssueTicket, ReadReserved
from trigmon.mq.enums import UnitOutcome
from trigmon.mq.errors import (
    CommandFailed,
    NotAuthorized,
    ObjectDamaged,
    OptionsError,
)
from trigmon.mq.packed_messages import encoded, pack
from trigmon.mq.replies import Done, Reply, TicketIssued, WereReserved
from trigmon.rules.messages.get import MOST_BYTES, MOST_MESSAGES, all_seen, given
from trigmon.rules.model.access import is_of
from trigmon.rules.model.changes import AnyChange
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.internal_calls import Sweep
from trigmon.rules.model.manager_state import ManagerState
from trigmon.rules.model.reservation import Due, Reservation, cut, ended, together
from trigmon.rules.model.reservation_changes import SetReservation
from trigmon.rules.model.stored_messages import Form, Found, Reserved, Selection, StoredMessage
from trigmon.rules.model.ticket import Ticket, ticket_of
from trigmon.rules.reservations.find_reservation import check_stretches, left_of, named, open_one


def look_for_read_reserved(call: ReadReserved, facts: Facts, now: int) -> Selection | None:
    """Selects the first stretch of what is asked for that is left."""
    if call.ordinal < 0 or call.count < 1:
        raise OptionsError(f"ordinal {call.ordinal}, count {call.count}: from 0, and 1 or more")
    reservation = open_one(facts, call.reservation)
    if not reservation.is_sealed:
        raise CommandFailed(f"{named(reservation)} is still being made: reserve again until it is complete")
    wanted = left_of(call, reservation)
    if not wanted:
        return None
    first, end = wanted[0]
    return Selection(
        reservation.q_name,
        now,
        limit=min(end - first, MOST_MESSAGES),
        limit_bytes=MOST_BYTES,
        reserved=Reserved(reservation.number, first, end),
        form=Form.AS_STORED if call.packed and reservation.is_plain and not reservation.offers else Form.WHOLE,
    )


def decide_read_reserved(call: ReadReserved, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Returns the messages, as a get would return them; their time left is what is left of it, and never nothing.

    Of a packed reading, which is a job's, damaged ones leave the reservation and go back to their queue, where the next
    look-up sets them aside. Else ObjectDamaged (2101) names the first: a program decides what becomes of the batch.
    """
    reservation = open_one(facts, call.reservation)
    if found is not None and found.damaged and not call.packed:
        ordinal = found.damaged[0].ordinal
        raise ObjectDamaged(f"{named(reservation)}: what has the ordinal {ordinal} is not what was written")
    whole = _without_damaged(reservation, found, now)
    stands = whole
    connection = facts.connection.connection
    may_stand = is_of(reservation, facts.connection) and facts.connection.ticket is None
    if connection not in whole.behind and may_stand and whole.left:
        # Who is behind it keeps its job from being started again: another user, and a ticket, only looks.
        stands = replace(whole, readers=(*whole.readers, connection))
    changes: list[AnyChange] = (
        [SetReservation(stands, is_stored=whole is not reservation)] if stands is not reservation else []
    )
    sweeps: list[Call] = [Sweep(reservation=reservation.number)] if whole is not reservation else []
    return Decision(_read(call, whole, found, now), changes, sweeps)


def _without_damaged(reservation: Reservation, found: Found | None, now: int) -> Reservation:
    """Returns the reservation without the damaged messages that were found. Raises SyncpointLimitReached (2024)."""
    if found is None or not found.damaged:
        return reservation
    stretches = together((message.ordinal, message.ordinal + 1) for message in found.damaged)
    parts = [Due(first, end, True) for first, end in stretches]
    after = ended(reservation, parts, UnitOutcome.COMMITTED, now)
    check_stretches(after)
    return after


def _read(call: ReadReserved, reservation: Reservation, found: Found | None, now: int) -> Reply:
    """Returns the reply with the messages that were found, and where what is left of the call's stretch begins."""
    if found is None:
        nothing = WereReserved(ordinals=[], messages=[], ordinal=reservation.count)
        return pack([], [], [], reservation.count, more=False) if call.packed else nothing
    stored = found.as_stored
    ordinals = stored.ordinals if stored is not None else [message.ordinal for message in found.messages]
    last = max(chain(ordinals[-1:], (message.ordinal for message in found.damaged)), default=None)
    after = call.ordinal + call.count if last is None else last + 1
    more = cut(left_of(call, reservation), after, reservation.count)
    following = more[0][0] if more else min(call.ordinal + call.count, reservation.count)
    if stored is not None:
        return pack(stored.descriptors, stored.bodies, ordinals, following, more=bool(more))
    by = reservation.offers
    messages = [_counted_up(message, by) for message in found.messages] if by else found.messages
    if call.packed:
        descriptors, bodies = all_seen(messages, now)
        return pack(encoded(descriptors), bodies, ordinals, following, more=bool(more))
    got = [given(message, now, -1, False) for message in messages]
    return WereReserved(ordinals=ordinals, messages=got, ordinal=following, more=bool(more))


class Unsigned(Reply, frozen=True):
    """The reply of IssueTicket before the process has signed it."""

    ticket: Ticket


def decide_issue_ticket(call: IssueTicket, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Makes the ticket of a reservation that is open, for the user who asks."""
    return Decision(Unsigned(ticket=ticket_of(open_one(facts, call.reservation), facts.connection.user, now)))


def complete_issue_ticket(call: IssueTicket, reply: Unsigned, manager: ManagerState) -> TicketIssued:
    """Signs it. Raises FunctionNotSupported where no ticket could be used."""
    return TicketIssued(ticket=manager.sign_ticket(reply.ticket), until_ms=reply.ticket.until_ms)


def _counted_up(message: StoredMessage, by: int) -> StoredMessage:
    descriptor = message.descriptor
    return replace(message, descriptor=replace(descriptor, backout_count=descriptor.backout_count + by))


def decide_attempt(call: Attempt, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Records what its holder works on alone, for the holder that is offered it after that one's end."""
    reservation = open_one(facts, call.reservation)
    if call.ordinal < 0 or call.count < 0 or call.ordinal + call.count > reservation.count:
        raise OptionsError(f"ordinal {call.ordinal}, count {call.count}: from 0, and within {reservation.count}")
    if reservation.holder != facts.connection.connection or not reservation.is_sealed:
        raise NotAuthorized(f"{named(reservation)}: only its holder works on it, and when it is complete")
    attempt = (call.ordinal, call.ordinal + call.count) if call.count else None
    return Decision(Done(), [SetReservation(replace(reservation, attempt=attempt), must_last=True)])
