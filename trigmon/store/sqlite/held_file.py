"""The database file, held as it is so that it can be copied while the queue manager serves.

In WAL mode only a checkpoint writes to the file. A hold moves everything into the file and lets no checkpoint run:
meanwhile all changes lie in the log, and the file is the database as of one moment.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw

from trigmon.mq.errors import StorageMediumFull
from trigmon.store.sqlite.connection import guarded
from trigmon.store.sqlite.turn_log import TurnLog


class HeldFile:
    """See :class:`trigmon.store.port.FileCopy`. ``prepare`` commits and syncs what was written so far.

    ``log`` lets no checkpoint run while it is held; it ends the hold itself where the disk is nearly full.
    """

    def __init__(self, path: Path, vfs: str | None, log: TurnLog, prepare: Callable[[], None]) -> None:
        self._path = path
        self._vfs = vfs or ""
        self._log = log
        self._prepare = prepare
        self._file: apsw.VFSFile | None = None

    @property
    def is_held(self) -> bool:
        """Whether the file is still as it was when it was held."""
        return self._file is not None and self._log.is_held

    def begin(self) -> int:
        """Holds the file; returns its size. Raises StorageMediumFull, StoreBroken."""
        self.end()
        self._prepare()
        self._log.checkpoint()
        if self._log.pages:
            raise StorageMediumFull(f"the log of {self._path.name} cannot be moved into it: make room")
        self._log.is_held = True
        # By SQLite's own file system: closing a descriptor of another would release the locks of the database.
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB
        self._file = guarded(lambda: apsw.VFSFile(self._vfs, str(self._path), [flags, 0]))
        return int(self._file.xFileSize())

    def read(self, offset: int, count: int) -> bytes:
        """Returns bytes of the file, fewer at its end. Raises StoreBroken."""
        file = self._file
        assert file is not None, "the file is held"
        length = max(0, min(count, file.xFileSize() - offset))
        return guarded(lambda: file.xRead(length, offset)) if length else b""

    def end(self) -> None:
        """Lets checkpoints run again."""
        self._log.is_held = False
        if self._file is not None:
            file, self._file = self._file, None
            with suppress(apsw.Error):
                file.xClose()
