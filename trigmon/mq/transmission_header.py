"""MQXQH, 428 bytes: what stands before a message on a transmission queue, its own descriptor (MQMD version 1) in it.

Layout by the C header: StrucId 0, Version 4, RemoteQName 8, RemoteQMgrName 56, MsgDesc 104 to 428. What an MQMD of
version 1 cannot say, the message's group and segment, follows as an MQMDE, 72 bytes: StrucId 0, Version 4,
StrucLength 8, Encoding 12, CodedCharSetId 16, Format 20, Flags 28, GroupId 32, MsgSeqNumber 56, Offset 60,
MsgFlags 64, OriginalLength 68. Integers are
native little-endian where the queue manager writes them; what an application wrote is read by its Encoding.
"""

from __future__ import annotations

import struct
from operator import attrgetter
from typing import Literal

from msgspec.structs import replace

from trigmon.mq.descriptors import (
    CCSID_UTF8,
    ENCODING_NATIVE,
    EXPIRY_UNLIMITED,
    FORMAT_MD_EXTENSION,
    FORMAT_XMIT_Q_HEADER,
    ID_LENGTH,
    MessageDescriptor,
    chars,
    date_and_time,
    integer_order,
)
from trigmon.mq.enums import ApplType
from trigmon.mq.errors import ExpiryError, XqhError

_XQH = struct.Struct("<4si48s48s")
_MD = struct.Struct("<4s7i8sii24s24si48s48s12s32s32si28s8s8s4s")
MD_LENGTH = _MD.size
XQH_LENGTH = _XQH.size + MD_LENGTH
_MDE = struct.Struct("<4s4i8si24s4i")
MDE_LENGTH = _MDE.size
_EXPIRY_AT = _XQH.size + 16
_MSG_ID_AT = _XQH.size + 48
_CORREL_ID_AT = _MSG_ID_AT + ID_LENGTH


_second_version = attrgetter("group_id", "msg_seq_number", "offset", "msg_flags", "original_length")
_PLAIN = _second_version(MessageDescriptor())


def has_extension(md: MessageDescriptor) -> bool:
    """Returns whether the descriptor says something that only an MQMD of version 2 can say."""
    return bool(_second_version(md) != _PLAIN)


def pack_xqh(remote_q_name: str, remote_q_mgr_name: str, descriptor: MessageDescriptor) -> bytes:
    """Packs an MQXQH version 1: 428 bytes with the message's own descriptor, 500 with its extension."""
    head = _XQH.pack(b"XQH ", 1, chars(remote_q_name, 48), chars(remote_q_mgr_name, 48))
    if not has_extension(descriptor):
        return head + pack_md(descriptor)
    # Each header says what follows it: the descriptor tells of the extension, and the extension of the data.
    first = replace(descriptor, format=FORMAT_MD_EXTENSION, encoding=ENCODING_NATIVE, coded_char_set_id=CCSID_UTF8)
    return head + pack_md(first) + pack_mde(descriptor)


def pack_mde(md: MessageDescriptor) -> bytes:
    """Packs an MQMDE version 2, 72 bytes."""
    return _MDE.pack(
        b"MDE ",
        2,
        MDE_LENGTH,
        md.encoding,
        md.coded_char_set_id or CCSID_UTF8,
        chars(md.format, 8),
        0,
        md.group_id,
        md.msg_seq_number,
        md.offset,
        md.msg_flags,
        md.original_length,
    )


def pack_md(md: MessageDescriptor) -> bytes:
    """Packs an MQMD version 1, 324 bytes. The queue manager's own character set is named, since it leaves here."""
    has_context = md.put_appl_type != ApplType.NO_CONTEXT
    put_date, put_time = date_and_time(md.put_ms) if has_context else (" " * 8, " " * 8)
    return _MD.pack(
        b"MD  ",
        1,
        md.report,
        md.msg_type,
        md.expiry,
        md.feedback,
        md.encoding,
        md.coded_char_set_id or CCSID_UTF8,
        chars(md.format, 8),
        md.priority,
        md.persistence,
        md.msg_id,
        md.correl_id,
        md.backout_count,
        chars(md.reply_to_q, 48),
        chars(md.reply_to_q_mgr, 48),
        chars(md.user_identifier, 12),
        md.accounting_token,
        chars(md.appl_identity_data, 32),
        md.put_appl_type,
        chars(md.put_appl_name, 28),
        put_date.encode(),
        put_time.encode(),
        chars(md.appl_origin_data, 4),
    )


def check_xqh(descriptor: MessageDescriptor, data: bytes) -> None:
    """Checks that a put straight onto a transmission queue begins with an MQXQH (seed 003, note 9).

    Its expiry must be valid, and limited where the message's own is limited. Raises XqhError, ExpiryError.
    """
    if descriptor.format.rstrip() != FORMAT_XMIT_Q_HEADER:
        raise XqhError(f"format {descriptor.format or ' '}: on a transmission queue it is {FORMAT_XMIT_Q_HEADER}")
    order = integer_order(descriptor.encoding)
    heads = (b"XQH ", (1).to_bytes(4, order), b"MD  ")
    if len(data) < XQH_LENGTH or (data[:4], data[4:8], data[104:108]) != heads:
        raise XqhError(f"the message does not begin with an MQXQH of {XQH_LENGTH} bytes")
    expiry = _expiry(data, order)
    if expiry != EXPIRY_UNLIMITED and expiry <= 0:
        raise ExpiryError(f"expiry {expiry} in the MQXQH: tenths of a second above 0, or -1 for none")
    if (expiry == EXPIRY_UNLIMITED) is not (descriptor.expiry == EXPIRY_UNLIMITED):
        raise ExpiryError(f"expiry {descriptor.expiry} is inconsistent with the {expiry} in the MQXQH")


def ids_in_xqh(data: bytes) -> tuple[bytes, bytes] | None:
    """Returns MsgId and CorrelId of the message behind an MQXQH; None where there is none."""
    if len(data) < XQH_LENGTH or data[:4] != b"XQH ":
        return None
    return data[_MSG_ID_AT:_CORREL_ID_AT], data[_CORREL_ID_AT : _CORREL_ID_AT + ID_LENGTH]


def aged(descriptor: MessageDescriptor, data: bytes, waited_ms: int) -> bytes:
    """Returns the data as it is got: the MQXQH's expiry less the time since the put, 0 once that has elapsed.

    Data too short to hold the field, and a field that is not above 0, stay as they are.
    """
    if len(data) < _EXPIRY_AT + 4:
        return data
    order = integer_order(descriptor.encoding)
    expiry = _expiry(data, order)
    if expiry <= 0:
        return data
    left_ms = expiry * 100 - waited_ms
    left = max(1, left_ms // 100) if left_ms > 0 else 0
    return data[:_EXPIRY_AT] + left.to_bytes(4, order, signed=True) + data[_EXPIRY_AT + 4 :]


def _expiry(data: bytes, order: Literal["little", "big"]) -> int:
    return int.from_bytes(data[_EXPIRY_AT : _EXPIRY_AT + 4], order, signed=True)
