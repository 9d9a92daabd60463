"""The modes of a store's files: they hold messages, so other users get no access whatever the directory's mode."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_OTHERS = 0o007


def keep_others_out(path: Path) -> None:
    """Creates the file with mode 0600, or removes the permissions of others from an existing file.

    Errors are ignored here: opening the file reports them. SQLite gives its log the mode of the database.
    """
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    with suppress(OSError):
        mode = path.stat().st_mode
        if mode & _OTHERS:
            path.chmod(mode & 0o7777 & ~_OTHERS)
