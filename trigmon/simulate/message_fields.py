"""Message descriptors in a scenario: the fields a put may give, and those of a message got that may be compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from trigmon.mq.descriptors import EXPIRY_UNLIMITED, PRIORITY_AS_Q_DEF, MessageDescriptor
from trigmon.mq.enums import ApplType, Feedback, MsgFlag, MsgType, Persistence, ReportOption, bits_by_word
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import WasGot
from trigmon.simulate.mapping import Fields, Place, Reader, flags, mq_id, nearest, number, shown, text


def numbered(words: dict[str, int]) -> Reader[int]:
    """Returns a reader of an enumerated field: the constant's tail in lower case, or IBM's number, any number."""

    def read(value: Any, place: Place) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            return int(value)
        if isinstance(value, str) and value.lower() in words:
            return words[value.lower()]
        raise place.error(f"{place.path[-1]} does not know {shown(value)}{nearest(value, words)}")

    return read


def status(value: Any, place: Place) -> str:
    """Returns a group's or a segment's status: one character."""
    status = text(value, place)
    if status not in (" ", "G", "S", "L"):
        raise place.error(f"{place.path[-1]} is ' ', G, S or L, not {shown(value)}")
    return status


def _words(*kinds: type[Any]) -> dict[str, int]:
    return {member.name.lower(): int(member) for kind in reversed(kinds) for member in kind}


msg_type = numbered(_words(MsgType))
# A report's feedback is a feedback code or the reason why.
feedback = numbered(_words(Feedback, Reason))
persistence = numbered(_words(Persistence))
appl_type = numbered(_words(ApplType))
expiry = numbered({"unlimited": EXPIRY_UNLIMITED})
priority = numbered({"as_q_def": PRIORITY_AS_Q_DEF})
report = flags(bits_by_word(ReportOption))
msg_flags = flags(bits_by_word(MsgFlag))

GIVEN: dict[str, Reader[Any]] = {
    "msg_type": msg_type,
    "expiry": expiry,
    "feedback": feedback,
    "encoding": number,
    "coded_char_set_id": number,
    "format": text,
    "priority": priority,
    "persistence": persistence,
    "msg_id": mq_id,
    "correl_id": mq_id,
    "reply_to_q": text,
    "reply_to_q_mgr": text,
    "report": report,
    "group_id": mq_id,
    "msg_seq_number": number,
    "offset": number,
    "msg_flags": msg_flags,
    "original_length": number,
    "user_identifier": text,
    "appl_identity_data": text,
    "put_appl_type": appl_type,
    "put_appl_name": text,
    "appl_origin_data": text,
    "traceparent": text,
}
"""The descriptor fields of a put."""

MATCHED: dict[str, Reader[Any]] = {
    name: GIVEN[name] for name in ("msg_id", "correl_id", "group_id", "msg_seq_number", "offset")
}
"""The fields that a get may match."""

RETURNED: dict[str, Reader[Any]] = {
    "data": text,
    "length": number,
    **GIVEN,
    "backout_count": number,
    "group_status": status,
    "segment_status": status,
}
"""What ``returns`` may name."""


def read_descriptor(fields: Fields) -> MessageDescriptor:
    """Returns the descriptor that the fields of a put make; what they leave open is MQMD's default."""
    given: dict[str, Any] = {key: fields.take(key, reader, None) for key, reader in GIVEN.items() if key in fields}
    return MessageDescriptor(**given)


def read_returns(value: Any, place: Place) -> dict[str, Any]:
    """Returns what a message got is compared with."""
    fields = Fields(value, place, "returns", RETURNED)
    return {key: fields.take(key, reader, None) for key, reader in RETURNED.items() if key in fields}


def returned(key: str, message: WasGot) -> object:
    """Returns what a message got holds under a key of ``returns``, as its reader would have read it.

    ``length`` is MQGET's DataLength: the whole message's, also where the data was cut.
    """
    special: dict[str, Callable[[], object]] = {
        "data": lambda: _decoded(message.data),
        "length": lambda: message.data_length,
        "format": lambda: message.descriptor.format.rstrip(),
        "group_status": lambda: message.group_status,
        "segment_status": lambda: message.segment_status,
    }
    if key in special:
        return special[key]()
    return getattr(message.descriptor, key)


def shown_value(value: object) -> str:
    """Returns a compared value for a person: ids without their padding."""
    if isinstance(value, bytes):
        return repr(_decoded(value.rstrip(b"\0")))
    return shown(value)


def _decoded(raw: bytes) -> str:
    return raw.decode(errors="backslashreplace")
