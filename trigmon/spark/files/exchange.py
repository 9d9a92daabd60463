"""Two system calls of Linux that Python has not: the exchange of two directories, and a sync of one file system."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

_EXCHANGE = 2
_HERE = -100


def exchange(one: Path, other: Path) -> None:
    """Exchanges the names of two directories, atomically (renameat2). Raises OSError."""
    _call("renameat2", _HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE)


def sync_file_system(path: Path) -> None:
    """Forces all that was written to the file system of a path to the disk (syncfs). Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _call("syncfs", descriptor)
    finally:
        os.close(descriptor)


def _call(name: str, *arguments: int | bytes) -> None:
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    if function(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
