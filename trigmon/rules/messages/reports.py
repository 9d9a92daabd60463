"""Reports: what the queue manager writes to the sender about a message (seed 003; mq-facts 4.8).

A report is an internal call of the call that causes it, made here from the message it is about; ``undelivered`` puts
it to ReplyToQ. Confirmations of arrival and delivery belong to the unit of work of the put or the get; an expiration
or exception report belongs to none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_

import msgspec
from msgspec.structs import replace

from trigmon.mq.calls import Call
from trigmon.mq.descriptors import (
    DLH_LENGTH,
    EXPIRY_UNLIMITED,
    FORMAT_DEAD_LETTER,
    FORMAT_NONE,
    FORMAT_XMIT_Q_HEADER,
    LARGEST_LONG,
    NO_ID,
    MessageDescriptor,
)
from trigmon.mq.enums import ApplType, Feedback, MsgType, ReportOption, Usage
from trigmon.mq.errors import FeedbackError, MissingReplyToQ, ReportOptionsError
from trigmon.mq.reasons import Reason
from trigmon.mq.transmission_header import XQH_LENGTH, ids_in_xqh
from trigmon.rules.model.changes import AddMessage, AnyChange
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.internal_calls import Report
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.stored_messages import StoredMessage

FIRST_BYTES = 100
"""What WITH_DATA sends of the application's data, behind MQ's own headers."""

LARGEST_FEEDBACK = 999_999_999

_KNOWN = reduce(or_, (option.value for option in ReportOption.__members__.values()))
# MQRO_REJECT_UNSUP_MASK, and MQRO_ACCEPT_UNSUP_IF_XMIT_MASK; every other bit is accepted.
_REJECTED = 0x101C_0000
_ACCEPTED_IF_REMOTE = 0x0003_FF00
_DISCARD = ReportOption.DISCARD_MSG.value
_PASS_DISCARD = ReportOption.PASS_DISCARD_AND_EXPIRY.value


class Kind(msgspec.Struct, frozen=True):
    """A kind of report: the bit that asks for one, and those that add data. The values nest, so bits are tested."""

    asked: int
    with_data: int
    with_full_data: int


EXCEPTION = Kind(0x0100_0000, 0x0200_0000, 0x0400_0000)
EXPIRATION = Kind(0x0020_0000, 0x0040_0000, 0x0080_0000)
COA = Kind(0x100, 0x200, 0x400)
COD = Kind(0x800, 0x1000, 0x2000)
_NOTICES = (ReportOption.PAN | ReportOption.NAN | ReportOption.ACTIVITY).value
_ASKED = EXCEPTION.asked | EXPIRATION.asked | COA.asked | COD.asked | _NOTICES


def check_report(descriptor: MessageDescriptor, is_remote: bool) -> int:
    """Checks the report options of a put; returns 2104 for bits that are accepted though they are unknown here, else 0.

    Raises FeedbackError (2014), MissingReplyToQ (2027) where a report is asked for, ReportOptionsError (2061).
    """
    if not 0 <= descriptor.feedback <= LARGEST_FEEDBACK:
        raise FeedbackError(f"feedback {descriptor.feedback}: 0, or 1 to {LARGEST_FEEDBACK}")
    report = descriptor.report
    if not report:
        return 0
    if not -LARGEST_LONG <= report <= LARGEST_LONG:
        raise ReportOptionsError(f"report {report:#x} is beyond 32 bits")
    unknown = report & ~_KNOWN
    if unknown & (_REJECTED if is_remote else _REJECTED | _ACCEPTED_IF_REMOTE):
        raise ReportOptionsError(f"report {report:#x}: {unknown:#x} is unknown here")
    if report & _ASKED and not descriptor.reply_to_q:
        raise MissingReplyToQ(f"report {report:#x} needs reply_to_q")
    return int(Reason.UNKNOWN_REPORT_OPTION) if unknown else 0


def report(kind: Kind, feedback: int, message: StoredMessage, facts: Facts, now: int, unit_id: int = 0) -> list[Call]:
    """Returns the report of this kind on a message, if its sender asked for one.

    ``feedback`` is a Feedback or a reason.
    """
    q_mgr_name = facts.q_mgr.name
    original = message.descriptor
    if not original.report & kind.asked:
        return []
    passes_expiry = original.report & _PASS_DISCARD and message.expires_ms > now
    data = _data_for(kind, original, message.data)
    msg_id, correl_id = original.msg_id, original.correl_id
    if original.format == FORMAT_XMIT_Q_HEADER:
        # The sender knows the ids of its own message, not those that its transmission was given.
        msg_id, correl_id = ids_in_xqh(message.data) or (msg_id, correl_id)
    descriptor = replace(
        original,
        report=_DISCARD if original.report & _PASS_DISCARD and original.report & _DISCARD else 0,
        msg_type=MsgType.REPORT.value,
        # One that expired with the message it tells of would never be read.
        expiry=message.tenths_left(now) if passes_expiry else EXPIRY_UNLIMITED,
        feedback=feedback,
        format=original.format if data is not None else FORMAT_NONE,
        msg_id=msg_id if original.report & ReportOption.PASS_MSG_ID else NO_ID,
        correl_id=correl_id if original.report & ReportOption.PASS_CORREL_ID else msg_id,
        backout_count=0,
        reply_to_q="",
        reply_to_q_mgr=q_mgr_name,
        put_appl_type=ApplType.QMGR.value,
        put_appl_name=q_mgr_name[:28],
        put_ms=now,
        appl_origin_data="",
        original_length=len(message.data),
    )
    report = Report(
        q_name=original.reply_to_q,
        q_mgr_name=original.reply_to_q_mgr,
        descriptor=descriptor,
        data=data or b"",
        expires_ms=message.expires_ms if passes_expiry else 0,
        unit_id=unit_id,
    )
    return [report]


def expiration_reports(expired: Iterable[StoredMessage], facts: Facts, now: int) -> list[Call]:
    """Returns the reports on messages that are discarded now, never in a unit of work (seed 003, notes 3 and 4)."""
    return [made for message in expired for made in report(EXPIRATION, Feedback.EXPIRATION, message, facts, now)]


def arrival_reports(changes: Sequence[AnyChange], queue: QueueFacts, facts: Facts, now: int) -> list[Call]:
    """Returns the confirmations of arrival for what these changes put: one a segment, in the put's unit of work."""
    made: list[Call] = []
    for change in changes:
        if isinstance(change, AddMessage) and change.descriptor.report:
            made += _confirmation(COA, Feedback.COA, change.message, queue, facts, now, change.unit_id)
    return made


def asks_for_delivery_report(report: int) -> bool:
    """Returns whether the sender of a message with this Report asked for a confirmation that it was got."""
    return bool(report & COD.asked)


def delivery_report(message: StoredMessage, facts: Facts, now: int, unit_id: int) -> list[Call]:
    """Returns the confirmation that a message was got, in the unit of work of the get."""
    if not message.descriptor.report or facts.queue is None:
        return []
    return _confirmation(COD, Feedback.COD, message, facts.queue, facts, now, unit_id)


def _confirmation(
    kind: Kind, feedback: Feedback, message: StoredMessage, queue: QueueFacts, facts: Facts, now: int, unit_id: int
) -> list[Call]:
    """Returns the confirmation: none on a transmission queue, which is no destination, and none of a dead letter."""
    if queue.definition.usage is Usage.TRANSMISSION or message.descriptor.format == FORMAT_DEAD_LETTER:
        return []
    return report(kind, feedback, message, facts, now, unit_id)


def exception_report(message: StoredMessage, reason: int, facts: Facts, now: int) -> list[Call]:
    """Returns the report that a message went to the dead-letter queue, or was discarded, instead of its destination."""
    return report(EXCEPTION, reason, message, facts, now)


def _data_for(kind: Kind, original: MessageDescriptor, data: bytes) -> bytes | None:
    """Returns what the report carries of the message: all of it, its headers and 100 bytes, or nothing."""
    if original.report & kind.with_full_data:
        return data
    if original.report & kind.with_data:
        return data[: _HEADERS.get(original.format, 0) + FIRST_BYTES]
    return None


_HEADERS = {FORMAT_XMIT_Q_HEADER: XQH_LENGTH, FORMAT_DEAD_LETTER: DLH_LENGTH}
