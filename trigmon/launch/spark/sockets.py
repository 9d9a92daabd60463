"""Where a driver and its Python workers speak to each other: sockets in a directory that its user alone may enter.

Spark's own way is ports on the loopback interface, which every user of this machine reaches. Spark 4.1 and later can
use Unix domain sockets instead (``spark.python.unix.domain.socket.enabled``); they ask for no secret, so the directory
has to be private. An earlier Spark does not know the setting and keeps its ports.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

_ENABLED, _DIRECTORY = "spark.python.unix.domain.socket.enabled", "spark.python.unix.domain.socket.dir"
_LONGEST = 107 - len("/.12345678-1234-1234-1234-123456789012.sock")
"""Bytes of the directory's name: the kernel takes 107 for a socket's, unix(7)."""
_AGE_S = 60.0


def options(directory: Path, said: Mapping[str, str]) -> list[str]:
    """What SparkSubmit is told, with the directory made; nothing where the job says one of the settings itself.

    Nothing either where the directory's name is too long: then there are ports, as before. Raises OSError.
    """
    where = directory.absolute()
    if _ENABLED in said or _DIRECTORY in said or len(os.fsencode(where)) > _LONGEST:
        return []
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    return ["--conf", f"{_ENABLED}=true", "--conf", f"{_DIRECTORY}={where}"]


def remove_stale(directory: Path) -> None:
    """Removes the sockets that killed processes left behind."""
    before = time.time() - _AGE_S  # a younger one may be between its file and its socket
    for path in directory.glob(".*.sock"):
        with suppress(OSError):
            if path.stat().st_mtime < before and _is_nobodys(path):
                path.unlink()


def _is_nobodys(path: Path) -> bool:
    """Whether no process has this socket. A link of the wrong type is refused, and so disturbs no one."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        return probe.connect_ex(str(path.absolute())) == errno.ECONNREFUSED
