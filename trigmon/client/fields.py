"""Values that an application says, read into what a call may hold: a number, a text, an id, a word of an enumeration.

Each reader takes the field's name and its value, and raises the field's own MQError for what does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import Any

from trigmon.mq.descriptors import padded_id
from trigmon.mq.enums import Feedback, MsgType, Persistence, read, word
from trigmon.mq.errors import (
    CorrelIdError,
    ExpiryError,
    FeedbackError,
    FormatError,
    MdError,
    MQError,
    MsgIdError,
    MsgTypeError,
    PersistenceError,
    PriorityError,
)


def whole(kind: type[MQError], said: str, value: Any) -> int:
    """A whole number of 32 bits, also where it comes as a float or as another library's integer."""
    number = value
    if isinstance(value, float) and value.is_integer():
        number = int(value)
    elif not isinstance(value, (int, str, bytes)) and hasattr(value, "__index__"):
        number = value.__index__()
    if not isinstance(number, int) or isinstance(number, bool) or not -(2**31) <= number < 2**31:
        raise kind(f"{said} must be a whole number of 32 bits, not {value!r}")
    return int(number)


def _number(kind: type[MQError]) -> Callable[[str, Any], int]:
    return partial(whole, kind)


def _enumerated(enum: type[IntEnum], kind: type[MQError], open_ended: bool) -> Callable[[str, Any], int]:
    """A reader of a word, a member or a number; an open-ended field has numbers of the application's own."""
    number = _number(kind)

    def reader(said: str, value: Any) -> int:
        if open_ended and isinstance(value, int) and not isinstance(value, bool):
            return number(said, value)
        try:
            return int(read(enum, value))
        except ValueError:
            words = ", ".join(word(member) for member in enum)
            raise kind(f"{said} {value!r} is none of {words}") from None

    return reader


def _text(kind: type[MQError]) -> Callable[[str, Any], str]:
    def reader(said: str, value: Any) -> str:
        if not isinstance(value, str):
            raise kind(f"{said} must be text, not {type(value).__name__}")
        return value.rstrip(" ")

    return reader


def _id(kind: type[MQError]) -> Callable[[str, Any], bytes]:
    def reader(said: str, value: Any) -> bytes:
        if not isinstance(value, (str, bytes, bytearray, memoryview)):
            raise kind(f"{said} must be text or bytes, not {type(value).__name__}")
        try:
            return padded_id(value if isinstance(value, str) else bytes(value))
        except ValueError as error:
            raise kind(f"{said}: {error}") from None

    return reader


msg_id, correl_id = _id(MsgIdError), _id(CorrelIdError)
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
    "msg_id": msg_id,
    "correl_id": correl_id,
    "reply_to_q": _text(MdError),
    "reply_to_q_mgr": _text(MdError),
}
"""How each field of a descriptor is read that an application may set."""
