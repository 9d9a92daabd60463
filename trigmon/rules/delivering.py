"""What the queue manager sends by itself: a report to ReplyToQ, and what nobody takes to the dead-letter queue.

Such a message is put like any other: it may trigger, and it counts. One that even the dead-letter queue does not take
is dropped and told to the log, so the call that gave rise to it succeeds whatever happens here.
"""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.descriptors import (
    CCSID_UTF8,
    DLH_LENGTH,
    ENCODING_NATIVE,
    FORMAT_DEAD_LETTER,
    NO_ID,
    DeadLetterHeader,
    date_and_time,
    pack_dlh,
)
from trigmon.mq.enums import ApplType, ReportOption
from trigmon.mq.errors import MQError, SyncpointLimitReached
from trigmon.rules.dead_letter import why_not
from trigmon.rules.decision import Decision, Dropped, Ids, Lost
from trigmon.rules.errands import Deliver, Report, Undelivered
from trigmon.rules.expiry import capped
from trigmon.rules.facts import Facts, Found, StoredMessage
from trigmon.rules.put import check_puts_allowed, decide_deliver
from trigmon.rules.reports import exception_report
from trigmon.rules.resolving import base_queue

_DISCARD = ReportOption.DISCARD_MSG.value


def decide_report(call: Report, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Delivers a report as any message is put; where it cannot be, it goes the way of the undelivered.

    A full unit of work is the caller's affair: SyncpointLimitReached (2024) refuses the put or get itself.
    """
    descriptor = call.descriptor
    if descriptor.msg_id == NO_ID:
        descriptor = replace(descriptor, msg_id=ids.msg_id(ids.message()))
    try:
        queue, _ = base_queue(call.q_name, facts)
        check_puts_allowed(facts, queue)
        lasting = capped(descriptor, queue, facts)
        is_capped = lasting.expiry != descriptor.expiry
        delivery = Deliver(
            q_name=call.q_name,
            descriptor=lasting,
            data=call.data,
            expires_ms=now + lasting.expiry * 100 if is_capped else call.expires_ms,
            unit_id=call.unit_id,
        )
        return decide_deliver(delivery, facts, found, now, ids)
    except SyncpointLimitReached:
        raise
    except MQError as error:
        undelivered = Undelivered(
            q_name=call.q_name,
            q_mgr_name=call.q_mgr_name or facts.q_mgr.name,
            reason=int(error.reason),
            descriptor=descriptor,
            data=call.data,
            expires_ms=call.expires_ms,
            unit_id=call.unit_id,
        )
        return Decision(errands=[undelivered])


def decide_undelivered(call: Undelivered, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """A message that did not reach its queue: behind an MQDLH onto DEADQ, with its context and the time it has left.

    With MQRO_DISCARD_MSG it is discarded instead. Either way its sender gets the exception report it asked for; a
    message that is dropped because DEADQ did not take it gives rise to none (the manual on MQRO_EXCEPTION).
    """
    original = call.descriptor
    message = StoredMessage(0, call.q_name, 0, False, original, call.data, call.expires_ms)
    reports = exception_report(message, call.reason, facts, now)
    if original.report & _DISCARD:
        why = f"it was not delivered (reason {call.reason}), and its sender asked to discard it then"
        return Decision(errands=reports, told=(Lost(call.q_name, why),))
    hinders = why_not(facts, DLH_LENGTH + len(call.data))
    if hinders:
        why = f"it was not delivered (reason {call.reason}), and the dead-letter queue: {hinders}"
        return Decision(told=(Lost(call.q_name, why),))
    put_date, put_time = date_and_time(now)
    header = DeadLetterHeader(
        reason=call.reason,
        dest_q_name=call.q_name,
        dest_q_mgr_name=call.q_mgr_name,
        encoding=original.encoding,
        coded_char_set_id=original.coded_char_set_id or CCSID_UTF8,
        format=original.format,
        put_appl_type=ApplType.QMGR.value,
        put_appl_name=facts.q_mgr.name[:28],
        put_date=put_date,
        put_time=put_time,
    )
    delivery = Deliver(
        q_name=facts.q_mgr.dead_letter_q_name,
        descriptor=replace(original, encoding=ENCODING_NATIVE, coded_char_set_id=CCSID_UTF8, format=FORMAT_DEAD_LETTER),
        data=pack_dlh(header) + call.data,
        expires_ms=call.expires_ms,
        unit_id=call.unit_id,
    )
    try:
        placed = decide_deliver(delivery, facts, found, now, ids)
    except SyncpointLimitReached:
        raise
    except MQError as error:
        why = f"it was not delivered (reason {call.reason}), and the dead-letter queue refused it: {error}"
        return Decision(told=(Lost(call.q_name, why),))
    # What its arrival triggers may find no place in turn: then that is dropped, so nothing goes round for ever.
    dropped = tuple(Dropped(delivery.q_name, "a dead letter has no dead letter") for _ in placed.errands)
    return replace(placed, errands=reports, told=(*placed.told, *dropped))
