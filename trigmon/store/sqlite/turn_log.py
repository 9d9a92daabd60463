"""The files beside a SQLite store's database: its write-ahead log (WAL), its journal, the number of the last turn.

The number of the last durable turn lies, by :class:`LastTurn`, in a small file beside the database: so a journal or a
log that lost its end is detected. The file is written after the sync of the turn and before any answer, and is not
synced itself. A killed process leaves it intact; after a power cut it may be older, but never newer, than the turns.
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
from pathlib import Path
from typing import NamedTuple

import apsw

from trigmon.checksum import crc32
from trigmon.journal.journal import JournalFullError
from trigmon.store.port import StoreBroken
from trigmon.store.sqlite.file_modes import keep_others_out

CHECKPOINT_BYTES = 16 << 20
SHORT_BYTES = 512 << 10
"""The same on a nearly full disk: the file may have to grow by all that the log holds."""

FILE_NAME = "last_turn"
_MAGIC = b"trigturn"
_FORMAT = struct.Struct("<8sQQII")
_CHECK = struct.Struct("<I")
SIZE = _FORMAT.size + _CHECK.size
_DAMAGED = 1
_ERRORS = (apsw.Error, OSError)
JOURNAL_SUFFIX = "-turns"
"""Behind the database's name. SQLite has a meaning of its own for "-journal"."""
_SYNC_OF_DATA = apsw.SQLITE_SYNC_NORMAL | apsw.SQLITE_SYNC_DATAONLY


class Stamp(NamedTuple):
    """The contents of the file.

    ``turn``: the number of the last durable turn. ``frames``, ``salt``: during a checkpoint the log with this salt must
    have so many frames; 0: no checkpoint runs. ``is_damaged``: damage was found, and the next start checks everything.
    """

    turn: int = 0
    salt: int = 0
    frames: int = 0
    is_damaged: bool = False

    def packed(self) -> bytes:
        """Returns it as bytes, with a checksum."""
        return _packed(*self)


def _packed(turn: int, salt: int, frames: int, is_damaged: bool) -> bytes:
    body = _FORMAT.pack(_MAGIC, turn, salt, frames, _DAMAGED if is_damaged else 0)
    return body + _CHECK.pack(crc32(body))


NOTHING = Stamp()


def unpacked(found: bytes) -> Stamp | None:
    """Returns the stamp in these bytes; None if they are not a valid stamp."""
    if len(found) != SIZE or found[-_CHECK.size :] != _CHECK.pack(crc32(found[: -_CHECK.size])):
        return None
    magic, turn, salt, frames, flags = _FORMAT.unpack(found[: -_CHECK.size])
    return Stamp(turn, salt, frames, bool(flags & _DAMAGED)) if magic == _MAGIC else None


class LastTurn:
    """The file in a data directory. ``vfs`` is SQLite's name of the file system; "" is the machine's own.

    ``found`` is the stamp read at the start; ``is_unreadable``: the file was not empty and held no valid stamp.
    ``is_damaged``: damage was found that no start has checked yet. Raises StoreBroken.
    """

    def __init__(self, directory: Path, vfs: str = "") -> None:
        self._directory = None if vfs else directory
        path = directory / FILE_NAME
        if not vfs:
            keep_others_out(path)
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_MAIN_DB
        try:
            self._file = apsw.VFSFile(vfs, str(path), [flags, 0])
        except apsw.Error as error:
            raise StoreBroken(f"{path}: {error}") from error
        try:
            read = self._file.xRead(SIZE, 0) if self._file.xFileSize() else b""
        except apsw.Error as error:
            self.close()
            raise StoreBroken(f"{path}: {error}") from error
        stamp = unpacked(read)
        self.is_unreadable = bool(read) and stamp is None
        self.is_there = bool(read)
        self.found = stamp or NOTHING
        self._turn, self._salt, self._frames, is_damaged = self.found
        # The damaged stamp may have had is_damaged set.
        self.is_damaged = is_damaged or self.is_unreadable

    def set_turn(self, turn: int) -> None:
        """Records that this turn is durable. Errors are ignored: an older number does no harm."""
        self._turn = turn
        self._write()

    def set_moving(self, salt: int, frames: int) -> None:
        """Records that a checkpoint of so many frames begins; 0: that it has ended."""
        self._salt, self._frames = salt, frames
        self._write()

    def set_damaged(self, is_damaged: bool) -> None:
        """Records that damage was found, or that it has been checked."""
        if is_damaged is not self.is_damaged:
            self.is_damaged = is_damaged
            self._write()

    def begin(self, turn: int) -> None:
        """Writes and syncs the file for a store whose last turn is this one, and the names of all files of the store.

        Raises StoreBroken: a power cut could take a file away whose name is not durable.
        """
        self._turn, self._salt, self._frames = turn, 0, 0
        self._write()
        self.sync()
        if self._directory is not None:
            try:
                make_durable(self._directory)
            except OSError as error:
                raise StoreBroken(f"{self._directory}: {error}") from error

    def sync(self) -> None:
        """Syncs the file. Errors are ignored."""
        with contextlib.suppress(*_ERRORS):
            self._file.xSync(apsw.SQLITE_SYNC_NORMAL)

    def close(self) -> None:
        """Closes the file."""
        with contextlib.suppress(*_ERRORS):
            self._file.xClose()

    def _write(self) -> None:
        packed = _packed(self._turn, self._salt, self._frames, self.is_damaged)
        try:  # noqa: SIM105 - in each turn: a context manager costs three calls of Python
            self._file.xWrite(packed, 0)
        except _ERRORS:
            pass


def make_durable(directory: Path) -> None:
    """Syncs a directory, so that the names of its files are durable. Raises OSError."""
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    except OSError as error:
        if error.errno != errno.EINVAL:  # the file system has no sync of directories
            raise
    finally:
        os.close(opened)


def log_salt(database: Path, vfs: str = "") -> int:
    """Returns the salt of the write-ahead log beside a database; 0 if there is no log."""
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


class TurnLog:
    """Moves the WAL of one database into the file.

    ``pages``: the length of the WAL. ``synced_pages``: its length at the last sync. ``is_held``: the database is being
    copied, and no checkpoint runs.
    ``last`` is the file last_turn; ``vfs`` as in :func:`trigmon.store.sqlite.connection.connect`.
    """

    def __init__(self, path: Path, vfs: str | None, last: LastTurn) -> None:
        self._path = path
        self._vfs = vfs
        self._last = last
        self.pages = self.synced_pages = 0
        self.is_held = False

    def follow(self, db: apsw.Connection) -> None:
        """Follows the WAL of this database from now on."""
        self._db = db
        self._page_size = int(db.pragma("page_size"))
        self.pages = self.synced_pages = 0
        db.set_wal_hook(self._note_pages)

    def is_long(self, is_disk_nearly_full: bool) -> bool:
        """Returns whether the WAL is to be moved into the file; a nearly full disk ends the hold of that file."""
        if is_disk_nearly_full:
            self.is_held = False
        limit = SHORT_BYTES if is_disk_nearly_full else CHECKPOINT_BYTES
        return not self.is_held and self.pages * self._page_size >= limit

    def _note_pages(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self.pages = pages
        return apsw.SQLITE_OK

    def sync(self) -> None:
        """Makes all commits durable, by one sync of the WAL. Raises StoreBroken: a sync that failed is never repeated.

        SQLite commits without a sync, and syncs the WAL by itself only before a checkpoint.
        """
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_WAL
        try:
            file = apsw.VFSFile(self._vfs or "", f"{self._path}-wal", [flags, 0])
            try:
                file.xSync(_SYNC_OF_DATA)
            finally:
                file.xClose()
        except apsw.Error as error:
            raise StoreBroken(f"{self._path}-wal: {error}") from error
        self.synced_pages = self.pages

    def checkpoint(self) -> None:
        """Moves the WAL into the file, unless that is being copied. Raises StoreBroken."""
        if self.is_held:
            return
        if self.synced_pages:
            self._last.set_moving(log_salt(self._path, self._vfs or ""), self.synced_pages)
        try:
            pages, moved = self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.FullError:
            # All of it is safe in the WAL; a later checkpoint moves it when there is space.
            return
        except apsw.Error as error:
            raise StoreBroken(str(error)) from error
        if moved < pages:
            return  # an open look holds it back
        self.pages = self.synced_pages = 0
        self._last.set_moving(0, 0)


class VfsJournalFile:
    """See :class:`trigmon.journal.journal.JournalFile`. ``vfs`` is SQLite's name of the file system, "" the machine's.

    Every method raises StoreBroken, and a write on a full disk JournalFullError.
    """

    def __init__(self, database: Path, vfs: str = "") -> None:
        self._path = Path(f"{database}{JOURNAL_SUFFIX}")
        if not vfs:
            keep_others_out(self._path)
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_MAIN_DB
        try:
            self._file = apsw.VFSFile(vfs, str(self._path), [flags, 0])
        except apsw.Error as error:
            raise self._broken(error) from error

    def _broken(self, error: apsw.Error) -> StoreBroken:
        return StoreBroken(f"{self._path}: {error}")

    def read(self) -> bytes:
        """See the port."""
        try:
            size = self._file.xFileSize()
            return self._file.xRead(size, 0) if size else b""
        except apsw.Error as error:
            raise self._broken(error) from error

    def write(self, data: bytes | memoryview, offset: int) -> None:
        """See the port."""
        try:
            self._file.xWrite(data, offset)
        except apsw.FullError as error:
            raise JournalFullError(str(error)) from error
        except apsw.Error as error:
            raise self._broken(error) from error

    def sync(self) -> None:
        """See the port. An error is final: the next sync would not tell that these writes were lost."""
        try:
            self._file.xSync(_SYNC_OF_DATA)
        except apsw.Error as error:
            raise self._broken(error) from error

    def close(self) -> None:
        """See the port."""
        with contextlib.suppress(apsw.Error):
            self._file.xClose()
