"""Reading the files that somebody names: only regular ones, since a FIFO or a device may be waited for for ever."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

STANDARD_INPUT = "-"

_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}
# What is open already: standard input, and a shell's <(command).
_INHERITED = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
# Somebody has to name or place something else. All other errors can pass: no room, an I/O error, a right that lacks.
_WRONG_NAME = {
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EINVAL,
}


def opened(path: str | Path) -> BinaryIO:
    """Returns a regular file, opened. ``-``, /dev/stdin and /dev/fd/N are what they are: they are open already.

    Raises OSError, for what is no regular file too, which is then not opened.
    """
    name = os.fspath(path)
    if name == STANDARD_INPUT:
        return os.fdopen(os.dup(0), "rb")
    is_inherited = name.startswith(_INHERITED)
    kind = stat.S_IFMT(Path(name).stat().st_mode)
    if kind != stat.S_IFREG and (kind == stat.S_IFDIR or not is_inherited):
        text = f"it is not a regular file but {_KINDS.get(kind, 'something else')}"
        raise OSError(errno.EINVAL, text, name)
    # Not blocking: a FIFO may have taken the file's place since.
    return os.fdopen(os.open(name, os.O_RDONLY | os.O_CLOEXEC | (0 if is_inherited else os.O_NONBLOCK)), "rb")


def read(path: str | Path) -> bytes:
    """Returns the bytes of a file, as :func:`opened` opens it. Raises OSError."""
    with opened(path) as file:
        return file.read()


def act_as_owner(path: Path) -> None:
    """Makes root's process act, from now on, as the owner of this directory or of the nearest that exists above it.

    What it writes there then belongs to the account that uses it. Does nothing for other users.
    """
    if os.geteuid() == 0:
        there = next(each for each in (path, *path.parents) if each.exists()).stat()
        os.setegid(there.st_gid)
        os.seteuid(there.st_uid)


def can_pass(error: OSError) -> bool:
    """Returns whether an error of a file can pass without anybody saying anything else in the settings."""
    return error.errno not in _WRONG_NAME
