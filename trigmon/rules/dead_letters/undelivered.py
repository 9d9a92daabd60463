"""Reports that the queue manager sends to ReplyToQ, and undelivered ones, which go to the dead-letter queue.

Such a message is put like any other: it may trigger, and it counts. One that even the dead-letter queue does not take
is dropped and logged, so the call that caused it succeeds whatever happens here.
"""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.descriptors import NO_ID
from trigmon.mq.enums import ReportOption
from trigmon.mq.errors import MQError, SyncpointLimitReached
from trigmon.rules.dead_letters.dead_letter import ends_here
from trigmon.rules.messages.dead_letter_queue import dead_descriptor, header, why_not
from trigmon.rules.messages.expiry import capped
from trigmon.rules.messages.put import decide_deliver
from trigmon.rules.messages.put_plan import check_puts_allowed
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.events import MessageDropped
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.internal_calls import Deliver, Report, Undelivered
from trigmon.rules.model.resolve_name import base_queue
from trigmon.rules.model.stored_messages import Found


def decide_report(call: Report, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Delivers a report as any message is put; where it cannot be put, it goes to the dead-letter queue.

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
        undelivered = Undelivered(report=replace(call, descriptor=descriptor), reason=int(error.reason))
        return Decision(internal_calls=[undelivered])


def decide_undelivered(call: Undelivered, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Puts it behind an MQDLH onto DEADQ with its time left, or drops it where MQRO_DISCARD_MSG was inherited."""
    report, name = call.report, facts.q_mgr.dead_letter_q_name
    original = report.descriptor
    refused = f"{report.q_name} refused it (reason {call.reason})"
    if original.report & ReportOption.DISCARD_MSG:
        return Decision(events=(MessageDropped(report.q_name, f"{refused}, and it asks to be discarded then"),))
    data = header(call.reason, report.q_name, original, facts.q_mgr.name, now, report.q_mgr_name) + report.data
    hindered = why_not(facts, len(data))
    if not hindered:
        delivery = Deliver(
            q_name=name,
            descriptor=dead_descriptor(original),
            data=data,
            expires_ms=report.expires_ms,
            unit_id=report.unit_id,
        )
        try:
            return ends_here(decide_deliver(delivery, facts, found, now, ids), name)
        except SyncpointLimitReached:
            raise
        except MQError as error:
            hindered = str(error)
    return Decision(events=(MessageDropped(report.q_name, f"{refused} and the dead-letter queue: {hindered}"),))
