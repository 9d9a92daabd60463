"""The file with the token of the web console: this user's alone, or a credential that systemd hands in."""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

_TOKEN = re.compile(r"[A-Za-z0-9_-]{43,128}")
_OTHERS, _GROUP_OR_OTHERS = 0o007, 0o077


def token_of(path: Path) -> str:
    """Returns the token that a file holds; one that is not there is written with a new token.

    Raises ValueError for a file that others may read, or that holds no token, and OSError where it cannot be read or
    written.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return _written(path)
    with os.fdopen(number, "rb") as file:
        found = os.fstat(file.fileno())
        # A credential of systemd is root's, and may be readable for this user by an ACL, which shows as the group's.
        closed_to = _GROUP_OR_OTHERS if found.st_uid == os.geteuid() else _OTHERS
        if not stat.S_ISREG(found.st_mode) or found.st_uid not in (0, os.geteuid()) or found.st_mode & closed_to:
            raise ValueError(f"{path} is no file of this user alone: chmod 600 {path}")
        token = file.read(256).decode("ascii", "replace").strip()
    if not _TOKEN.fullmatch(token):
        raise ValueError(f"{path} holds no token, which has 43 to 128 letters and digits: openssl rand -hex 32")
    return token


def _written(path: Path) -> str:
    token = secrets.token_urlsafe(32)
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(number, "w") as file:
        file.write(f"{token}\n")
    return token
