"""Why an application rejected a message: an MQRFH2 before the data, with properties of ours in its folder usr.

That is how MQ hands a message's properties to who gets it without asking for them apart (PROPCTL(COMPAT)). The data
follows as it was, and the header says what its Format, Encoding and CodedCharSetId were (:mod:`trigmon.mq.rfh2`).
"""

from __future__ import annotations

import re
from xml.sax.saxutils import escape, unescape

import msgspec
from msgspec.structs import replace

from trigmon.mq.descriptors import CCSID_UTF8, MessageDescriptor, text_of
from trigmon.mq.rfh2 import FORMAT_RULES_2, RFH2, VERSION, behind_header

_FOLDER = re.compile(
    "<usr><trigmon_why>([^<]*)</trigmon_why><trigmon_q_name>([^<]*)</trigmon_q_name>"
    "<trigmon_ms dt='i8'>([0-9]{1,18})</trigmon_ms></usr> *"
)


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """Why a message was rejected, the queue that it was taken from, and when, in milliseconds since 1970."""

    why: str
    q_name: str
    ms: int


def with_rejection(descriptor: MessageDescriptor, data: bytes, rejection: Rejection) -> tuple[MessageDescriptor, bytes]:
    """Returns a message behind the header that says why it was rejected.

    What no header may hold stands in it as a blank.
    """
    why = "".join(character if character.isprintable() else " " for character in rejection.why)
    folder = (
        f"<usr><trigmon_why>{escape(why)}</trigmon_why><trigmon_q_name>{escape(rejection.q_name)}</trigmon_q_name>"
        f"<trigmon_ms dt='i8'>{rejection.ms}</trigmon_ms></usr>"
    ).encode()
    return behind_header(descriptor, data, [folder])


def without_rejection(descriptor: MessageDescriptor, data: bytes) -> tuple[MessageDescriptor, bytes, Rejection | None]:
    """Returns the message as it was, and what its header says; unchanged, and None, where it has no such header."""
    if descriptor.format.rstrip() != FORMAT_RULES_2 or len(data) < RFH2.size:
        return descriptor, data, None
    struc_id, version, length, encoding, ccsid, format_, _, name_ccsid, folder_length = RFH2.unpack_from(data)
    is_ours = (struc_id, version, name_ccsid) == (b"RFH ", VERSION, CCSID_UTF8)
    if not is_ours or length != RFH2.size + folder_length or not RFH2.size <= length <= len(data):
        return descriptor, data, None
    folder = _FOLDER.fullmatch(data[RFH2.size : length].decode(errors="replace"))
    if folder is None:
        return descriptor, data, None
    rejection = Rejection(why=unescape(folder[1]), q_name=unescape(folder[2]), ms=int(folder[3]))
    inner = replace(descriptor, format=text_of(format_), encoding=encoding, coded_char_set_id=ccsid)
    return inner, data[length:], rejection
