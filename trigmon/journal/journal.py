"""The journal of one store: a file of records, one write and one sync a turn.

The store's own database follows without a sync. When it is synced, nothing in the journal is needed any more, and the
file is used again from its beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from trigmon.journal.entries import Entries, JournalChange
from trigmon.journal.records import HEAD_SIZE, HEADER_SIZE, NO_HEADER, Tail, header, record, tail_of

SIZE = 16 << 20
"""Bytes of the file at most. A turn that does not fit is made durable by a sync of the database instead."""
FIRST_SIZE = 64 << 10
"""The file grows by doubling, from so many bytes: a sync of a write within the file changes nothing but its data."""
_PART = 64 << 10


class JournalFullError(Exception):
    """The disk has no room for a write."""


class JournalFile(Protocol):
    """The file. Each method may raise what the store raises for a broken disk."""

    def read(self) -> bytes:
        """Returns all of it."""

    def write(self, data: bytes, offset: int) -> None:
        """Writes at most 64 KiB. Raises JournalFullError."""

    def sync(self) -> None:
        """Makes what was written durable."""

    def close(self) -> None:
        """Closes the file."""


class Journal:
    """See the module. ``new_salt`` returns 32 random bits.

    ``number``: of the last turn. ``durable``: of the last turn that a power cut cannot undo. ``entries``: the changes
    since the last turn.
    """

    def __init__(self, file: JournalFile, new_salt: Callable[[], int]) -> None:
        self._file = file
        self._new_salt = new_salt
        self._found = file.read()
        self._size = len(self._found)
        self._is_empty = self._found[:HEADER_SIZE] == NO_HEADER[: len(self._found)]
        self.entries = Entries()
        self.number = self.durable = 0
        self._salt = 0
        self._at = 0

    def tail(self, number: int) -> Tail:
        """Returns the records behind this number that the file held when it was opened. Raises UnknownVersionError."""
        return tail_of(self._found, number)

    def restart(self, number: int) -> None:
        """Uses the file again from its beginning: the database is durable up to this turn."""
        self.number = self.durable = number
        self.entries.clear()
        self._at = 0
        self._found = b""

    def clear(self) -> None:
        """Makes the journal empty, durably: nothing in it is needed."""
        if not self._is_empty:
            self._file.write(NO_HEADER, 0)
            self._file.sync()
            self._is_empty = True

    def add(self, change: JournalChange) -> None:
        """Adds a change to the turn."""
        self.entries.add(change)

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
        begin = self._at or HEADER_SIZE
        end = begin + HEAD_SIZE + self.entries.size
        try:
            if end > self._size and not self._grow(end):
                return False
            if not self._at:
                self._salt = self._new_salt()
            data = record(self.number + 1, self.durable, self.entries.encoded(), self._salt)
            if not self._at:
                data = header(self._salt) + data
            self._is_empty = False
            self._put(data, self._at)
        except JournalFullError:
            return False
        self.entries.clear()
        self._at = end
        self.number += 1
        return True

    def _grow(self, size: int) -> bool:
        """Makes the file at least so large, if it may be; returns whether it is. Raises JournalFullError."""
        if size > SIZE:
            return False
        wanted = max(FIRST_SIZE, self._size)
        while wanted < size:
            wanted *= 2
        self._put(bytes(wanted - self._size), self._size)
        self._size = wanted
        return True

    def _put(self, data: bytes, offset: int) -> None:
        for begin in range(0, len(data), _PART):
            self._file.write(data[begin : begin + _PART], offset + begin)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
