"""The descriptor of a message that was got of a queue manager elsewhere, as trigmon has it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from trigmon.mq.descriptors import MessageDescriptor, chars, moment_of


def descriptor_of(md: Any) -> MessageDescriptor:
    """Returns an MQMD of ibmmq's as trigmon's, to be put again. What is left of a life of less than 0.1 s is 0.1 s."""
    return MessageDescriptor(
        report=md.Report,
        msg_type=md.MsgType,
        expiry=md.Expiry or 1,
        feedback=md.Feedback,
        encoding=md.Encoding,
        coded_char_set_id=md.CodedCharSetId,
        format=_text(md.Format),
        priority=md.Priority,
        persistence=md.Persistence,
        msg_id=md.MsgId,
        correl_id=md.CorrelId,
        backout_count=md.BackoutCount,
        reply_to_q=_text(md.ReplyToQ),
        reply_to_q_mgr=_text(md.ReplyToQMgr),
        user_identifier=_text(md.UserIdentifier),
        accounting_token=md.AccountingToken,
        appl_identity_data=_text(md.ApplIdentityData),
        put_appl_type=md.PutApplType,
        put_appl_name=_text(md.PutApplName),
        put_ms=moment_of(_text(md.PutDate), _text(md.PutTime)),
        appl_origin_data=_text(md.ApplOriginData),
        group_id=md.GroupId,
        msg_seq_number=md.MsgSeqNumber,
        offset=md.Offset,
        msg_flags=md.MsgFlags,
        original_length=md.OriginalLength,
    )


def _text(field: bytes) -> str:
    """Returns the characters of a field; what is no UTF-8 is read as Latin-1, and cut where that makes it too long."""
    raw = field.partition(b"\0")[0].rstrip(b" ")
    with suppress(UnicodeDecodeError):
        return raw.decode()
    return chars(raw.decode("latin-1"), len(field)).decode().rstrip(" ")
