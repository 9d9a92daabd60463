"""Puts a trigger message that cannot be served on the dead-letter queue, with an MQDLH that holds the reason."""

from __future__ import annotations

from collections.abc import Callable

from trigmon.monitor.trigger_plan import DeadLetter
from trigmon.mq.calls import Call, Display, Put
from trigmon.mq.descriptors import (
    DeadLetterHeader,
    MessageDescriptor,
    date_and_time,
    pack_dlh,
    unpack_tm,
)
from trigmon.mq.enums import ApplType, ObjectType, PutOption
from trigmon.mq.errors import MQError, TmError
from trigmon.mq.replies import Listing, Reply
from trigmon.rules.messages.dead_letter_queue import dead_descriptor


def put_dead_letter(
    call: Callable[[Call], Reply],
    verdict: DeadLetter,
    descriptor: MessageDescriptor,
    data: bytes,
    *,
    initiation_q: str,
    q_mgr_name: str,
    now_ms: int,
    unit: int = 0,
    sets_context: bool = False,
) -> str:
    """Puts the message onto the queue manager's DEADQ, in the unit of work when one is given.

    Returns a sentence for the run record: where the trigger message lies now, or why it lies nowhere. A queue
    that refuses it is such a reason, not an error: the monitor goes on. One about the dead-letter queue itself is
    dropped: it would trigger that queue again, for ever. With ``sets_context``, which needs an administrator, the
    UserIdentifier of the dead letter is that of the message, else that of the monitor. Raises only what ``call``
    raises besides MQError.
    """
    try:
        name = dead_letter_queue(call)
        if not name:
            return "the trigger message was dropped: the queue manager names no dead-letter queue (DEADQ)"
        about = _triggered_queue(data)
        if about and about in (name, _base_queue(call, name)):
            return f"the trigger message was dropped: it is about {about}, the dead-letter queue itself"
        options = PutOption.SYNCPOINT if unit else PutOption.NO_SYNCPOINT
        if sets_context and descriptor.user_identifier:
            options |= PutOption.SET_IDENTITY_CONTEXT
        call(
            Put(
                q_name=name,
                descriptor=dead_descriptor(descriptor),
                data=_header(verdict, descriptor, initiation_q, q_mgr_name, now_ms) + data,
                options=int(options),
                unit=unit,
            )
        )
    except MQError as error:
        return f"the trigger message was dropped: the dead-letter queue refused it ({error})"
    return f"the trigger message is on {name}"


def dead_letter_queue(call: Callable[[Call], Reply]) -> str:
    """Returns the queue manager's DEADQ as it is now, "" for none."""
    reply = call(Display(object_type=ObjectType.QMGR.name))
    return str(reply.rows[0]["dead_letter_q_name"]) if isinstance(reply, Listing) and reply.rows else ""


def _triggered_queue(data: bytes) -> str:
    """Returns the queue that a trigger message is about, "" when the data is none."""
    try:
        return unpack_tm(data).q_name
    except TmError:
        return ""


def _base_queue(call: Callable[[Call], Reply], name: str) -> str:
    """Returns the queue behind an alias of this name, "" when it is none."""
    reply = call(Display(object_type=ObjectType.QALIAS.name, name=name))
    return str(reply.rows[0]["base_q_name"]) if isinstance(reply, Listing) and reply.rows else ""


def _header(
    verdict: DeadLetter, descriptor: MessageDescriptor, initiation_q: str, q_mgr_name: str, now_ms: int
) -> bytes:
    put_date, put_time = date_and_time(now_ms)
    return pack_dlh(
        DeadLetterHeader(
            reason=int(verdict.reason),
            dest_q_name=initiation_q,
            dest_q_mgr_name=q_mgr_name,
            encoding=descriptor.encoding,
            coded_char_set_id=descriptor.coded_char_set_id,
            format=descriptor.format,
            put_appl_type=int(ApplType.UNIX),
            put_appl_name="trigmon monitor",
            put_date=put_date,
            put_time=put_time,
        )
    )
