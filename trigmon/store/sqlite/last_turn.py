"""The number of the last durable turn, in a small file beside the database, so that a log that lost its end is noticed.

It is written behind the sync of the turn and before anything is answered, and not synced itself: the death of the
process leaves it as it is, and after a power cut it is older, never newer, than what the database holds.
"""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import apsw

from trigmon.store.port import StoreBroken
from trigmon.store.sqlite.file_modes import keep_others_out

FILE_NAME = "last_turn"
_MAGIC = b"trigturn"
_FORMAT = struct.Struct("<8sQQII")
_CHECK = struct.Struct("<I")
SIZE = _FORMAT.size + _CHECK.size
_DAMAGED = 1
_ERRORS = (apsw.Error, OSError)


class Stamp(NamedTuple):
    """What the file holds.

    ``frames`` of the log with this ``salt`` have to be there while a checkpoint is under way; 0: none is.
    ``is_damaged``: damage was met, and the next start checks everything.
    """

    turn: int = 0
    salt: int = 0
    frames: int = 0
    is_damaged: bool = False

    def packed(self) -> bytes:
        """The bytes of it."""
        body = _FORMAT.pack(_MAGIC, self.turn, self.salt, self.frames, _DAMAGED if self.is_damaged else 0)
        return body + _CHECK.pack(crc32(body))


NOTHING = Stamp()


def unpacked(found: bytes) -> Stamp | None:
    """What these bytes say; None where they are no stamp."""
    if len(found) != SIZE or found[-_CHECK.size :] != _CHECK.pack(crc32(found[: -_CHECK.size])):
        return None
    magic, turn, salt, frames, flags = _FORMAT.unpack(found[: -_CHECK.size])
    return Stamp(turn, salt, frames, bool(flags & _DAMAGED)) if magic == _MAGIC else None


class LastTurn:
    """The file in a data directory. ``vfs`` is the name under which SQLite knows the file system; "" the machine's own.

    ``found`` is what was there; ``is_unreadable``: there was something, and it is no stamp. Raises StoreBroken.
    """

    def __init__(self, directory: Path, vfs: str = "") -> None:
        self._directory = None if vfs else directory
        path = directory / FILE_NAME
        if not vfs:
            keep_others_out(path)
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_MAIN_DB
        try:
            self._file = apsw.VFSFile(vfs, str(path), [flags, 0])
            read = self._file.xRead(SIZE, 0) if self._file.xFileSize() else b""
        except apsw.Error as error:
            raise StoreBroken(f"{path}: {error}") from error
        stamp = unpacked(read)
        self.is_unreadable = bool(read) and stamp is None
        self.is_there = bool(read)
        self.found = self._stamp = stamp or NOTHING
        # One that was damaged may have held the mark.
        if self.is_unreadable:
            self._stamp = Stamp(is_damaged=True)

    @property
    def is_damaged(self) -> bool:
        """Whether damage was met that no start has looked at yet."""
        return self._stamp.is_damaged

    def set_turn(self, turn: int) -> None:
        """Notes that this turn is durable. An error changes nothing: an older number does no harm."""
        self._write(self._stamp._replace(turn=turn))

    def set_moving(self, salt: int, frames: int) -> None:
        """A checkpoint begins, or with no frames is over."""
        self._write(self._stamp._replace(salt=salt, frames=frames))

    def set_damaged(self, is_damaged: bool) -> None:
        """Damage was met, or has been looked at."""
        if is_damaged is not self._stamp.is_damaged:
            self._write(self._stamp._replace(is_damaged=is_damaged))

    def begin(self, turn: int) -> None:
        """Makes the file new for a store that ends with this turn, and makes that last."""
        self._write(Stamp(turn, is_damaged=self._stamp.is_damaged))
        self.sync()
        if self._directory is not None:
            with contextlib.suppress(OSError):  # as for the file itself: an older one does no harm
                make_durable(self._directory)

    def sync(self) -> None:
        """Makes last what the file says."""
        with contextlib.suppress(*_ERRORS):
            self._file.xSync(apsw.SQLITE_SYNC_NORMAL)

    def close(self) -> None:
        """Lets go of the file."""
        with contextlib.suppress(*_ERRORS):
            self._file.xClose()

    def _write(self, stamp: Stamp) -> None:
        self._stamp = stamp
        with contextlib.suppress(*_ERRORS):
            self._file.xWrite(stamp.packed(), 0)


def make_durable(directory: Path) -> None:
    """Makes the names in a directory last. Raises OSError."""
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def log_salt(database: Path, vfs: str = "") -> int:
    """The salt of the write-ahead log beside a database; 0 where there is none."""
    try:
        file = apsw.VFSFile(vfs, f"{database}-wal", [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
    except _ERRORS:
        return 0
    try:
        header = file.xRead(32, 0)
    except _ERRORS:
        return 0
    finally:
        file.xClose()
    return int.from_bytes(header[16:24], "big") if len(header) == 32 else 0
