"""The file of a store's journal, by SQLite's file system: so a test that breaks the one breaks the other as well."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import apsw

from trigmon.journal.journal import JournalFullError
from trigmon.store.port import StoreBroken
from trigmon.store.sqlite.file_modes import keep_others_out

SUFFIX = "-turns"
"""Behind the database's name. SQLite has a meaning of its own for "-journal"."""
_SYNC_OF_DATA = apsw.SQLITE_SYNC_NORMAL | apsw.SQLITE_SYNC_DATAONLY


class VfsJournalFile:
    """See :class:`trigmon.journal.journal.JournalFile`. ``vfs`` is SQLite's name of the file system, "" the machine's.

    Every method raises StoreBroken.
    """

    def __init__(self, database: Path, vfs: str = "") -> None:
        self._path = Path(f"{database}{SUFFIX}")
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

    def write(self, data: bytes, offset: int) -> None:
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
        with suppress(apsw.Error):
            self._file.xClose()
