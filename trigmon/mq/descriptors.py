"""What travels with a message: its descriptor (MQMD), and the structures the queue manager writes itself.

MQTM is the trigger message (684 bytes), MQTMC2 its all-character form for programs (732 bytes), MQDLH the header
of a dead letter (172 bytes). Layouts are the C header's, to the byte: native little-endian integers, characters
padded with blanks. A dead letter may have been put by a program on another machine: its integers are read by the
Encoding of its descriptor. Times are milliseconds since 1970, UTC.
"""

from __future__ import annotations

import struct
import unicodedata
from typing import Literal

import msgspec

from trigmon.mq.enums import MsgFlag, MsgType, Persistence
from trigmon.mq.errors import DlhError, TmcError, TmError

ID_LENGTH = 24
FORMAT_LENGTH = 8
LARGEST_LONG = 2**31 - 1
"""MQLONG is signed and has 32 bits."""
NO_ID = bytes(ID_LENGTH)
ENCODING_NATIVE = 0x222
CCSID_UTF8 = 1208
EXPIRY_UNLIMITED = -1
PRIORITY_AS_Q_DEF = -1

FORMAT_NONE = ""
FORMAT_STRING = "MQSTR"
FORMAT_TRIGGER = "MQTRIG"
FORMAT_DEAD_LETTER = "MQDEAD"
FORMAT_XMIT_Q_HEADER = "MQXMIT"
FORMAT_MD_EXTENSION = "MQHMDE"


class MessageDescriptor(msgspec.Struct, frozen=True, array_like=True, kw_only=True, gc=False):
    """MQMD: every field under its snake_case name, with MQMD_DEFAULT's values; and behind them one of our own.

    ``traceparent`` is the span that put the message (:mod:`trigmon.mq.traceparent`), blank for none.
    """

    report: int = 0
    msg_type: int = MsgType.DATAGRAM.value
    expiry: int = EXPIRY_UNLIMITED
    feedback: int = 0
    encoding: int = ENCODING_NATIVE
    coded_char_set_id: int = 0
    format: str = FORMAT_NONE
    priority: int = PRIORITY_AS_Q_DEF
    persistence: int = Persistence.AS_Q_DEF.value
    msg_id: bytes = NO_ID
    correl_id: bytes = NO_ID
    backout_count: int = 0
    reply_to_q: str = ""
    reply_to_q_mgr: str = ""
    user_identifier: str = ""
    accounting_token: bytes = b""
    appl_identity_data: str = ""
    put_appl_type: int = 0
    put_appl_name: str = ""
    put_ms: int = 0
    appl_origin_data: str = ""
    group_id: bytes = NO_ID
    msg_seq_number: int = 1
    offset: int = 0
    msg_flags: int = MsgFlag.NONE.value
    original_length: int = -1
    traceparent: str = ""


def padded_id(value: bytes | str) -> bytes:
    """Returns a message, correlation or group id: text or bytes, padded with nulls to 24 bytes.

    Raises ValueError when it is longer, TypeError when it is neither.
    """
    raw = value.encode() if isinstance(value, str) else bytes(memoryview(value))
    if len(raw) > ID_LENGTH:
        raise ValueError(f"an id has at most {ID_LENGTH} bytes, not {len(raw)}")
    return raw.ljust(ID_LENGTH, b"\0")


class TriggerMessage(msgspec.Struct, frozen=True, kw_only=True):
    """What a trigger message says (MQTM)."""

    q_name: str
    process_name: str = ""
    trigger_data: str = ""
    appl_type: int = -1
    appl_id: str = ""
    env_data: str = ""
    user_data: str = ""


_TM = struct.Struct("<4si48s48s64si256s128s128s")
_TMC2 = struct.Struct("<4s4s48s48s64s4s256s128s128s48s")
_DLH_FIELDS = "4sii48s48sii8si28s8s8s"
_DLH = struct.Struct("<" + _DLH_FIELDS)
_DLH_BIG = struct.Struct(">" + _DLH_FIELDS)
_INTEGERS, _BIG_ENDIAN = 0xF, 0x1
TM_LENGTH = _TM.size
TMC2_LENGTH = _TMC2.size
DLH_LENGTH = _DLH.size


def chars(text: str, length: int) -> bytes:
    """Characters in a fixed field: cut at a character's edge, padded with blanks."""
    raw = text.encode()[:length]
    return raw.decode(errors="ignore").encode().ljust(length)


def text_of(raw: bytes) -> str:
    """Returns the characters of a fixed field, without the blanks or nulls that fill it."""
    return raw.rstrip(b" \0").decode(errors="replace")


def integer_order(encoding: int) -> Literal["little", "big"]:
    """Returns the byte order of integers by Encoding (MQENC_INTEGER_*); native where it does not say."""
    return "big" if encoding & _INTEGERS == _BIG_ENDIAN else "little"


def pack_tm(tm: TriggerMessage) -> bytes:
    """Packs an MQTM version 1, 684 bytes."""
    return _TM.pack(
        b"TM  ",
        1,
        chars(tm.q_name, 48),
        chars(tm.process_name, 48),
        chars(tm.trigger_data, 64),
        tm.appl_type,
        chars(tm.appl_id, 256),
        chars(tm.env_data, 128),
        chars(tm.user_data, 128),
    )


def unpack_tm(data: bytes) -> TriggerMessage:
    """Returns the trigger message in 684 bytes. Raises TmError (2265) when they are not a valid MQTM."""
    if len(data) != TM_LENGTH:
        raise TmError(f"an MQTM has {TM_LENGTH} bytes, not {len(data)}")
    struc_id, version, q_name, process, trigger_data, appl_type, appl_id, env, user = _TM.unpack(data)
    if struc_id != b"TM  " or version != 1:
        raise TmError(f"not an MQTM: it begins with {struc_id!r}, version {version}")
    return TriggerMessage(
        q_name=text_of(q_name),
        process_name=text_of(process),
        trigger_data=text_of(trigger_data),
        appl_type=appl_type,
        appl_id=text_of(appl_id),
        env_data=text_of(env),
        user_data=text_of(user),
    )


def pack_tmc2(tm: TriggerMessage, q_mgr_name: str) -> str:
    """Packs an MQTMC2 version 2, 732 bytes of characters: ApplType blank, the queue manager's name at the end."""
    raw = _TMC2.pack(
        b"TMC ",
        b"   2",
        chars(tm.q_name, 48),
        chars(tm.process_name, 48),
        chars(tm.trigger_data, 64),
        b"    ",
        chars(tm.appl_id, 256),
        chars(tm.env_data, 128),
        chars(tm.user_data, 128),
        chars(q_mgr_name, 48),
    )
    return raw.decode()


def unpack_tmc2(text: str) -> tuple[TriggerMessage, str]:
    """Returns the trigger message and the queue manager's name in an MQTMC2; a shorter one is taken as blank there.

    Raises TmcError (2191) when it is none.
    """
    raw = text.encode()
    if raw[:4] != b"TMC ":
        raise TmcError(f"not an MQTMC2: it begins with {raw[:4]!r}")
    fields = _TMC2.unpack(raw[:TMC2_LENGTH].ljust(TMC2_LENGTH))
    _, _, q_name, process, trigger_data, _, appl_id, env, user, q_mgr_name = fields
    tm = TriggerMessage(
        q_name=text_of(q_name),
        process_name=text_of(process),
        trigger_data=text_of(trigger_data),
        appl_id=text_of(appl_id),
        env_data=text_of(env),
        user_data=text_of(user),
    )
    return tm, text_of(q_mgr_name)


class DeadLetterHeader(msgspec.Struct, frozen=True, kw_only=True):
    """MQDLH: why a message lies on the dead-letter queue, where it was meant to go, and what follows."""

    reason: int
    dest_q_name: str
    dest_q_mgr_name: str
    encoding: int = ENCODING_NATIVE
    coded_char_set_id: int = CCSID_UTF8
    format: str = FORMAT_NONE
    put_appl_type: int = 0
    put_appl_name: str = ""
    put_date: str = ""
    put_time: str = ""


def pack_dlh(header: DeadLetterHeader) -> bytes:
    """Packs an MQDLH version 1, 172 bytes."""
    return _DLH.pack(
        b"DLH ",
        1,
        header.reason,
        chars(header.dest_q_name, 48),
        chars(header.dest_q_mgr_name, 48),
        header.encoding,
        header.coded_char_set_id,
        chars(header.format, 8),
        header.put_appl_type,
        chars(header.put_appl_name, 28),
        chars(header.put_date, 8),
        chars(header.put_time, 8),
    )


def unpack_dlh(data: bytes, encoding: int = ENCODING_NATIVE) -> tuple[DeadLetterHeader, bytes]:
    """Returns a dead letter's header and the message behind it; ``encoding`` is its descriptor's. Raises DlhError.

    What the header says of the data behind it, Encoding among that, is about the data alone.
    """
    if len(data) < DLH_LENGTH or data[:4] != b"DLH ":
        raise DlhError("the message does not begin with an MQDLH")
    layout = _DLH_BIG if integer_order(encoding) == "big" else _DLH
    _, _, reason, q, qm, of_data, ccsid, fmt, appl_type, appl_name, date, time = layout.unpack(data[:DLH_LENGTH])
    header = DeadLetterHeader(
        reason=reason,
        dest_q_name=text_of(q),
        dest_q_mgr_name=text_of(qm),
        encoding=of_data,
        coded_char_set_id=ccsid,
        format=text_of(fmt),
        put_appl_type=appl_type,
        put_appl_name=text_of(appl_name),
        put_date=text_of(date),
        put_time=text_of(time),
    )
    return header, data[DLH_LENGTH:]


_DAY_MS = 86_400_000


def moment_of(date: str, time: str) -> int:
    """Returns milliseconds since 1970 of PutDate (YYYYMMDD) and PutTime (HHMMSSTH), GMT; 0 where they are none."""
    digits = date + time
    if len(date) != 8 or len(time) != 8 or not (digits.isascii() and digits.isdigit()):
        return 0
    year, month, day = int(date[:4]), int(date[4:6]), int(date[6:])
    hours, minutes, seconds, hundredths = (int(time[at : at + 2]) for at in range(0, 8, 2))
    if not (1 <= month <= 12 and 1 <= day <= 31 and hours < 24 and minutes < 60 and seconds < 60):
        return 0
    era, year_of_era = divmod(year - (month <= 2), 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    days = era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468
    return max(0, days * _DAY_MS + ((hours * 60 + minutes) * 60 + seconds) * 1000 + hundredths * 10)


def date_and_time(ms: int) -> tuple[str, str]:
    """Returns PutDate (YYYYMMDD) and PutTime (HHMMSSTH), GMT, of milliseconds since 1970.

    By the civil-calendar arithmetic, since nothing here may ask a clock or a time zone.
    """
    days, rest = divmod(ms, _DAY_MS)
    era_day = days + 719_468
    era, day_of_era = divmod(era_day, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    year = year_of_era + era * 400 + (month <= 2)
    seconds, millis = divmod(rest, 1000)
    clock = f"{seconds // 3600:02d}{seconds // 60 % 60:02d}{seconds % 60:02d}{millis // 10:02d}"
    return f"{year:04d}{month:02d}{day:02d}", clock


def control_character(trigger: TriggerMessage) -> str:
    """Returns which field of a trigger message holds a NUL or another control character, as a sentence; "" for none."""
    for name in trigger.__struct_fields__:
        value = getattr(trigger, name)
        if isinstance(value, str) and any(unicodedata.category(c) == "Cc" for c in value):
            return f"{name} holds a control character: {value!r}"
    return ""
