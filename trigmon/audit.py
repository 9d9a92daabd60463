"""The audit file: a line of JSON for each denial and each administrative act, chained by hashes.

Each line has a number, the SHA-256 of the line before it (``previous``), and its own (``hash``, over all else in it).
A line that was changed, taken out, put in or moved breaks the chain. Lines taken off the end do not; so the log names
the number and hash of each line too, and :func:`verify` returns the last. After a rotation the chain goes on in the new
file, whether the old one was renamed or copied and emptied. One process writes a file: two would make two lines of one
number.
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import io
import json
import os
import re
import stat
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

START = "0" * 64
"""What stands in place of the hash before the first line."""
_LONGEST_LINE = 1 << 20
_LONGEST_VALUE = 1000
"""Characters of a value that are kept where a line would be too long."""
_BEGIN = b'{"number":'
_TAIL = 2 * _LONGEST_LINE
_MOST_UNPACKED = 1 << 30
"""A compressed part of more bytes is not read at a start, which would take too long."""
COMPRESSED = ".gz"
UNREADABLE = (OSError, EOFError, zlib.error)
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


def _shortened(fields: Record) -> Record:
    texts = {name: value if isinstance(value, str) else _text(value).decode() for name, value in fields.items()}
    return {
        name: value if len(texts[name]) <= _LONGEST_VALUE else f"{texts[name][:_LONGEST_VALUE]}..."
        for name, value in fields.items()
    }


def _text(record: object) -> bytes:
    return json.dumps(record, ensure_ascii=True, separators=(",", ":"), default=str).encode()


def _hash(record: Record) -> str:
    return hashlib.sha256(_text(record)).hexdigest()


def _read(line: bytes, where: str) -> tuple[Record, Link]:
    """Returns a line's record without its hash, and its place. Raises AuditError.

    The line has to be the very bytes that were written: another program may read a second ``"user":`` as the first.
    """
    try:
        record = json.loads(line)
        given = record.pop("hash")
        place = Link(int(record["number"]), str(given))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise AuditError(f"{where}: it is no line of an audit file") from None
    if _hash(record) != place.hash or _text({**record, "hash": given}) + b"\n" != line:
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
            with _opened_part(path) as file:
                for at, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
                    where = f"{path}:{at}"
                    if not line.endswith(b"\n"):
                        raise AuditError(f"{where}: the line has no end")
                    record, place = _read(line, where)
                    if last is not None and (place.number != last.number + 1 or record["previous"] != last.hash):
                        anew = ": a chain begins anew" if place.number == 1 else ""
                        raise AuditError(f"{where}: line {place.number} does not follow line {last.number}{anew}")
                    if place.number == 1 and record["previous"] != START:
                        raise AuditError(f"{where}: line 1 has a line before it")
                    count, last = count + 1, place
        except UNREADABLE as error:
            raise AuditError(f"{path}: {_why(error)}") from None
    return count, last or FIRST


def _opened_part(path: Path) -> io.BufferedIOBase:
    """Opens a part for reading, one that gzip(1) has compressed as what it was before."""
    return gzip.open(path) if path.suffix == COMPRESSED else path.open("rb")


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or f"it is no whole file of gzip ({error})"


def _last_whole(file: int, path: Path) -> tuple[Link | None, int]:
    """Returns the place of an open file's last whole line, None without one, and where that line ends.

    Raises AuditError for a file that is none of ours.
    """
    size = os.fstat(file).st_size
    return _last_in(os.pread(file, _TAIL, max(0, size - _TAIL)), size, path)


def _last_compressed(file: int, path: Path) -> Link | None:
    """Returns the place of the last whole line of what gzip(1) has compressed. Raises AuditError, and UNREADABLE."""
    tail, size = b"", 0
    with gzip.open(os.fdopen(file, "rb", closefd=False)) as unpacked:
        while more := unpacked.read(_LONGEST_LINE):
            size += len(more)
            if size > _MOST_UNPACKED:
                raise AuditError(f"{path}: unpacked it has more than {_MOST_UNPACKED} bytes")
            tail = (tail + more)[-_TAIL:]
    return _last_in(tail, size, path)[0]


def _last_in(tail: bytes, size: int, path: Path) -> tuple[Link | None, int]:
    """Returns the same of a file of so many bytes that ends so."""
    whole = tail[: tail.rfind(b"\n") + 1]
    torn = tail[len(whole) :]
    last = _read(whole[whole.rfind(b"\n", 0, -1) + 1 :], str(path))[1] if whole else None
    if len(torn) == size > _LONGEST_LINE or not (torn.startswith(_BEGIN) or _BEGIN.startswith(torn)):
        raise AuditError(f"{path}: its end is no line of an audit file")
    return last, size - len(torn)


def _rotated(path: Path) -> list[Path]:
    """Returns the files beside it whose names logrotate(8) may have made of its name, with a number or a date."""
    stem, name, suffix = (re.escape(text) for text in (path.stem, path.name, path.suffix))
    pattern = re.compile(rf"{name}[.-]\d.*|{stem}[.-]\d[\d.-]*{suffix}([.-].*)?", re.DOTALL)
    found = {file for file in path.parent.iterdir() if file != path and pattern.fullmatch(file.name)}
    # Of a part that was being compressed when the machine stopped, both are there.
    whole = (file for file in found if file.suffix != COMPRESSED or file.with_suffix("") not in found)
    return [file for file in whole if stat.S_ISREG(file.lstat().st_mode)]


def _last_rotated(path: Path) -> Link:
    """Returns the highest place in the files that were renamed while nobody wrote; FIRST where there is none.

    Of compressed ones the newest is read, where it is newer than all others. Raises AuditError where one that is newer
    than its file cannot be read: a chain that began anew would look sound.
    """
    last, written, unread = FIRST, -1, []
    newest_first = sorted(((rotated.lstat().st_mtime_ns, rotated) for rotated in _rotated(path)), reverse=True)
    for changed, rotated in newest_first:
        is_compressed = rotated.suffix == COMPRESSED
        if is_compressed and changed <= written:
            continue
        try:
            file = os.open(rotated, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                found = _last_compressed(file, rotated) if is_compressed else _last_whole(file, rotated)[0]
            finally:
                os.close(file)
        except (*UNREADABLE, AuditError):
            unread.append((changed, rotated))
            continue
        found = found or FIRST
        if found.number > last.number:
            last, written = found, changed
    newest = max(unread, default=(-1, path))
    if newest[0] > written:
        why = "the chain may go on behind this part, which cannot be read"
        raise AuditError(f"{newest[1]}: {why}: decompress it beside {path.name}, or move it away")
    return last


class AuditFile:
    """The file that a daemon appends to. A start goes on behind its last whole line; a torn one is taken off.

    An empty one goes on behind the last line of the files that logrotate(8) has renamed. Raises AuditError where it
    cannot be opened, another process writes it, it is no audit file, or the newest of those files cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._cut_to: int | None = None
        self._file, self.last = self._opened(None)

    def _opened(self, before: Link | None) -> tuple[int, Link]:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        try:
            file = os.open(self.path, flags, 0o600)
        except OSError as error:
            raise AuditError(f"{self.path}: {error.strerror}") from None
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise AuditError(f"{self.path}: it is no regular file")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            last, end = _last_whole(file, self.path)
            os.ftruncate(file, end)
            return file, last or before or _last_rotated(self.path)
        except BlockingIOError:
            os.close(file)
            raise AuditError(f"{self.path}: another process writes it: each queue manager has its own file") from None
        except OSError as error:
            os.close(file)
            raise AuditError(f"{self.path}: {error.strerror}") from None
        except AuditError:
            os.close(file)
            raise

    def append(self, fields: Record) -> Link:
        """Appends a line with the time, and returns its place. Raises AuditError: then the file is as before."""
        try:
            self._follow_rotation()
            if self._cut_to is not None:
                os.ftruncate(self._file, self._cut_to)
                self._cut_to = None
            fields = {"time_ms": time.time_ns() // 1_000_000, **fields}
            line, place = chained(fields, self.last)
            if len(line) > _LONGEST_LINE:
                line, place = chained(_shortened(fields), self.last)
            self._write(line)
        except OSError as error:
            raise AuditError(f"{self.path}: {error.strerror}") from None
        self.last = place
        return place

    def _write(self, line: bytes) -> None:
        """Writes a whole line or nothing. Raises AuditError and OSError."""
        end = os.fstat(self._file).st_size
        self._cut_to = end  # what a full disk leaves of a line is taken off before the next one
        if os.write(self._file, line) != len(line):
            os.ftruncate(self._file, end)
            raise AuditError(f"{self.path}: no room for a line")
        self._cut_to = None

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
            there = self.path.lstat()
        except FileNotFoundError:
            there = None
        here = os.fstat(self._file)
        if there is None or (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            file, last = self._opened(self.last)
            os.close(self._file)
            self._file, self.last, self._cut_to = file, last, None
