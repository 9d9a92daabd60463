"""Unix domain sockets between a driver and its Python workers, in a directory that only their user may enter.

By default Spark uses ports on the loopback interface, which every user of this machine reaches. Spark 4.1 and later can
use Unix domain sockets instead (``spark.python.unix.domain.socket.enabled``). They ask for no secret, so the directory
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

from trigmon.launch.spark.conf_options import conf_options

_ENABLED, _DIRECTORY = "spark.python.unix.domain.socket.enabled", "spark.python.unix.domain.socket.dir"
_LONGEST = 107 - len("/.12345678-1234-1234-1234-123456789012.sock")
"""Bytes of the directory's name: the kernel takes 107 for a socket's, unix(7)."""
_AGE_S = 60.0


def settings(directory: Path) -> dict[str, str]:
    """Makes the directory and returns settings of Spark; none where its name is too long: then Spark uses ports.

    Raises OSError.
    """
    where = directory.absolute()
    if len(os.fsencode(where)) > _LONGEST:
        return {}
    where.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {_ENABLED: "true", _DIRECTORY: str(where)}


def options(directory: Path, of_job: Mapping[str, str]) -> list[str]:
    """Returns the settings as options of SparkSubmit; none where the job has one of them itself. Raises OSError."""
    if _ENABLED in of_job or _DIRECTORY in of_job:
        return []
    return conf_options(settings(directory))


def remove_stale(directory: Path) -> None:
    """Removes the sockets that killed processes left behind."""
    before = time.time() - _AGE_S  # the process of a younger one may not listen yet
    for path in directory.glob(".*.sock"):
        with suppress(OSError):
            if path.stat().st_mtime < before and _is_unowned(path):
                path.unlink()


def _is_unowned(path: Path) -> bool:
    """Returns whether no process has this socket. A listener of the other type refuses the probe unseen."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        return probe.connect_ex(str(path.absolute())) == errno.ECONNREFUSED
