"""Tickets as text and as a rule: no text but the one that was signed is a ticket, and no other call is allowed."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from trigmon.mq.calls import AnyCall, CopyState, LostConnection, ReadReserved
from trigmon.mq.enums import UnitOutcome
from trigmon.mq.errors import NotAuthorized
from trigmon.rules.model.reservation import Reservation
from trigmon.rules.model.ticket import LIFETIME_MS, Ticket, check_call_by_ticket, check_ticket, ticket_of
from trigmon.tls.tickets import LONGEST, TicketError, TicketKey

KEY = TicketKey(b"k" * 32, "QM1")
NOW = 1_700_000_000_000
RESERVATION = Reservation(7, "ORDERS.IN", "JOB", made_ms=NOW - 5)
TICKET = ticket_of(RESERVATION, "alice", NOW)
TEXT = KEY.signed(TICKET)
numbers = st.integers(0, 2**63 - 1)
tickets = st.builds(Ticket, numbers, st.text(max_size=48), numbers, st.text(max_size=64), numbers)


@given(tickets)
def test_a_ticket_is_read_as_it_was_signed(ticket):
    text = KEY.signed(ticket)
    assert len(text) <= LONGEST
    assert KEY.read(text) == ticket


def test_a_text_with_one_other_character_is_no_ticket():
    taken = []
    for at, was in enumerate(TEXT):
        for character in set(string.ascii_letters + string.digits + "-_=.+/ \nü") - {was}:
            try:
                KEY.read(TEXT[:at] + character + TEXT[at + 1 :])
            except TicketError:
                continue
            taken.append((at, character))
    assert taken == []


@given(st.text() | st.text("ABab01-_=.", max_size=60))
def test_no_text_of_somebody_s_own_is_a_ticket(text):
    with pytest.raises(TicketError) as refused:
        KEY.read(text)
    assert len(text) < 20 or text not in str(refused.value)


@given(tickets)
def test_another_key_or_another_queue_manager_s_name_signs_otherwise(ticket):
    for other in (TicketKey(b"x" * 32, "QM1"), TicketKey(b"k" * 32, "QM2")):
        with pytest.raises(TicketError):
            KEY.read(other.signed(ticket))


@pytest.mark.parametrize("kind", [*AnyCall.__args__], ids=lambda kind: kind.__struct_config__.tag)
def test_a_ticket_allows_reading_its_reservation_and_no_other_call(kind):
    plain = {str: "NONE", int: 7, dict: {}, list: [], bool: True, CopyState: CopyState(name="Q@QM2", q_name="Q")}
    given = {
        field.name: plain[getattr(field.type, "__origin__", field.type)] for field in fields(kind) if field.required
    }
    if kind is ReadReserved:
        check_call_by_ticket(kind(**given), TICKET, RESERVATION, NOW)
        return
    with pytest.raises(NotAuthorized, match="allows read_reserved alone"):
        check_call_by_ticket(kind(**given), TICKET, RESERVATION, NOW)


def test_the_end_of_a_link_is_no_call_of_the_client():
    check_call_by_ticket(LostConnection(), TICKET, None, NOW + 2 * LIFETIME_MS)


@pytest.mark.parametrize(
    ("reservation", "now", "why"),
    [
        (RESERVATION, NOW + LIFETIME_MS, "its time is over since 0 s"),
        (RESERVATION, NOW + LIFETIME_MS + 61_000, "its time is over since 61 s"),
        (None, NOW, "never was, or ended long ago"),
        (replace(RESERVATION, q_name="OTHER"), NOW, "is another one, on OTHER"),
        (replace(RESERVATION, made_ms=NOW), NOW, "is another one, on ORDERS.IN"),
        (replace(RESERVATION, outcome=UnitOutcome.COMMITTED), NOW, "was settled"),
        (replace(RESERVATION, outcome=UnitOutcome.BACKED_OUT), NOW, "was given back"),
    ],
)
def test_a_ticket_that_does_not_hold_says_why(reservation, now, why):
    check_ticket(TICKET, RESERVATION, NOW + LIFETIME_MS - 1)
    with pytest.raises(NotAuthorized, match=why):
        check_ticket(TICKET, reservation, now)
