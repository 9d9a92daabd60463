"""Room of the data directory's own: a file that holds nothing, and is given up for a start on a full disk.

A start writes: the log, who takes the data up, what was in flight. Without room it fails, and the messages that would
make room cannot be got.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

FILE_NAME = "spare"
SIZE = 1 << 20
"""Bytes. The log of a store that is short of room is kept as short (:data:`trigmon.store.sqlite.store.SHORT_PAGES`)."""


class Spare:
    """The file of one data directory; only who holds the directory's lock touches it."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME

    def give_up_where_short(self) -> None:
        """Takes the file away where the disk has less room than it."""
        with suppress(OSError):
            found = os.statvfs(self._path.parent)
            if found.f_bavail * found.f_frsize < SIZE:
                self._path.unlink()

    def make(self) -> None:
        """Makes the file, whole, where it is not; a disk that has no room for it is asked again later."""
        if self._path.exists():
            return
        beside = self._path.with_suffix(".new")
        try:
            made = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(made, 0, SIZE)
            finally:
                os.close(made)
            beside.rename(self._path)
        except OSError:
            with suppress(OSError):
                beside.unlink()
