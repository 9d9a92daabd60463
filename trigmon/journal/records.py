"""The format of a journal file: a header, then one record a turn.

``header, padded to 64 bytes | record | record | ...``, all numbers little-endian. A record is
``"turn" | length | number | durable | sum of the entries | sum of the head | entries``. Both sums begin with the salt
of the header, a random number, so neither the records of an earlier use of the file nor bytes of a message pass for a
record.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

VERSION = 1
HEADER_SIZE = 64
NO_HEADER = bytes(HEADER_SIZE)
"""The header of an empty journal: what an orderly stop leaves."""
_MAGIC = b"trigjrnl"
_HEADER = struct.Struct("<8sII")
_SUM = struct.Struct("<I")
_MARK = b"turn"
_HEAD = struct.Struct("<4sIQQI")
HEAD_SIZE = _HEAD.size + _SUM.size
"""Bytes of a record before its entries."""


class UnknownVersionError(Exception):
    """The journal was written by a trigmon whose format this one does not know; the text gives both versions."""


class Record(NamedTuple):
    """The changes of a turn. ``durable``: the journal was synced up to this number when the record was written."""

    number: int
    durable: int
    entries: bytes


class Tail(NamedTuple):
    """The records behind a number, without a gap, and ``lost``: a text about records that are missing, or empty."""

    records: list[Record]
    lost: str = ""


NO_TAIL = Tail([])


def header(salt: int) -> bytes:
    """Returns the header of a journal with this salt, a number of 32 bits."""
    head = _HEADER.pack(_MAGIC, VERSION, salt)
    return (head + _SUM.pack(crc32(head))).ljust(HEADER_SIZE, b"\0")


def salt_in(data: bytes) -> int | None:
    """Returns the salt in the header of a journal; None for an empty one, and for one without a valid header.

    Raises UnknownVersionError.
    """
    if len(data) < HEADER_SIZE or not data.startswith(_MAGIC):
        return None
    _, version, salt = _HEADER.unpack_from(data)
    if version != VERSION:
        raise UnknownVersionError(f"the journal has version {version}; this trigmon knows {VERSION}")
    return int(salt) if _SUM.unpack_from(data, _HEADER.size)[0] == crc32(data[: _HEADER.size]) else None


def record(number: int, durable: int, entries: bytes | bytearray, salt: int) -> bytes:
    """Returns the bytes of a record."""
    head = _HEAD.pack(_MARK, len(entries), number, durable, crc32(entries, salt))
    return b"".join((head, _SUM.pack(crc32(head, salt)), entries))


def records_in(data: bytes) -> Iterator[Record]:
    """Yields the valid records of a journal in order, and passes over all else. Raises UnknownVersionError."""
    salt = salt_in(data)
    at = HEADER_SIZE if salt is not None else len(data)
    while salt is not None and (at := data.find(_MARK, at)) >= 0:
        found = _record_at(data, at, salt)
        if found is not None:
            yield found
        at += 1 if found is None else HEAD_SIZE + len(found.entries)


def _record_at(data: bytes, at: int, salt: int) -> Record | None:
    begin = at + HEAD_SIZE
    if begin > len(data) or _SUM.unpack_from(data, at + _HEAD.size)[0] != crc32(data[at : at + _HEAD.size], salt):
        return None
    _, length, number, durable, entries_sum = _HEAD.unpack_from(data, at)
    entries = data[begin : begin + length]
    return Record(number, durable, entries) if crc32(entries, salt) == entries_sum else None


def tail_of(data: bytes, number: int) -> Tail:
    """Returns the records of a journal behind this number.

    A record may be missing that was never synced: a power cut may have kept a later write and not this one. So the
    journal ends where a record is missing, and something is lost only if a later record knows that it was durable.
    """
    last, tail, gap = number, [], False
    for found in records_in(data):
        if found.number <= number:
            continue
        if not gap and found.number == last + 1:
            tail.append(found)
            last = found.number
            continue
        gap = True
        if found.durable > last:
            return Tail(tail, f"turns {last + 1} to {found.durable} are missing in the journal")
    return Tail(tail)
