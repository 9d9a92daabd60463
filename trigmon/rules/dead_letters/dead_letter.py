"""Dead letters: the header (MQDLH), the descriptor, and what the arrival of one triggers.

The first to become one is a trigger message that its initiation queue did not take; else it is dropped. The
dead-letter queue may itself be triggered, once: a trigger message raised here that cannot be placed in turn is
dropped, so there is no endless circle. The application's own call succeeds whatever happens here.
"""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.descriptors import (
    CCSID_UTF8,
    ENCODING_NATIVE,
    FORMAT_DEAD_LETTER,
    FORMAT_TRIGGER,
    DeadLetterHeader,
    MessageDescriptor,
    date_and_time,
    pack_dlh,
    pack_tm,
)
from trigmon.mq.enums import ApplType, Inhibit, Usage
from trigmon.mq.reasons import Reason
from trigmon.rules.messages.put import counted_priority, put_situation
from trigmon.rules.messages.units_of_work import check_limit
from trigmon.rules.model.changes import AddMessage
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.events import TriggerMessageDropped
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.internal_calls import DeadLetter
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.stored_messages import Found
from trigmon.rules.triggers.effects import trigger, trigger_descriptor


def decide_dead_letter(call: DeadLetter, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Places the trigger message on DEADQ, in the unit of work it belongs to and counts for (2024), else drops it."""
    name, queue, data = facts.q_mgr.name, facts.queue, dead_data(call, facts, now)
    hindered = why_not(facts, len(data))
    if hindered or queue is None:
        why = "its program could not start"
        if isinstance(call.reason, Reason):
            why = f"{call.initiation_q} refused it ({call.reason.mq_name})"
        return Decision(events=(TriggerMessageDropped(call.q_name, f"{why} and the dead-letter queue: {hindered}"),))
    number = ids.message()
    descriptor = trigger_descriptor(queue.definition.def_priority, name, ids.msg_id(number), now, call.occasion)
    added = AddMessage(
        queue.definition.name,
        number,
        counted_priority(queue.definition, descriptor.priority),
        False,
        dead_descriptor(descriptor),
        data,
        unit_id=call.unit_id,
        is_held=call.unit_id != 0,
        on_backout=call.on_backout,
    )
    effects = trigger(put_situation(facts, queue, descriptor.priority, now), name, ids, call.unit_id)
    if call.unit_id:
        check_limit(facts, 1 + effects.in_unit)
    placed = Decision(
        changes=[added, *effects.changes],
        internal_calls=effects.internal_calls,
        events=effects.events,
        judged=effects.judged,
    )
    return ends_here(placed, queue.definition.name)


def dead_data(call: DeadLetter, facts: Facts, now: int) -> bytes:
    """Returns the trigger message behind its MQDLH."""
    about = MessageDescriptor(format=FORMAT_TRIGGER, coded_char_set_id=CCSID_UTF8)
    return header(call.reason, call.initiation_q, about, facts.q_mgr.name, now) + pack_tm(call.message)


def dead_descriptor(descriptor: MessageDescriptor) -> MessageDescriptor:
    """Returns the descriptor of a message behind an MQDLH of ours, which keeps the description of the data."""
    return replace(descriptor, format=FORMAT_DEAD_LETTER, encoding=ENCODING_NATIVE, coded_char_set_id=CCSID_UTF8)


def ends_here(placed: Decision, q_name: str) -> Decision:
    """Returns the put of a dead letter without further dead letters, so that no message moves in a circle."""
    dropped = tuple(TriggerMessageDropped(q_name, "a dead letter has no dead letter") for _ in placed.internal_calls)
    return replace(placed, internal_calls=[], events=(*placed.events, *dropped))


def header(
    reason: int, dest_q_name: str, descriptor: MessageDescriptor, q_mgr_name: str, now: int, dest_q_mgr_name: str = ""
) -> bytes:
    """Returns the MQDLH before a message, meant for a queue of this queue manager unless another is named."""
    put_date, put_time = date_and_time(now)
    return pack_dlh(
        DeadLetterHeader(
            reason=int(reason),
            dest_q_name=dest_q_name,
            dest_q_mgr_name=dest_q_mgr_name or q_mgr_name,
            encoding=descriptor.encoding,
            coded_char_set_id=descriptor.coded_char_set_id,
            format=descriptor.format,
            put_appl_type=int(ApplType.QMGR),
            put_appl_name=q_mgr_name[:28],
            put_date=put_date,
            put_time=put_time,
        )
    )


def why_not(facts: Facts, length: int) -> str:
    """Returns why the dead-letter queue cannot take the message; empty when it can."""
    if not facts.q_mgr.dead_letter_q_name:
        return "none is named (DEADQ)"
    queue = facts.queue
    if queue is None:
        return f"{facts.q_mgr.dead_letter_q_name} does not exist"
    if facts.remote is not None or queue.definition.usage is Usage.TRANSMISSION or queue.is_deleted:
        return f"{facts.q_mgr.dead_letter_q_name} is no local queue of normal usage"
    return _what_hinders(queue, length)


def _what_hinders(queue: QueueFacts, length: int) -> str:
    if queue.definition.inhibit_put is Inhibit.INHIBITED:
        return "puts are inhibited"
    if queue.lying >= queue.definition.max_q_depth:
        return "it is full"
    if length > queue.definition.max_msg_length:
        return f"its MAXMSGL is under {length}"
    return ""
