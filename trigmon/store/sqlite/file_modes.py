"""The modes of a store's files: what lies in them are messages, also where the directory is open to others."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_OTHERS = 0o007


def keep_others_out(path: Path) -> None:
    """Makes a file that only its user may open, or takes what others may from one that is there.

    What hinders it is told when the file is opened. SQLite gives its log the mode of the database.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with suppress(OSError):
        mode = path.stat().st_mode
        if mode & _OTHERS:
            path.chmod(mode & 0o7777 & ~_OTHERS)
