"""Finds the reservation of a call, and what of it is left to read, settle or release."""

from __future__ import annotations

from trigmon.mq.calls import ReadReserved, Release, Settle
from trigmon.mq.enums import UnitOutcome
from trigmon.mq.errors import (
    OptionsError,
    SyncpointLimitReached,
    UnitOfWorkNotStarted,
    UnknownObjectName,
)
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.reservation import Reservation, cut

MOST_STRETCHES = 1000
"""Into so many pieces what is left may fall at most: each step writes all of them down."""


def open_one(facts: Facts, number: int = 0) -> Reservation:
    """Returns the reservation, of which something is left. Raises what tells why there is none."""
    reservation = facts.reservation
    if reservation is None:
        raise _unknown(number)
    if reservation.outcome is not UnitOutcome.OPEN:
        how = "settled" if reservation.outcome is UnitOutcome.COMMITTED else "given back"
        raise UnitOfWorkNotStarted(f"{named(reservation)} was {how}")
    return reservation


def asked_for(call: Settle | Release, facts: Facts) -> Reservation:
    """Returns the reservation to settle or release, ended or not. Raises OptionsError and UnknownObjectName."""
    if call.ordinal < 0 or call.count < -1:
        raise OptionsError(f"ordinal {call.ordinal}, count {call.count}: from 0, and -1 for all behind")
    if facts.reservation is None:
        raise _unknown(call.reservation)
    return facts.reservation


def left_of(call: ReadReserved | Settle | Release, reservation: Reservation) -> list[tuple[int, int]]:
    """Returns what is left of the ordinals asked for, as stretches (first, end)."""
    end = reservation.count if call.count < 0 else call.ordinal + call.count
    return cut(reservation.stretches, call.ordinal, end)


def check_stretches(reservation: Reservation) -> None:
    """Raises SyncpointLimitReached (2024) for a reservation that falls into too many pieces."""
    if len(reservation.gone) > MOST_STRETCHES:
        raise SyncpointLimitReached(f"{named(reservation)} would fall into more than {MOST_STRETCHES} pieces")


def _unknown(number: int) -> UnknownObjectName:
    return UnknownObjectName(f"RESERVATION({number}): it never was, or ended long ago")


def named(reservation: Reservation) -> str:
    """Returns a reservation as an error names it."""
    return f"RESERVATION({reservation.number}) of {reservation.consumer} on {reservation.q_name}"
