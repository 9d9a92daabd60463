"""The audit file: a line of JSON for each denial and each administrative act, chained by hashes.

Each line has a number, the SHA-256 of the line before it (``previous``), and its own (``hash``, over all else in it).
A line that was changed, taken out, put in or moved breaks the chain. Lines taken off the end do not; so the log names
the number and hash of each line too, and :func:`verify` returns the last. After a rotation the chain goes on in the new
file.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

START = "0" * 64
"""What stands in place of the hash before the first line."""
_LONGEST_LINE = 1 << 20
Record = dict[str, Any]


class AuditError(Exception):
    """An audit file that cannot be read or written, or whose chain is broken."""


class Link(NamedTuple):
    """A place in the chain: the number of a line, and its hash."""

    number: int
    hash: str


FIRST = Link(0, START)


def chained(fields: Record, before: Link) -> tuple[bytes, Link]:
    """Returns the line of a record, with its newline, and its place in the chain."""
    record = {"number": before.number + 1, **fields, "previous": before.hash}
    place = Link(before.number + 1, _hash(record))
    return _text({**record, "hash": place.hash}) + b"\n", place


def _text(record: Record) -> bytes:
    return json.dumps(record, ensure_ascii=True, separators=(",", ":"), default=str).encode()


def _hash(record: Record) -> str:
    return hashlib.sha256(_text(record)).hexdigest()


def _read(line: bytes, where: str) -> tuple[Record, Link]:
    """Returns a line's record without its hash, and its place. Raises AuditError."""
    try:
        record = json.loads(line)
        given = record.pop("hash")
        place = Link(int(record["number"]), str(given))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise AuditError(f"{where}: it is no line of an audit file") from None
    if _hash(record) != place.hash:
        raise AuditError(f"{where}: line {place.number} is not as it was written")
    return record, place


def verify(paths: Iterable[Path]) -> tuple[int, Link]:
    """Returns how many lines files have, the oldest file first, and the last line's place.

    The first line may be in the middle of a chain, whose files from before are elsewhere. Raises AuditError, which
    names file and line of the first one that does not follow the line before it.
    """
    count, last = 0, None
    for path in paths:
        try:
            with path.open("rb") as file:
                for at, line in enumerate(file, 1):
                    where = f"{path}:{at}"
                    if not line.endswith(b"\n"):
                        raise AuditError(f"{where}: the line has no end")
                    record, place = _read(line, where)
                    if last is not None and (place.number != last.number + 1 or record["previous"] != last.hash):
                        raise AuditError(f"{where}: line {place.number} does not follow line {last.number}")
                    if place.number == 1 and record["previous"] != START:
                        raise AuditError(f"{where}: line 1 has a line before it")
                    count, last = count + 1, place
        except OSError as error:
            raise AuditError(f"{path}: {error.strerror}") from None
    return count, last or FIRST


class AuditFile:
    """The file that a daemon appends to. A start goes on behind its last whole line; a torn one is taken off.

    Raises AuditError where it cannot be opened, or its last line is not as it was written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file, self.last = self._opened(FIRST)

    def _opened(self, before: Link) -> tuple[int, Link]:
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise AuditError(f"{self.path}: {error.strerror}") from None
        try:
            size = os.fstat(file).st_size
            tail = os.pread(file, _LONGEST_LINE, max(0, size - _LONGEST_LINE))
            whole = tail[: tail.rfind(b"\n") + 1]
            os.ftruncate(file, size - len(tail) + len(whole))
            os.lseek(file, 0, os.SEEK_END)
            if not whole:
                return file, before
            return file, _read(whole.rstrip(b"\n").rpartition(b"\n")[2], str(self.path))[1]
        except (OSError, AuditError) as error:
            os.close(file)
            raise AuditError(f"{self.path}: {error}") from None

    def append(self, fields: Record) -> Link:
        """Appends a line with the time, and returns its place. Raises AuditError."""
        try:
            self._follow_rotation()
            stamp = time.time_ns() // 1_000_000
            line, place = chained({"time_ms": stamp, **fields}, self.last)
            if os.write(self._file, line) != len(line):
                raise AuditError(f"{self.path}: no room for a line")
        except OSError as error:
            raise AuditError(f"{self.path}: {error.strerror}") from None
        self.last = place
        return place

    def sync(self) -> None:
        """Makes the lines durable. Raises AuditError."""
        try:
            os.fdatasync(self._file)
        except OSError as error:
            raise AuditError(f"{self.path}: {error.strerror}") from None

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)

    def _follow_rotation(self) -> None:
        """Opens the file anew where another has its name, or none; the chain goes on."""
        try:
            there = self.path.stat()
        except FileNotFoundError:
            there = None
        here = os.fstat(self._file)
        if there is None or (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            file, last = self._opened(self.last)
            os.close(self._file)
            self._file, self.last = file, last
