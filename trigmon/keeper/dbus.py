"""D-Bus messages, written and read: the part of the specification that systemd's calls need. Pure; nothing is sent.

A value is written by its signature: numbers, texts and booleans as Python's own, an array as a list (of bytes as
``bytes``, of entries as a dictionary), a structure as a tuple, a variant as the pair of its signature and its value; a
variant that is read is its value alone. Written here because the packages for it are either bindings to libraries or
bring asyncio, and a keeper is started while a launch waits.

Source: https://dbus.freedesktop.org/doc/dbus-specification.html, "Marshaling" and "Message Protocol".
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

CALL, RETURN, ERROR, SIGNAL = 1, 2, 3, 4
"""Types of messages."""

_NO_AUTO_START = 2
_FIELDS = {"path": (1, "o"), "interface": (2, "s"), "member": (3, "s"), "destination": (6, "s"), "signature": (8, "g")}
_PATH, _INTERFACE, _MEMBER, _ERROR_NAME, _REPLY_TO, _SIGNATURE = 1, 2, 3, 4, 5, 8
_NUMBERS = {"y": "B", "b": "I", "n": "h", "q": "H", "i": "i", "u": "I", "x": "q", "t": "Q", "d": "d", "h": "I"}
_ALIGNMENT = {"y": 1, "g": 1, "v": 1, "n": 2, "q": 2, "x": 8, "t": 8, "d": 8, "(": 8, "{": 8}
_FIXED = 16
_LONGEST = 1 << 27


class Message(NamedTuple):
    """A message that was read. ``reply_to`` is the serial number that a return or an error answers."""

    kind: int
    body: tuple[Any, ...]
    path: str = ""
    interface: str = ""
    member: str = ""
    error: str = ""
    reply_to: int = 0
    serial: int = 0


def call(serial: int, path: str, interface: str, member: str, signature: str = "", *body: Any) -> bytes:
    """Returns a call of systemd's manager or of one of its units, ready to send."""
    names = {
        "path": path,
        "interface": interface,
        "member": member,
        "destination": "org.freedesktop.systemd1",
        "signature": signature,
    }
    fields = [(_FIELDS[name][0], (_FIELDS[name][1], value)) for name, value in names.items() if value]
    written = bytearray()
    for part, value in zip(parts(signature), body, strict=True):
        _write(written, part, value)
    message = bytearray()
    for part, value in zip("yyyyuu", (ord("l"), CALL, _NO_AUTO_START, 1, len(written), serial), strict=True):
        _write(message, part, value)
    _write(message, "a(yv)", fields)
    _pad(message, 8)
    return bytes(message + written)


class Messages:
    """Reads D-Bus messages from bytes as they are received. Raises ValueError for what is none."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Message]:
        """Returns the messages that are complete with these bytes."""
        self._rest += data
        read = []
        while len(self._rest) >= _FIXED:
            length = _length(self._rest)
            if len(self._rest) < length:
                break
            read.append(parse(self._rest[:length]))
            self._rest = self._rest[length:]
        return read


def parse(raw: bytes) -> Message:
    """Returns the message that these bytes are. Raises ValueError."""
    try:
        order = _order(raw)
        reader = _Reader(raw, order)
        _, kind, _, _, _, serial = (reader.read(part) for part in "yyyyuu")
        fields = dict(reader.read("a(yv)"))
        reader.align(8)
        body = tuple(reader.read(part) for part in parts(fields.get(_SIGNATURE, "")))
    except (struct.error, IndexError, KeyError) as error:
        raise ValueError(f"not a message of D-Bus: {error}") from error
    return Message(
        kind,
        body,
        path=fields.get(_PATH, ""),
        interface=fields.get(_INTERFACE, ""),
        member=fields.get(_MEMBER, ""),
        error=fields.get(_ERROR_NAME, ""),
        reply_to=fields.get(_REPLY_TO, 0),
        serial=serial,
    )


def parts(signature: str) -> list[str]:
    """Returns a signature's complete types, each for one value."""
    found = []
    while signature:
        end = _end_of_type(signature, 0)
        found.append(signature[:end])
        signature = signature[end:]
    return found


def _length(raw: bytes) -> int:
    body, _, fields = struct.unpack_from(_order(raw) + "III", raw, 4)
    length = _FIXED + (fields + 7) // 8 * 8 + body
    if length > _LONGEST:
        raise ValueError(f"a message of {length} bytes")
    return int(length)


def _order(raw: bytes) -> str:
    if raw[0] not in b"lB":
        raise ValueError("not a message of D-Bus: neither little nor big endian")
    return "<" if raw[0] == ord("l") else ">"


def _end_of_type(signature: str, start: int) -> int:
    kind = signature[start]
    if kind == "a":
        return _end_of_type(signature, start + 1)
    if kind not in "({":
        return start + 1
    at = start + 1
    while signature[at] not in ")}":
        at = _end_of_type(signature, at)
    return at + 1


def _pad(out: bytearray, alignment: int) -> None:
    out += bytes(-len(out) % alignment)


def _write(out: bytearray, kind: str, value: Any) -> None:
    _pad(out, _ALIGNMENT.get(kind[0], 4))
    if kind in _NUMBERS:
        out += struct.pack("<" + _NUMBERS[kind], value)
    elif kind in "sog":
        raw = value.encode()
        if b"\0" in raw:
            raise ValueError("a text of D-Bus holds no NUL")
        out += struct.pack("<B" if kind == "g" else "<I", len(raw)) + raw + b"\0"
    elif kind == "v":
        _write(out, "g", value[0])
        _write(out, *value)
    elif kind[0] == "a":
        _write_array(out, kind[1:], value)
    else:
        for part, member in zip(parts(kind[1:-1]), value, strict=True):
            _write(out, part, member)


def _write_array(out: bytearray, kind: str, value: Any) -> None:
    at = len(out)
    out += bytes(4)
    _pad(out, _ALIGNMENT.get(kind[0], 4))
    start = len(out)
    for member in value.items() if kind[0] == "{" else value:
        _write(out, kind, member)
    struct.pack_into("<I", out, at, len(out) - start)


class _Reader:
    """Reads values, one after the other."""

    def __init__(self, raw: bytes, order: str) -> None:
        self._raw = raw
        self._order = order
        self._at = 0

    def align(self, alignment: int) -> None:
        self._at += -self._at % alignment

    def read(self, kind: str) -> Any:
        self.align(_ALIGNMENT.get(kind[0], 4))
        if kind in _NUMBERS:
            number = self._number(_NUMBERS[kind])
            return bool(number) if kind == "b" else number
        if kind in "sog":
            length = self._number("B" if kind == "g" else "I")
            return self._bytes(length + 1)[:-1].decode(errors="surrogateescape")
        if kind == "v":
            return self.read(self.read("g"))
        if kind[0] == "a":
            return self._array(kind[1:])
        return tuple(self.read(part) for part in parts(kind[1:-1]))

    def _array(self, kind: str) -> Any:
        length = self._number("I")
        self.align(_ALIGNMENT.get(kind[0], 4))
        if kind == "y":
            return self._bytes(length)
        end = self._at + length
        members = []
        while self._at < end:
            members.append(self.read(kind))
        return dict(members) if kind[0] == "{" else members

    def _number(self, code: str) -> Any:
        code = self._order + code
        (number,) = struct.unpack_from(code, self._raw, self._at)
        self._at += struct.calcsize(code)
        return number

    def _bytes(self, length: int) -> bytes:
        found = self._raw[self._at : self._at + length]
        if len(found) < length:
            raise ValueError("a message of D-Bus that is cut short")
        self._at += length
        return found
