"""Values that an application says, read into what a call may hold: a number, a text, an id, a word of an enumeration.

Each reader takes the field's name and its value, and raises the field's own MQError for what does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, IntFlag
from functools import partial, reduce
from operator import or_
from typing import Any

from trigmon.mq.descriptors import padded_id
from trigmon.mq.enums import (
    ApplType,
    Feedback,
    MsgFlag,
    MsgType,
    Persistence,
    ReportOption,
    bits_by_word,
    read,
    word,
)
from trigmon.mq.errors import (
    CorrelIdError,
    ExpiryError,
    FeedbackError,
    FormatError,
    GroupIdError,
    MdError,
    MQError,
    MsgFlagsError,
    MsgIdError,
    MsgSeqNumberError,
    MsgTypeError,
    OffsetError,
    OriginalLengthError,
    PersistenceError,
    PriorityError,
    ReportOptionsError,
)


def whole(kind: type[MQError], name: str, value: Any) -> int:
    """Returns a whole number of 32 bits, also where it comes as a float or as another library's integer."""
    number = value
    if isinstance(value, float) and value.is_integer():
        number = int(value)
    elif not isinstance(value, (int, str, bytes)) and hasattr(value, "__index__"):
        number = value.__index__()
    if not isinstance(number, int) or isinstance(number, bool) or not -(2**31) <= number < 2**31:
        raise kind(f"{name} must be a whole number of 32 bits, not {value!r}")
    return int(number)


def _number(kind: type[MQError]) -> Callable[[str, Any], int]:
    return partial(whole, kind)


def _enumerated(enum: type[IntEnum], kind: type[MQError], open_ended: bool) -> Callable[[str, Any], int]:
    """Returns a reader of a word, a member or a number; an open-ended field has numbers of the application's own."""
    number = _number(kind)

    def reader(name: str, value: Any) -> int:
        if open_ended and isinstance(value, int) and not isinstance(value, bool):
            return number(name, value)
        try:
            return int(read(enum, value))
        except ValueError:
            words = ", ".join(word(member) for member in enum)
            raise kind(f"{name} {value!r} is none of {words}") from None

    return reader


def _text(kind: type[MQError]) -> Callable[[str, Any], str]:
    def reader(name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise kind(f"{name} must be text, not {type(value).__name__}")
        return value.rstrip(" ")

    return reader


def _milliseconds(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**53:
        raise MdError(f"{name} must be milliseconds since 1970, not {value!r}")
    return int(value)


def _id(kind: type[MQError]) -> Callable[[str, Any], bytes]:
    def reader(name: str, value: Any) -> bytes:
        if not isinstance(value, (str, bytes, bytearray, memoryview)):
            raise kind(f"{name} must be text or bytes, not {type(value).__name__}")
        try:
            return padded_id(value if isinstance(value, str) else bytes(value))
        except ValueError as error:
            raise kind(f"{name}: {error}") from None

    return reader


def _flags(kind: type[IntFlag], error: type[MQError]) -> Callable[[str, Any], int]:
    """Returns a reader of bits, a word, or several words."""
    bits, number = bits_by_word(kind), whole

    def reader(name: str, value: Any) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            return number(error, name, value)
        words = value.split() if isinstance(value, str) else list(value)
        unknown = [word for word in words if not isinstance(word, str) or word.lower() not in bits]
        if unknown:
            raise error(f"{name} {unknown[0]!r} is none of {', '.join(bits)}")
        return reduce(or_, (bits[word.lower()] for word in words), 0)

    return reader


def _bytes(kind: type[MQError]) -> Callable[[str, Any], bytes]:
    def reader(name: str, value: Any) -> bytes:
        if not isinstance(value, (bytes, bytearray, memoryview)):
            raise kind(f"{name} must be bytes, not {type(value).__name__}")
        return bytes(value)

    return reader


READERS: dict[str, Callable[[str, Any], Any]] = {
    "priority": _number(PriorityError),
    "persistence": _enumerated(Persistence, PersistenceError, open_ended=False),
    "expiry_tenths": _number(ExpiryError),
    "expiry": _number(ExpiryError),
    "msg_type": _enumerated(MsgType, MsgTypeError, open_ended=True),
    "feedback": _enumerated(Feedback, FeedbackError, open_ended=True),
    "format": _text(FormatError),
    "encoding": _number(MdError),
    "coded_char_set_id": _number(MdError),
    "msg_id": _id(MsgIdError),
    "correl_id": _id(CorrelIdError),
    "reply_to_q": _text(MdError),
    "reply_to_q_mgr": _text(MdError),
    "report": _flags(ReportOption, ReportOptionsError),
    "group_id": _id(GroupIdError),
    "msg_seq_number": _number(MsgSeqNumberError),
    "offset": _number(OffsetError),
    "msg_flags": _flags(MsgFlag, MsgFlagsError),
    "original_length": _number(OriginalLengthError),
    "user_identifier": _text(MdError),
    "accounting_token": _bytes(MdError),
    "appl_identity_data": _text(MdError),
    "put_appl_type": _enumerated(ApplType, MdError, open_ended=True),
    "put_appl_name": _text(MdError),
    "put_ms": _milliseconds,
    "appl_origin_data": _text(MdError),
    "traceparent": _text(MdError),
}
"""How each field of a descriptor is read that an application may set."""
