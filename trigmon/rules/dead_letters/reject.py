"""Rejection of one message of a reservation by its consumer, and poison that a reservation meets.

It goes onto BOQNAME or, that failing, behind an MQDLH onto the dead-letter queue, as poison does for a get
(:mod:`trigmon.rules.dead_letters.backout_requeue`): in one step with its leaving the reservation. The application's
reason stands before its data (:mod:`trigmon.mq.rejection`) and is logged, with where the message went. It
stands in the log alone where no header can carry it: before a segment, whose length is its place in the message;
where the mark of what was put aside cannot be set, by which the header is recognized as ours; and where the header
leaves no room.
"""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.calls import Call, Reject
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import ReportOption, UnitOutcome
from trigmon.mq.errors import AttrValueError, CommandFailed, MQError, OptionsError, UnknownObjectName
from trigmon.mq.reasons import Reason
from trigmon.mq.rejection import Rejection, with_rejection
from trigmon.mq.replies import Reply, Settled
from trigmon.rules.dead_letters.backout_requeue import backouts_before, counted_anew, moved
from trigmon.rules.dead_letters.dead_letter import ends_here
from trigmon.rules.messages.dead_letter_queue import dead_descriptor, header, why_not
from trigmon.rules.messages.reports import exception_report
from trigmon.rules.model.access import check_may_end
from trigmon.rules.model.changes import AddMessage, AnyChange, RemoveMessage
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.events import PoisonMoved
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.group_position import SEGMENT
from trigmon.rules.model.internal_calls import PutOff
from trigmon.rules.model.reservation import Due, ended
from trigmon.rules.model.reservation_changes import SetReservation, SettleReserved
from trigmon.rules.model.stored_messages import Found, Reserved, Selection, StoredMessage
from trigmon.rules.reservations.find_reservation import check_stretches, named, open_one

LONGEST_TEXT = 1024
_REACHED = Reason.BACKOUT_THRESHOLD_REACHED
_DISCARD = ReportOption.DISCARD_MSG.value


def look_for_reject(call: Reject, facts: Facts, now: int) -> Selection:
    """Selects the message of this ordinal. Raises what tells why there is none."""
    reservation = open_one(facts, call.reservation)
    check_may_end(reservation, named(reservation), facts.connection)
    if len(call.why) > LONGEST_TEXT:
        raise AttrValueError(f"the reason of a rejection has at most {LONGEST_TEXT} characters")
    if not reservation.is_sealed or not any(a <= call.ordinal < b for a, b in reservation.stretches):
        raise OptionsError(f"{named(reservation)} has nothing left with the ordinal {call.ordinal}")
    one = Reserved(reservation.number, call.ordinal, call.ordinal + 1)
    return Selection(reservation.q_name, now, reserved=one)


def decide_reject(call: Reject, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Moves it to the backout queue. Raises CommandFailed (3008) where no queue takes it; then it stays."""
    reservation, queue = open_one(facts, call.reservation), facts.queue
    if found is None or not found.messages or queue is None:
        raise UnknownObjectName(f"{named(reservation)}: the message {call.ordinal} is not what was written")
    message = found.messages[0]
    raised = replace(message.descriptor, backout_count=message.descriptor.backout_count + reservation.offers)
    put_off = PutOff(
        message=replace(message, descriptor=raised),
        to_q_name=queue.definition.backout_requeue_q_name,
        reservation=reservation.number,
        why=call.why,
    )

    def gather(_: list[Reply]) -> Reply:
        return Settled(count=1, left=reservation.left - 1)

    return Decision(internal_calls=[put_off], gather=gather)


def decide_put_off(call: PutOff, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Moves it from the queue, or out of the reservation, onto another queue, trying one form after the other."""
    message = call.message
    hindered = ""
    for descriptor, data in _forms(call, now):
        try:
            done = _put(call, descriptor, data, facts, now, ids)
        except MQError as error:
            hindered = str(error)
            continue
        before = message.descriptor
        went = (change.q_name for change in done.changes if isinstance(change, AddMessage))
        to_q_name = call.to_q_name or next(went, "")
        event = PoisonMoved(message.q_name, to_q_name, before.msg_id, before.backout_count, call.why)
        return replace(done, changes=_leaving(call, facts, done.changes, now), events=(event, *done.events))
    return _other_way(call, hindered)


def _forms(call: PutOff, now: int) -> list[tuple[MessageDescriptor, bytes]]:
    """Returns the message as it is to lie there: with the rejection's text, and else without."""
    before, data = call.message.descriptor, call.message.data
    plain = counted_anew(before, now)
    is_known_again = backouts_before(plain) is not None and not before.msg_flags & SEGMENT
    if not (call.reservation and call.why and is_known_again):
        return [(plain, data)]
    rejection = Rejection(why=call.why, q_name=call.message.q_name, ms=now)
    return [with_rejection(plain, data, rejection), (plain, data)]


def _put(call: PutOff, descriptor: MessageDescriptor, data: bytes, facts: Facts, now: int, ids: Ids) -> Decision:
    """Puts it onto its queue, or where none is named onto the dead-letter queue. Raises MQError."""
    message = call.message
    if call.to_q_name:
        return moved(message, call.to_q_name, descriptor, data, facts, now, ids)
    if descriptor.report & _DISCARD:
        return Decision(changes=[RemoveMessage(message)], internal_calls=_reports(message, facts, now))
    return _dead_letter(message, descriptor, data, facts, now, ids)


def _other_way(call: PutOff, why: str) -> Decision:
    if call.to_q_name:
        reason = "; ".join(part for part in (call.why, f"BOQNAME: {why}") if part)
        return Decision(internal_calls=[replace(call, to_q_name="", why=reason)])
    if call.otherwise is None:
        raise CommandFailed(f"no queue takes it: {why}")
    return Decision(internal_calls=[call.otherwise])


def _leaving(call: PutOff, facts: Facts, changes: list[AnyChange], now: int) -> list[AnyChange]:
    """Returns the changes without a count of the queue: what is reserved counts on no queue."""
    reservation = facts.reservation
    if reservation is None:
        return changes
    message = call.message
    settled = SettleReserved(message.q_name, ((message.number, message.number),), (message,))
    ordinal = message.ordinal
    gone = ended(reservation, [Due(ordinal, ordinal + 1)], UnitOutcome.COMMITTED, now)
    check_stretches(gone)
    without_row = SetReservation(replace(gone, due=reservation.due))
    others: list[AnyChange] = [settled if isinstance(change, RemoveMessage) else change for change in changes]
    return [*others, without_row]


def _dead_letter(
    message: StoredMessage, descriptor: MessageDescriptor, body: bytes, facts: Facts, now: int, ids: Ids
) -> Decision:
    """Puts it behind an MQDLH. Raises CommandFailed where the dead-letter queue does not take it."""
    data = header(_REACHED, message.q_name, descriptor, facts.q_mgr.name, now) + body
    if hindered := why_not(facts, len(data)):
        raise CommandFailed(f"the dead-letter queue: {hindered}")
    to_q_name = facts.q_mgr.dead_letter_q_name
    done = moved(message, to_q_name, dead_descriptor(descriptor), data, facts, now, ids)
    return replace(ends_here(done, to_q_name), internal_calls=_reports(message, facts, now))


def _reports(message: StoredMessage, facts: Facts, now: int) -> list[Call]:
    return exception_report(message, _REACHED.value, facts, now)
