"""MQMD in bytes, and the descriptor that a call of trigmon carries. Pure."""

from __future__ import annotations

from typing import cast

from trigmon.mq.descriptors import CCSID_UTF8, MessageDescriptor, chars, date_and_time, moment_of
from trigmon.mqi.layout import Value, Values
from trigmon.mqi.mqi_numbers import MqiError, MqiReason
from trigmon.mqi.structures import MQMD


def text(value: Value) -> str:
    """Returns the characters of a field, up to its first null and without the blanks behind them."""
    return cast(bytes, value).partition(b"\0")[0].rstrip(b" ").decode(errors="replace")


def number(value: Value) -> int:
    """Returns the integer of a field."""
    return cast(int, value)


def raw(value: Value) -> bytes:
    """Returns the bytes of a field."""
    return cast(bytes, value)


def read_md(given: bytes) -> Values:
    """Returns the fields of an MQMD. Raises MqiError: 2026 for none, 2257 for a version that there is not."""
    if given[:4] != MQMD.struc_id:
        raise MqiError(MqiReason.MD_ERROR, f"an MQMD begins with {given[:4]!r}")
    if not MQMD.is_one(given):
        raise MqiError(MqiReason.WRONG_MD_VERSION, "an MQMD has version 1 or 2")
    return MQMD.unpack(given)


def descriptor_of(md: Values) -> MessageDescriptor:
    """Returns what a put says of its message. The queue manager's CCSID becomes its number."""
    return MessageDescriptor(
        report=number(md["Report"]),
        msg_type=number(md["MsgType"]),
        expiry=number(md["Expiry"]),
        feedback=number(md["Feedback"]),
        encoding=number(md["Encoding"]),
        coded_char_set_id=number(md["CodedCharSetId"]) or CCSID_UTF8,
        format=text(md["Format"]),
        priority=number(md["Priority"]),
        persistence=number(md["Persistence"]),
        msg_id=raw(md["MsgId"]),
        correl_id=raw(md["CorrelId"]),
        reply_to_q=text(md["ReplyToQ"]),
        reply_to_q_mgr=text(md["ReplyToQMgr"]),
        user_identifier=text(md["UserIdentifier"]),
        accounting_token=raw(md["AccountingToken"]),
        appl_identity_data=text(md["ApplIdentityData"]),
        put_appl_type=number(md["PutApplType"]),
        put_appl_name=text(md["PutApplName"]),
        put_ms=moment_of(text(md["PutDate"]), text(md["PutTime"])),
        appl_origin_data=text(md["ApplOriginData"]),
        group_id=raw(md["GroupId"]),
        msg_seq_number=number(md["MsgSeqNumber"]),
        offset=number(md["Offset"]),
        msg_flags=number(md["MsgFlags"]),
        original_length=number(md["OriginalLength"]),
    )


def md_of(descriptor: MessageDescriptor, version: Value) -> bytes:
    """Packs the MQMD of a message that was got, in the version that the program gave."""
    date, time = date_and_time(descriptor.put_ms) if descriptor.put_ms else ("", "")
    return MQMD.pack(
        {
            "Version": version,
            "Report": descriptor.report,
            "MsgType": descriptor.msg_type,
            "Expiry": descriptor.expiry,
            "Feedback": descriptor.feedback,
            "Encoding": descriptor.encoding,
            "CodedCharSetId": descriptor.coded_char_set_id or CCSID_UTF8,
            "Format": chars(descriptor.format, 8),
            "Priority": descriptor.priority,
            "Persistence": descriptor.persistence,
            "MsgId": descriptor.msg_id,
            "CorrelId": descriptor.correl_id,
            "BackoutCount": descriptor.backout_count,
            "ReplyToQ": chars(descriptor.reply_to_q, 48),
            "ReplyToQMgr": chars(descriptor.reply_to_q_mgr, 48),
            "UserIdentifier": chars(descriptor.user_identifier, 12),
            "AccountingToken": descriptor.accounting_token,
            "ApplIdentityData": chars(descriptor.appl_identity_data, 32),
            "PutApplType": descriptor.put_appl_type,
            "PutApplName": chars(descriptor.put_appl_name, 28),
            "PutDate": date.encode(),
            "PutTime": time.encode(),
            "ApplOriginData": chars(descriptor.appl_origin_data, 4),
            "GroupId": descriptor.group_id,
            "MsgSeqNumber": descriptor.msg_seq_number,
            "Offset": descriptor.offset,
            "MsgFlags": descriptor.msg_flags,
            "OriginalLength": descriptor.original_length,
        }
    )
