"""Directories of runs that are made before there are runs for them, so that a claim is one rename.

A launch waits for each file that is made for it, and for long where a disk is busy. The keeper makes a few directories
in advance, with the first line of the claim and empty output files, when it has had nothing to start for a moment. A
claim gives one of them the name of its run; like mkdir(2) that fails where the name is taken. Where none is left, or
the file system cannot do it, the directory is made (:func:`trigmon.keeper.run_directory.make`).

Standard library only: the keeper imports it.
"""

from __future__ import annotations

import ctypes
import errno
import os
import time
from contextlib import suppress
from pathlib import Path

from trigmon.keeper import run_directory

_MOST = 4
_AFTER_S = 0.02
_AT_FDCWD, _RENAME_NOREPLACE = -100, 1
_rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


class PreparedDirectories:
    """The prepared directories of one keeper, all of them in the runs' directory that it used last."""

    def __init__(self, keeper: str) -> None:
        self._keeper = keeper
        self._ready: list[Path] = []
        self._parent: Path | None = None
        self.due_at: float | None = None
        """When :meth:`keep_time` is due, by the monotonic clock; None when it is not."""

    def claim(self, directory: Path) -> bool:
        """Gives a prepared directory this name. Returns False where none can have it.

        Raises FileExistsError when the run is claimed. The claim is durable only after run_directory.make_durable.
        """
        if _rename is None:
            return False
        self.due_at = time.monotonic() + _AFTER_S
        if directory.parent != self._parent:
            self.close()
            self._parent = directory.parent
        while self._ready:
            prepared = self._ready.pop()
            if not _rename(_AT_FDCWD, os.fsencode(prepared), _AT_FDCWD, os.fsencode(directory), _RENAME_NOREPLACE):
                return True
            number = ctypes.get_errno()
            if number == errno.EEXIST:
                self._ready.append(prepared)
                raise FileExistsError(number, os.strerror(number), str(directory))
            run_directory.remove(prepared)  # somebody removed it, or no such rename is possible here
        return False

    def keep_time(self, now: float) -> None:
        """Makes what is wanted, when that is due; a disk without room is tried again behind the next start."""
        if self.due_at is None or now < self.due_at or self._parent is None:
            return
        self.due_at = None
        taken = {prepared.name for prepared in self._ready}
        names = [f".{self._keeper}.{number}" for number in range(_MOST)]
        with suppress(OSError):
            for name in names:
                if name not in taken:
                    self._ready.append(self._made(self._parent / name))

    def _made(self, directory: Path) -> Path:
        if directory.exists():  # left by a keeper that was killed
            run_directory.remove(directory)
        run_directory.make(directory, self._keeper, marks=True)
        try:
            for name in (run_directory.STDOUT, run_directory.STDERR):
                (directory / name).touch(mode=0o600)
        except OSError:
            run_directory.remove(directory)
            raise
        return directory

    def close(self) -> None:
        """Removes what was prepared."""
        for prepared in self._ready:
            run_directory.remove(prepared)
        self._ready.clear()
