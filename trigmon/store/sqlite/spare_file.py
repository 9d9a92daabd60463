"""A reserve file in the data directory that is deleted when the queue manager starts on a full disk.

A start writes to the log: the owner of the data and the recovery of units in flight. Without free space it would fail,
and nobody could get the messages that fill the disk.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

FILE_NAME = "spare"
SIZE = 1 << 20
"""Bytes. On a nearly full disk the log is kept as short (:data:`trigmon.store.sqlite.turn_log.SHORT_BYTES`)."""


class Spare:
    """The reserve file of one data directory; only the process that holds the directory's lock uses it."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME

    def give_up_where_short(self) -> None:
        """Deletes the file if the disk has less free space than its size."""
        with suppress(OSError):
            found = os.statvfs(self._path.parent)
            if found.f_bavail * found.f_frsize < SIZE:
                self._path.unlink()

    def make(self) -> None:
        """Creates the file at its full size if it is missing; does nothing on a full disk."""
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
