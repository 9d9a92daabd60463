"""Between bodies and values: the greeting, then calls one way and replies the other.

Every value is a msgpack array that begins with its tag. Decoding is typed: what comes out is the very struct the
rules take, or ProtocolError. Fields behind the ones we know are ignored, so either side may be the newer one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn, get_args

import msgspec
from msgspec import msgpack

from trigmon.mq.calls import AnyCall, Call
from trigmon.mq.replies import (
    AnyReply,
    BackupPart,
    Refused,
    Reply,
    ReservedRows,
    WereBrowsed,
    WereGot,
    WereReserved,
)
from trigmon.wire.frames import DEFAULT_LIMIT, Body, ProtocolError, frame, set_length

PROTOCOL_VERSION = 1


class Hello(msgspec.Struct, frozen=True, array_like=True, kw_only=True, tag="hello"):
    """The client's first frame. ``client_id`` names it to ``Outcome`` after this connection has gone.

    ``run_id`` is the run a monitor started this program for, or nothing. ``user`` and ``password`` are sent over TLS
    alone, by a client without a certificate. So is ``ticket``, in their place, by a task that reads one reservation.
    """

    protocol: int
    client_id: str = ""
    application: str = ""
    pid: int = 0
    run_id: str = ""
    user: str = ""
    password: str = ""
    ticket: str = ""

    def __repr__(self) -> str:
        """Returns the hello without its password and its ticket, for logs and tracebacks."""
        return f"Hello({self.application!r}, pid={self.pid}, user={self.user!r})"


class Welcome(msgspec.Struct, frozen=True, array_like=True, kw_only=True, tag="welcome"):
    """The server's first frame. ``administrator`` says whether commands that change objects are allowed.

    ``frame_limit`` is the longest body, in bytes, that it will read; ``monitor`` says whether runs may be recorded.
    """

    protocol: int
    q_mgr_name: str
    server_version: str = ""
    administrator: bool = False
    frame_limit: int = DEFAULT_LIMIT
    monitor: bool = False


class Request(msgspec.Struct, frozen=True, array_like=True):
    """A call and its number, which the client counts up from 1."""

    sequence: int
    call: AnyCall


class Response(msgspec.Struct, frozen=True, array_like=True):
    """The reply to the call of that number."""

    sequence: int
    reply: AnyReply


class UnknownCall(Call, frozen=True, array_like=True, kw_only=True):
    """A call of a later protocol. It is answered with :func:`not_supported`, and the connection goes on."""

    name: str


class Numbered(msgspec.Struct, frozen=True, array_like=True):
    """What a frame with an unreadable call or reply may still say: its number and its tag."""

    sequence: int
    tagged: list[Any]


LONG_REPLIES: Final = frozenset({WereGot, WereBrowsed, WereReserved, ReservedRows, BackupPart})
"""Replies of many messages, or of many bytes, which :func:`encode_long_response` is for."""
CALL_TAGS: Final = frozenset(str(kind.__struct_config__.tag) for kind in get_args(AnyCall))
REPLY_TAGS: Final = frozenset(str(kind.__struct_config__.tag) for kind in get_args(AnyReply))


def _no_extension(code: int, _: memoryview) -> NoReturn:
    raise ValueError(f"an extension of type {code}, where only plain values are spoken")


_encode = msgpack.Encoder().encode
_encode_into = msgpack.Encoder().encode_into
_decode_request = msgpack.Decoder(Request, ext_hook=_no_extension).decode
_decode_response = msgpack.Decoder(Response, ext_hook=_no_extension).decode
_decode_numbered = msgpack.Decoder(Numbered, ext_hook=_no_extension).decode
_decode_hello = msgpack.Decoder(Hello).decode
_decode_greeting: Callable[[Body], Welcome | Refused] = msgpack.Decoder(Welcome | Refused).decode
_decode_list = msgpack.Decoder(list[Any]).decode

# What decoding hostile bytes may raise: wrong types and broken msgpack, text that is no UTF-8, nesting without end,
# and values that cannot be keys of a map.
_MALFORMED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError, TypeError)


def encode_hello(hello: Hello) -> bytes:
    """Returns the client's first frame, length and all."""
    return frame(_encode(hello))


def encode_welcome(greeting: Welcome | Refused) -> bytes:
    """Returns the server's first frame: a welcome, or why there is none."""
    return frame(_encode(greeting))


def encode_request(sequence: int, call: Call) -> bytes:
    """Returns a call as a frame.

    Raises TypeError or ValueError for values no frame can hold, before anything is sent.
    """
    return frame(_encode((sequence, call)))


def encode_checked_request(sequence: int, call: Call) -> bytes:
    """Encodes as :func:`encode_request` a call whose values are unchecked: it is decoded as the other side will.

    Raises TypeError or ValueError where that would be the end of the connection.
    """
    data = encode_request(sequence, call)
    try:
        decode_request(memoryview(data)[4:])
    except ProtocolError as error:
        raise TypeError(str(error)) from None
    return data


def encode_response(sequence: int, reply: Reply) -> bytes:
    """Returns a reply as a frame."""
    return frame(_encode((sequence, reply)))


def encode_long_response(sequence: int, reply: Reply) -> bytearray:
    """Returns a reply as a frame, as :func:`encode_response`, in a buffer of its own: it is copied once less."""
    buffer = bytearray(4)
    _encode_into((sequence, reply), buffer, len(buffer))
    set_length(buffer)
    return buffer


def decode_request(body: Body) -> tuple[int, Call]:
    """Returns the number and the call in a body. Raises ProtocolError.

    A call of an unknown name comes out as :class:`UnknownCall`: the frame is sound, only newer than we are.
    """
    try:
        request = _decode_request(body)
    except _MALFORMED as error:
        sequence, tag = _numbered(body, error)
        if tag not in CALL_TAGS:
            return sequence, UnknownCall(name=tag)
        raise ProtocolError(f"the call {tag!r} is malformed: {error}", sequence) from None
    return request.sequence, request.call


def decode_response(body: Body) -> tuple[int, AnyReply]:
    """Returns the number and the reply in a body. Raises ProtocolError."""
    try:
        response = _decode_response(body)
    except _MALFORMED as error:
        sequence, tag = _numbered(body, error)
        what = "malformed" if tag in REPLY_TAGS else "unknown"
        raise ProtocolError(f"the reply {tag!r} is {what}: {error}", sequence) from None
    return response.sequence, response.reply


def decode_hello(body: Body) -> Hello:
    """Returns the client's greeting. Raises ProtocolError.

    A hello of another version is read as far as its version, the one field that will always stand first.
    """
    try:
        return _decode_hello(body)
    except _MALFORMED as error:
        fields = _loosely(body, error)
        if len(fields) > 1 and fields[0] == "hello" and isinstance(fields[1], int) and fields[1] != PROTOCOL_VERSION:
            return Hello(protocol=fields[1])
        raise ProtocolError(f"no hello: {error}") from None


def decode_welcome(body: Body) -> Welcome | Refused:
    """Returns the server's greeting. Raises ProtocolError."""
    try:
        return _decode_greeting(body)
    except _MALFORMED as error:
        raise ProtocolError(f"no welcome: {error}") from None


def not_supported(call: UnknownCall) -> Refused:
    """Returns the answer to a call that this version does not know."""
    return Refused(reason=2298, about=f"this queue manager does not know the call {call.name!r}")


def other_version(hello: Hello, server_version: str) -> Refused:
    """Returns the answer to a hello of another protocol version."""
    return Refused(
        reason=2298,
        about=f"the client speaks protocol {hello.protocol}, "
        f"and trigmon {server_version} speaks protocol {PROTOCOL_VERSION}",
    )


def broken_off(error: ProtocolError) -> Refused:
    """Returns the last answer to a side that left the protocol; the connection ends behind it."""
    return Refused(reason=2009, about=f"outside the protocol: {error}")


def _numbered(body: Body, error: BaseException) -> tuple[int, str]:
    """Returns the number and the tag of a frame that could not be read as a whole. Raises ProtocolError."""
    try:
        numbered = _decode_numbered(body)
    except _MALFORMED:
        raise ProtocolError(f"neither a call nor a reply: {error}") from None
    if not numbered.tagged or not isinstance(numbered.tagged[0], str):
        raise ProtocolError(f"it has no name: {error}", numbered.sequence)
    return numbered.sequence, numbered.tagged[0]


def _loosely(body: Body, error: BaseException) -> list[Any]:
    try:
        return _decode_list(body)
    except _MALFORMED:
        raise ProtocolError(f"no hello: {error}") from None
