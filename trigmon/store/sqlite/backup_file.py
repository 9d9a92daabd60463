"""The file of a backup: the database as it was, then a note about it and a checksum of all of it.

``database | note, JSON | its length, 4 bytes | SHA-256 of everything before, 32 bytes | MAGIC``. SQLite opens it as a
database, since it reads no further than the header says. A file that was cut, or of which one bit has changed, is
recognized.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

import msgspec

MAGIC = b"trigmon backup 1"
_SUM_SIZE = 32
_LENGTH_SIZE = 4
_TAIL_SIZE = _LENGTH_SIZE + _SUM_SIZE + len(MAGIC)
_PART = 1 << 20

Progress = Callable[[int], None]
"""Called with the number of bytes read."""


class BackupError(Exception):
    """The file is no whole backup; the text tells what is wrong."""


class BackupNote(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup says of itself. ``size``: of the database, in bytes. ``made_ms``: milliseconds since 1970."""

    q_mgr_name: str
    made_ms: int
    size: int
    trigmon_version: str


class BackupWriter:
    """Writes a backup to ``file``, which is only appended to."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._sum = hashlib.sha256()

    def write(self, part: bytes) -> None:
        """Writes the next bytes of the database."""
        self._file.write(part)
        self._sum.update(part)

    def finish(self, note: BackupNote) -> None:
        """Writes what stands behind the database: from now on the file is a whole backup."""
        text = msgspec.json.encode(note)
        self.write(text + len(text).to_bytes(_LENGTH_SIZE, "big"))
        self._file.write(self._sum.digest() + MAGIC)
        self._file.flush()


def read_note(file: IO[bytes]) -> BackupNote:
    """Returns what the backup says of itself, without reading all of it; the file is at its start again.

    Raises BackupError, OSError.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _TAIL_SIZE))
    tail = file.read()
    if len(tail) < _TAIL_SIZE or not tail.endswith(MAGIC):
        raise BackupError("this is no backup of trigmon, or its end is missing")
    length = int.from_bytes(tail[:_LENGTH_SIZE], "big")
    file.seek(max(0, size - _TAIL_SIZE - length))
    try:
        note = msgspec.json.decode(file.read(length), type=BackupNote)
    except msgspec.MsgspecError as error:
        raise BackupError(f"the backup is damaged: its note cannot be read ({error})") from error
    if note.size + length + _TAIL_SIZE != size:
        raise BackupError(f"the backup is damaged: it has {size} bytes, and its note does not fit that")
    file.seek(0)
    return note


def verify(path: Path, progress: Progress = lambda size: None) -> BackupNote:
    """Reads all of a backup; returns what it says of itself. Raises BackupError, OSError."""
    with path.open("rb") as file:
        note = read_note(file)
        left = path.stat().st_size - _SUM_SIZE - len(MAGIC)
        found = hashlib.sha256()
        while left:
            part = file.read(min(left, _PART))
            if not part:
                break
            found.update(part)
            left -= len(part)
            progress(len(part))
        if file.read(_SUM_SIZE) != found.digest():
            raise BackupError("the backup is damaged: its content does not match its checksum")
    return note
