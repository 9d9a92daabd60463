"""The words an application may say, and what they are in a call: option bits and descriptor fields.

Words are SCENARIOS' and the MQMD's: ``syncpoint=True``, ``priority=7``, ``persistence="persistent"``. A word of MQ
that trigmon will know later is refused with 2298 and its name, never silently dropped; a word that is none is a
TypeError, as for any Python call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, Protocol, TypedDict

from trigmon.client.field_values import READERS
from trigmon.mq.descriptors import CCSID_UTF8, FORMAT_STRING, MessageDescriptor
from trigmon.mq.enums import (
    CloseOption,
    Feedback,
    GetOption,
    MatchOption,
    MsgFlag,
    MsgType,
    ObjectType,
    OpenOption,
    Persistence,
    PutOption,
    ReportOption,
    bits_by_word,
    read,
)
from trigmon.mq.errors import (
    FunctionNotSupported,
    ObjectTypeError,
    OptionsError,
)

Data = bytes | bytearray | memoryview | str
Id = bytes | str
Words = str | Iterable[str]


class Opened(Protocol):
    """Something that is open, by its handle."""

    handle: int


class PutWords(TypedDict, total=False):
    """What may stand beside the data of a put. ``expiry_tenths`` and ``expiry`` are the same field.

    ``context`` is the queue whose saved context is passed on: the one that was opened with ``save_all_context``.
    """

    syncpoint: bool
    no_syncpoint: bool
    new_msg_id: bool
    new_correl_id: bool
    logical_order: bool
    no_context: bool
    default_context: bool
    pass_identity_context: bool
    pass_all_context: bool
    set_identity_context: bool
    set_all_context: bool
    fail_if_quiescing: bool
    priority: int | None
    persistence: Persistence | str | int | None
    expiry_tenths: int | None
    expiry: int | None
    msg_type: MsgType | str | int | None
    feedback: Feedback | str | int | None
    format: str | None
    encoding: int | None
    coded_char_set_id: int | None
    msg_id: Id | None
    correl_id: Id | None
    reply_to_q: str | None
    reply_to_q_mgr: str | None
    report: ReportOption | Words | None
    group_id: Id | None
    msg_seq_number: int | None
    offset: int | None
    msg_flags: MsgFlag | Words | None
    original_length: int | None
    user_identifier: str | None
    accounting_token: bytes | None
    appl_identity_data: str | None
    put_appl_type: int | None
    put_appl_name: str | None
    put_ms: int | None
    appl_origin_data: str | None
    traceparent: str | None
    context: Opened | int | None


class GetWords(TypedDict, total=False):
    """The options of a get. ``wait`` without an interval waits as long as it takes."""

    wait: bool
    no_wait: bool
    syncpoint: bool
    no_syncpoint: bool
    browse_first: bool
    browse_next: bool
    browse_msg_under_cursor: bool
    msg_under_cursor: bool
    lock: bool
    unlock: bool
    logical_order: bool
    complete_msg: bool
    all_msgs_available: bool
    all_segments_available: bool
    mark_skip_backout: bool
    syncpoint_if_persistent: bool
    accept_truncated_msg: bool
    fail_if_quiescing: bool


class Match(TypedDict, total=False):
    """The fields a message must agree in to be got."""

    msg_id: Id
    correl_id: Id
    group_id: Id
    msg_seq_number: int
    offset: int


_OPEN, _CLOSE, _PUT, _GET = map(bits_by_word, (OpenOption, CloseOption, PutOption, GetOption))
_MATCH = bits_by_word(MatchOption)
WAIT, SYNCPOINT = int(GetOption.WAIT), int(GetOption.SYNCPOINT)
LEAVES = int(GetOption.BROWSE_FIRST | GetOption.BROWSE_NEXT | GetOption.BROWSE_MSG_UNDER_CURSOR | GetOption.UNLOCK)
"""A get with one of these takes no message."""
IN_UNIT = int(GetOption.SYNCPOINT | GetOption.SYNCPOINT_IF_PERSISTENT)
"""A get with one of these names its unit of work; a put, with SYNCPOINT."""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# MQ's words that have no meaning here yet.
_LATER_OPEN = _names("""
    alternate_user_authority bind_on_open bind_not_fixed bind_on_group bind_as_q_def read_ahead no_read_ahead
    read_ahead_as_q_def resolve_names resolve_local_q co_op
""")
_LATER_PUT = _names("""
    alternate_user_authority async_response sync_response response_as_q_def resolve_local_q
""")
_LATER_GET = _names("""
    convert set_signal mark_browse_handle mark_browse_co_op unmark_browse_co_op
    unmark_browse_handle unmarked_browse_msg no_properties properties_in_handle
""")
_LATER_MATCH = _names("msg_token")


def open_bits(words: Iterable[str | int]) -> int:
    """Returns what an object is opened for. Raises OptionsError."""
    return _all_bits("open", words, _OPEN, _LATER_OPEN)


def close_bits(words: Iterable[str | int]) -> int:
    """Returns how an object is closed. Raises OptionsError."""
    return _all_bits("close", words, _CLOSE, frozenset())


def get_bits(given: Mapping[str, Any]) -> int:
    """Returns the options of a get as bits."""
    bits = 0
    for name, value in given.items():
        bit = _GET.get(name)
        if bit is None:
            if name in _LATER_GET and not value:
                continue
            _unknown("get", name, _GET, _LATER_GET)
        if _is_on(name, value):
            bits |= bit
    return bits


def match_parts(match: Match | None) -> dict[str, Any]:
    """Returns the match options of a call, and the fields they are about."""
    if not match:
        return {}
    parts: dict[str, Any] = {"match": 0}
    for name, value in match.items():
        if name not in _MATCH:
            _unknown("match", name, _MATCH, _LATER_MATCH)
        parts["match"] |= _MATCH[name]
        parts[name] = READERS[name](name, value)
    return parts


_PLAIN = MessageDescriptor()
_TEXT = MessageDescriptor(format=FORMAT_STRING, coded_char_set_id=CCSID_UTF8)


def put_parts(given: Mapping[str, Any], is_text: bool) -> tuple[MessageDescriptor, int]:
    """Returns the descriptor and the option bits of a put; text has format MQSTR and UTF-8's number by default."""
    if not given:
        return _TEXT if is_text else _PLAIN, 0
    bits = 0
    fields: dict[str, Any] = {"format": FORMAT_STRING, "coded_char_set_id": CCSID_UTF8} if is_text else {}
    for name, value in given.items():
        bit = _PUT.get(name)
        if bit is not None:
            if _is_on(name, value):
                bits |= bit
            continue
        reader = READERS.get(name)
        if reader is not None:
            if value is not None:
                fields["expiry" if name == "expiry_tenths" else name] = reader(name, value)
        elif name != "context" and (name not in _LATER_PUT or value):
            _unknown("put", name, [*_PUT, *READERS], _LATER_PUT)
    if "expiry" in given and "expiry_tenths" in given:
        raise TypeError("put takes expiry or expiry_tenths, not both: they are one field")
    return MessageDescriptor(**fields) if fields else _PLAIN, bits


def handle_of(given: PutWords) -> int:
    """Returns the handle that a context comes from, 0 for none."""
    context = given.get("context")
    return context if isinstance(context, int) else context.handle if context is not None else 0


def as_bytes(data: Data) -> bytes:
    """Returns the bytes of a message's data. Raises TypeError for what is neither bytes nor text."""
    if isinstance(data, bytes):
        return data
    if isinstance(data, str):
        return data.encode()
    if isinstance(data, (bytearray, memoryview)):
        return bytes(data)
    raise TypeError(f"a message's data is bytes or text, not {type(data).__name__}")


def object_type(value: ObjectType | str | int) -> str:
    """Returns the name of an object's type as a call says it; ``queue`` is a queue of any kind."""
    if isinstance(value, str) and value.lower() in ("queue", "q"):
        return "queue"
    try:
        return read(ObjectType, value).name
    except ValueError as error:
        raise ObjectTypeError(str(error)) from None


def _all_bits(verb: str, words: Iterable[str | int], known: Mapping[str, int], later: frozenset[str]) -> int:
    bits = 0
    for name in words:
        if isinstance(name, int):
            bits |= int(name)
        elif (bit := known.get(name.lower())) is not None:
            bits |= bit
        elif name.lower() in later:
            _not_yet(verb, name)
        else:
            raise OptionsError(f"{verb}: {name!r} is none of {', '.join(known)}")
    return bits


def _not_yet(verb: str, name: str) -> NoReturn:
    raise FunctionNotSupported(f"{name}: this word of {verb} comes with a later release")


def _unknown(verb: str, name: str, known: Iterable[str], later: frozenset[str]) -> NoReturn:
    if name in later:
        _not_yet(verb, name)
    import difflib  # only now: it costs more than the rest of the client

    near = difflib.get_close_matches(name, known, 1)
    raise TypeError(f"{verb} takes no {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def _is_on(name: str, value: Any) -> bool:
    """Returns what an option's word is set to. Raises TypeError for what is neither on nor off, such as an interval."""
    if value is True or value is False or value is None:
        return bool(value)
    hint = "; how long to wait is wait_interval_ms, in milliseconds" if name == "wait" else ""
    raise TypeError(f"{name} is True or False, not {value!r}{hint}")
