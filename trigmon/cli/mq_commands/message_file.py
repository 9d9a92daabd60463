"""The text file of ``dmpmqmsg``: messages with their descriptors, as MQ's utility writes and reads it.

A line that begins with ``*`` is a comment, ``A`` a field of the descriptor by three letters, ``X`` data in hexadecimal,
``S`` data in quotes with ``~`` before a quote or a tilde, ``T`` a line of text. An empty line, or a field behind data,
ends a message. Source: the manual's page on the codes of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from trigmon.mq.descriptors import MessageDescriptor, moment_of

NUMBER, TEXT, BYTES = "number", "text", "bytes"
_FIELDS = {
    "RPT": ("report", NUMBER),
    "MST": ("msg_type", NUMBER),
    "EXP": ("expiry", NUMBER),
    "FDB": ("feedback", NUMBER),
    "ENC": ("encoding", NUMBER),
    "CCS": ("coded_char_set_id", NUMBER),
    "FMT": ("format", TEXT),
    "PRI": ("priority", NUMBER),
    "PER": ("persistence", NUMBER),
    "MSI": ("msg_id", BYTES),
    "COI": ("correl_id", BYTES),
    "BOC": ("backout_count", NUMBER),
    "RTQ": ("reply_to_q", TEXT),
    "RTM": ("reply_to_q_mgr", TEXT),
    "USR": ("user_identifier", TEXT),
    "ACC": ("accounting_token", BYTES),
    "AIX": ("appl_identity_data", BYTES),
    "PAT": ("put_appl_type", NUMBER),
    "PAN": ("put_appl_name", TEXT),
    "AOX": ("appl_origin_data", BYTES),
    "GRP": ("group_id", BYTES),
    "MSQ": ("msg_seq_number", NUMBER),
    "OFF": ("offset", NUMBER),
    "MSF": ("msg_flags", NUMBER),
    "ORL": ("original_length", NUMBER),
}
_OTHER_FORMS = {"AID": ("appl_identity_data", TEXT), "AOD": ("appl_origin_data", TEXT)}
_LENGTHS = {"appl_identity_data": 32, "appl_origin_data": 4, "accounting_token": 32}
WIDTH = 25
"""Bytes of a line of data."""
DATE, TIME = "PTD", "PTT"


class MessageFileError(Exception):
    """A line that is not as the format has it; the text names it."""


def written(descriptor: MessageDescriptor, data: bytes, *, as_text: bool, with_fields: bool = True) -> Iterator[str]:
    """Yields the lines of one message, the empty one behind it among them; ``as_text``: ASCII stands as text."""
    if with_fields:
        yield "A VER 2"
        for code, (name, kind) in _FIELDS.items():
            yield f"A {code} {_shown(name, kind, getattr(descriptor, name))}".rstrip()
            if code == "PAN":
                put = datetime.fromtimestamp(descriptor.put_ms / 1000, UTC)
                yield f"A {DATE} {put:%Y%m%d}"
                yield f"A {TIME} {put:%H%M%S}{put.microsecond // 10_000:02d}"
    for at in range(0, max(1, len(data)), WIDTH):
        yield _data_line(data[at : at + WIDTH], as_text=as_text)
    yield ""


def _shown(name: str, kind: str, value: Any) -> str:
    if kind != BYTES:
        return str(value)
    raw: bytes = value.encode() if isinstance(value, str) else value
    fill = b" " if isinstance(value, str) else b"\0"
    return raw.ljust(_LENGTHS.get(name, 0), fill).hex().upper()


def _data_line(part: bytes, *, as_text: bool) -> str:
    if as_text and part and all(32 <= byte < 127 for byte in part):
        text = part.decode().replace("~", "~~").replace('"', '~"')
        return f'S "{text}"'
    return f"X {part.hex().upper()}"


def read(lines: Iterable[bytes]) -> Iterator[tuple[MessageDescriptor, bytes]]:
    """Yields the messages of a file. Raises MessageFileError."""
    fields: dict[str, Any] = {}
    data: list[bytes] = []
    for number, raw in enumerate(lines, 1):
        line = raw.rstrip(b"\r\n")
        kind, value = line[:1], line[2:]
        if (not line.strip() or kind == b"A") and data:
            yield _message(fields, data)
            fields, data = {}, []
        if not line.strip() or kind == b"*":
            continue
        try:
            if kind == b"A":
                _take_field(fields, value.decode())
            else:
                data.append(_data(kind, value, is_first=not data))
        except ValueError as error:
            raise MessageFileError(f"line {number}: {error}") from None
    if data:
        yield _message(fields, data)


def _take_field(fields: dict[str, Any], text: str) -> None:
    code, _, value = text.partition(" ")
    if code == "VER":
        return
    if code in (DATE, TIME):
        fields[code] = value.strip()
        return
    if code not in _FIELDS and code not in _OTHER_FORMS:
        raise ValueError(f"A {code}: it is no field of a descriptor")
    name, kind = _FIELDS.get(code) or _OTHER_FORMS[code]
    if kind == NUMBER:
        fields[name] = int(value)
    elif kind == TEXT:
        fields[name] = value.rstrip()
    else:
        read_bytes = bytes.fromhex(value)
        is_text = name in ("appl_identity_data", "appl_origin_data")
        fields[name] = read_bytes.decode().rstrip(" \0") if is_text else read_bytes


def _data(kind: bytes, value: bytes, *, is_first: bool) -> bytes:
    if kind == b"X":
        # A column of characters may stand behind the digits.
        return bytes.fromhex(value.partition(b"<")[0].decode())
    if kind == b"T":
        return value if is_first else b"\n" + value
    if kind == b"S":
        text = value.strip()
        if not text:
            return b""
        if len(text) < 2 or text[:1] != b'"' or text[-1:] != b'"':
            raise ValueError("S is followed by text in quotes")
        return re.sub(rb"~(.)", rb"\1", text[1:-1])
    raise ValueError(f"{kind.decode(errors='replace')} begins no line: it is *, A, S, T or X")


def _message(fields: dict[str, Any], data: list[bytes]) -> tuple[MessageDescriptor, bytes]:
    described = {name: value for name, value in fields.items() if name not in (DATE, TIME)}
    put_ms = moment_of(fields.get(DATE, ""), fields.get(TIME, ""))
    return MessageDescriptor(**described | {"put_ms": put_ms, "backout_count": 0}), b"".join(data)
