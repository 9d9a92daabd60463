"""The journal of one store: a file of records, one write and one sync a turn.

The store's own database follows without a sync. When it is synced, nothing in the journal is needed any more, and the
file is used again from its beginning.

The file is ``header, padded to 64 bytes | record | record | ...``, all numbers little-endian. A record is
``"turn" | length | number | durable | time | sum of the entries | sum of the head | entries``. Both sums begin with the
salt of the header, a random number, so neither the records of an earlier use of the file nor bytes of a message pass
for a record.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple, Protocol

from trigmon.checksum import crc32
from trigmon.journal.entries import Entries

VERSION = 3
HEADER_SIZE = 64
NO_HEADER = bytes(HEADER_SIZE)
"""The header of an empty journal: what an orderly stop leaves."""
_MAGIC = b"trigjrnl"
_HEADER = struct.Struct("<8sII")
_SUM = struct.Struct("<I")
_MARK = b"turn"
_HEAD = struct.Struct("<4sIQQQI")
HEAD_SIZE = _HEAD.size + _SUM.size
"""Bytes of a record before its entries."""


class UnknownVersionError(Exception):
    """The journal was written by a trigmon whose format this one does not know; the text gives both versions."""


class Record(NamedTuple):
    """The changes of a turn, and when it was, in milliseconds since 1970.

    ``durable``: the journal was synced up to this number when the record was written.
    """

    number: int
    durable: int
    time_ms: int
    entries: bytes


class Tail(NamedTuple):
    """The records behind a number, without a gap, and ``lost``: a text about records that are missing, or empty.

    ``highest`` is the highest number in the file, 0 for none.
    """

    records: list[Record]
    lost: str = ""
    highest: int = 0


class DamagedHeaderError(Exception):
    """The file has neither a valid header nor a blank one, which both lie in one sector."""


def header(salt: int) -> bytes:
    """Returns the header of a journal with this salt, a number of 32 bits."""
    head = _HEADER.pack(_MAGIC, VERSION, salt)
    return (head + _SUM.pack(crc32(head))).ljust(HEADER_SIZE, b"\0")


def salt_in(data: bytes) -> int | None:
    """Returns the salt in the header of a journal; None for an empty one.

    Raises UnknownVersionError, DamagedHeaderError.
    """
    if len(data) < HEADER_SIZE or data[:HEADER_SIZE] == NO_HEADER:
        return None
    if not data.startswith(_MAGIC):
        raise DamagedHeaderError
    _, version, salt = _HEADER.unpack_from(data)
    if version != VERSION:
        raise UnknownVersionError(f"the journal has version {version}; this trigmon knows {VERSION}")
    if _SUM.unpack_from(data, _HEADER.size)[0] != crc32(data[: _HEADER.size]):
        raise DamagedHeaderError
    return int(salt)


def packed(record: Record, salt: int) -> bytes:
    """Returns the bytes of a record."""
    return _head(record.number, record.durable, record.time_ms, record.entries, salt) + record.entries


def _head(number: int, durable: int, time_ms: int, entries: bytes | memoryview, salt: int) -> bytes:
    """Returns the bytes of a record before its entries."""
    head = _HEAD.pack(_MARK, len(entries), number, durable, time_ms, crc32(entries, salt))
    return head + _SUM.pack(crc32(head, salt))


def journal_of(records: Iterable[Record], salt: int) -> bytes:
    """Returns the bytes of a journal that has these records."""
    return header(salt) + b"".join(packed(record, salt) for record in records)


def records_in(data: bytes) -> Iterator[Record]:
    """Yields the valid records of a journal in order, and passes over all else.

    Raises UnknownVersionError, DamagedHeaderError.
    """
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
    _, length, number, durable, time_ms, entries_sum = _HEAD.unpack_from(data, at)
    entries = data[begin : begin + length]
    return Record(number, durable, time_ms, entries) if _is_whole(entries, salt, entries_sum) else None


def _is_whole(entries: bytes, salt: int, checksum: int) -> bool:
    return crc32(entries, salt) == checksum


def tail_of(data: bytes, number: int) -> Tail:
    """Returns the records of a journal behind this number.

    A record may be missing that was never synced: a power cut may have kept a later write and not this one. So the
    journal ends where a record is missing, and something is lost only if a later record knows that it was durable.
    """
    last, highest, tail, lost = number, 0, [], ""
    try:
        for found in records_in(data):
            highest = max(highest, found.number)
            if found.number == last + 1 == highest:
                tail.append(found)
                last = found.number
            elif found.number > number and found.durable > last:
                lost = f"turns {last + 1} to {found.durable} are missing in the journal"
    except DamagedHeaderError:
        lost = "the header of the journal is damaged"
    return Tail(tail, lost, highest)


SIZE = 16 << 20
"""Bytes of the file at most. A turn that does not fit is made durable by a sync of the database instead."""
FIRST_SIZE = 64 << 10
"""The file grows by doubling, from so many bytes: a sync of a write within the file changes nothing but its data."""
MOST_GROWTH = 1 << 20
"""Bytes that it grows by at most: no call waits for the zeros of many megabytes."""
KEPT_BUFFER = 1 << 20
"""Bytes of the buffer in which records are made, at most, when none is: memory that is asked for anew is slow."""
_PART = 64 << 10


class JournalFullError(Exception):
    """The disk has no room for a write."""


class JournalFile(Protocol):
    """The file, open. Each method may raise what the store raises for a broken disk."""

    def read(self) -> bytes:
        """Returns all of it."""

    def write(self, data: bytes | memoryview, offset: int) -> None:
        """Writes at most 64 KiB, and keeps no reference to them. Raises JournalFullError."""

    def sync(self) -> None:
        """Makes what was written durable."""

    def close(self) -> None:
        """Closes the file."""


class Journal:
    """See the module. ``new_salt`` returns 32 random bits, ``now_ms`` the time in milliseconds since 1970.

    ``number``: of the last turn. ``durable``: of the last turn that a power cut cannot undo. ``entries``: the changes
    since the last turn. ``is_empty``: there is nothing in the file. ``size``: bytes in use; ``first_ms``: the time of
    the first record of these.
    """

    def __init__(self, file: JournalFile, new_salt: Callable[[], int], now_ms: Callable[[], int]) -> None:
        self._file = file
        self._new_salt = new_salt
        self.now_ms = now_ms
        try:
            self._found = file.read()
        except BaseException:
            file.close()
            raise
        self._length = len(self._found)
        self.is_empty = self._found[:HEADER_SIZE] == NO_HEADER[: len(self._found)]
        self.entries = Entries()
        self._buffer = bytearray()
        self.number = self.durable = 0
        self._salt = 0
        self.size = self.first_ms = 0

    def tail(self, number: int) -> Tail:
        """Returns the records behind this number that the file held when it was opened. Raises UnknownVersionError."""
        return tail_of(self._found, number)

    @property
    def used(self) -> bytes:
        """Returns the part of the file in use; before :meth:`restart` all that was found when it was opened."""
        return self._found or self._file.read()[: self.size]

    def go_on(self, number: int) -> None:
        """Goes on behind this turn; what was found is still needed, until :meth:`restart`."""
        self.number = self.durable = number
        self.entries.clear()

    def restart(self, number: int) -> None:
        """Uses the file again from its beginning: the database is durable up to this turn."""
        self.go_on(number)
        self.size = 0
        self._found = b""

    def clear(self) -> None:
        """Makes the journal empty, durably: nothing in it is needed."""
        if self.is_empty:
            return
        with suppress(JournalFullError):  # the database has all of it, and goes on behind every number of the file
            self._file.write(NO_HEADER, 0)
            self._file.sync()
            self.is_empty = True

    @property
    def is_durable(self) -> bool:
        """Whether a power cut can undo nothing so far."""
        return not self.entries and self.durable == self.number

    def write(self, *, is_synced: bool) -> bool:
        """Writes the turn's record, and makes it durable if ``is_synced``; returns whether there was room for it.

        Without room nothing has changed: the turn's entries are as they were.
        """
        if self.entries and not self._write_record():
            return False
        if is_synced and self.durable < self.number:
            self._file.sync()
            self.durable = self.number
        return True

    def _write_record(self) -> bool:
        begin = HEAD_SIZE if self.size else HEADER_SIZE + HEAD_SIZE
        buffer = self._buffer
        if len(buffer) < begin:
            buffer.extend(bytes(begin))
        self.entries.encode_into(buffer, begin)
        end = self.size + len(buffer)
        if len(buffer) > KEPT_BUFFER:
            self._buffer = bytearray()
        try:
            if end > self._length and not self._grow(end):
                return False
            before = b""
            if not self.size:
                self._salt, self.first_ms = self._new_salt(), self.now_ms()
                before = header(self._salt)
            with memoryview(buffer) as data:
                head = _head(self.number + 1, self.durable, self.now_ms(), data[begin:], self._salt)
                data[:begin] = before + head
                self.is_empty = False
                self._put(data, self.size)
        except JournalFullError:
            return False
        self.entries.clear()
        self.size = end
        self.number += 1
        return True

    def _grow(self, size: int) -> bool:
        """Makes the file at least so large, if it may be; returns whether it is. Raises JournalFullError."""
        if size > SIZE:
            return False
        wanted = max(FIRST_SIZE, self._length)
        while wanted < size:
            wanted += min(wanted, MOST_GROWTH)
        wanted = min(wanted, SIZE)
        self._put(bytes(wanted - self._length), self._length)
        self._length = wanted
        return True

    def _put(self, data: bytes | memoryview, offset: int) -> None:
        for begin in range(0, len(data), _PART):
            self._file.write(data[begin : begin + _PART], offset + begin)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
