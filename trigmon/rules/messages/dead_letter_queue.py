"""What is put on the dead-letter queue: the header (MQDLH), the descriptor; and why that queue cannot take it."""

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
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.internal_calls import DeadLetter
from trigmon.rules.model.queue_facts import QueueFacts


def dead_data(call: DeadLetter, facts: Facts, now: int) -> bytes:
    """Returns the trigger message behind its MQDLH."""
    about = MessageDescriptor(format=FORMAT_TRIGGER, coded_char_set_id=CCSID_UTF8)
    return header(call.reason, call.initiation_q, about, facts.q_mgr.name, now) + pack_tm(call.message)


def dead_descriptor(descriptor: MessageDescriptor) -> MessageDescriptor:
    """Returns the descriptor of a message behind an MQDLH of ours, which keeps the description of the data."""
    return replace(descriptor, format=FORMAT_DEAD_LETTER, encoding=ENCODING_NATIVE, coded_char_set_id=CCSID_UTF8)


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
