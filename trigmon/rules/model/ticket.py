"""A reservation's ticket: by it a task on another machine reads the rows of that reservation, and does nothing else.

The process of the queue manager signs it (:mod:`trigmon.tls.tickets`). It holds until the reservation has ended, a day
at most. Who reads by a ticket does not stand behind the reservation: a stolen ticket keeps no job from being started.
"""

from __future__ import annotations

import msgspec

from trigmon.mq.calls import Call, LostConnection, ReadReserved
from trigmon.mq.enums import UnitOutcome
from trigmon.mq.errors import FunctionNotSupported, NotAuthorized
from trigmon.rules.model.reservation import Reservation

LIFETIME_MS = 24 * 3600 * 1000
"""The driver gets another one each time it plans, so it need not last longer than one reading of a batch."""


class Ticket(msgspec.Struct, frozen=True, array_like=True):
    """What a ticket says: one reservation, named by all that never changes of it, the user it was made for, its end.

    ``made_ms`` is when the reservation was made, and tells it from one of the same number in a restored backup.
    """

    reservation: int
    q_name: str
    made_ms: int
    user: str
    until_ms: int


def ticket_of(reservation: Reservation, user: str, now: int) -> Ticket:
    """Returns the ticket of a reservation for a user from now on."""
    return Ticket(reservation.number, reservation.q_name, reservation.made_ms, user, now + LIFETIME_MS)


def unsigned(ticket: Ticket) -> str:
    """Raises FunctionNotSupported (2298): where no ticket can be used, none is signed."""
    raise FunctionNotSupported("tickets are for TLS, and this queue manager has no TLS listener (tls.listen)")


def check_ticket(ticket: Ticket, reservation: Reservation | None, now: int) -> None:
    """Raises NotAuthorized (2035) with the reason why a ticket does not hold.

    ``reservation`` is the one of its number, None where there is none.
    """
    named = f"the ticket is of RESERVATION({ticket.reservation}) on {ticket.q_name}"
    if now >= ticket.until_ms:
        raise NotAuthorized(f"{named}, and its time is over since {(now - ticket.until_ms) // 1000} s")
    if reservation is None:
        raise NotAuthorized(f"{named}, which never was, or ended long ago")
    if (reservation.q_name, reservation.made_ms) != (ticket.q_name, ticket.made_ms):
        raise NotAuthorized(f"{named}, and the reservation of this number is another one, on {reservation.q_name}")
    if reservation.outcome is not UnitOutcome.OPEN:
        how = "settled" if reservation.outcome is UnitOutcome.COMMITTED else "given back"
        raise NotAuthorized(f"{named}, which was {how}")


def check_call_by_ticket(call: Call, ticket: Ticket, reservation: Reservation | None, now: int) -> None:
    """Raises NotAuthorized (2035) for all but reading the ticket's own reservation while it holds."""
    if isinstance(call, LostConnection):
        return
    named = f"the ticket is of RESERVATION({ticket.reservation}) on {ticket.q_name}"
    if not isinstance(call, ReadReserved):
        kind = str(type(call).__struct_config__.tag)
        raise NotAuthorized(f"{named}: it allows read_reserved alone, and not {kind}")
    if call.reservation != ticket.reservation:
        raise NotAuthorized(f"{named}, not of RESERVATION({call.reservation})")
    check_ticket(ticket, reservation, now)
