"""The descriptor of a reply message: what the command's Report field asks for, as for any reply."""

from __future__ import annotations

from typing import Final

from trigmon.mq.descriptors import EXPIRY_UNLIMITED, NO_ID, MessageDescriptor
from trigmon.mq.enums import ApplType, MsgType, ReportOption
from trigmon.rules.model.internal_calls import Report

FORMAT_ADMIN: Final = "MQADMIN"
APPLICATION: Final = "trigmon command server"


def reply_to(command: MessageDescriptor, data: bytes, ccsid: int, now: int) -> Report:
    """Returns the put of a reply to the command's ReplyToQ: a report goes the same way as a reply does.

    CorrelId is the command's MsgId, or its CorrelId with MQRO_PASS_CORREL_ID; MsgId is new, or the command's with
    MQRO_PASS_MSG_ID. Priority and persistence are the command's; what is left of its time, with
    MQRO_PASS_DISCARD_AND_EXPIRY.
    """
    report = command.report
    passes = bool(report & ReportOption.PASS_DISCARD_AND_EXPIRY)
    # A descriptor that was got has the tenths that are left.
    expiry = command.expiry if passes and command.expiry > 0 else EXPIRY_UNLIMITED
    descriptor = MessageDescriptor(
        report=ReportOption.DISCARD_MSG.value if passes and report & ReportOption.DISCARD_MSG else 0,
        msg_type=MsgType.REPLY.value,
        expiry=expiry,
        encoding=command.encoding,
        coded_char_set_id=ccsid,
        format=FORMAT_ADMIN,
        priority=command.priority,
        persistence=command.persistence,
        msg_id=command.msg_id if report & ReportOption.PASS_MSG_ID else NO_ID,
        correl_id=command.correl_id if report & ReportOption.PASS_CORREL_ID else command.msg_id,
        put_appl_type=ApplType.UNIX.value,
        put_appl_name=APPLICATION,
        put_ms=now,
    )
    expires_ms = now + expiry * 100 if expiry > 0 else 0
    return Report(
        q_name=command.reply_to_q,
        q_mgr_name=command.reply_to_q_mgr,
        descriptor=descriptor,
        data=data,
        expires_ms=expires_ms,
    )
