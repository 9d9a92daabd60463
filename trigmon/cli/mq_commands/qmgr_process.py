"""What crtmqm, strmqm, endmqm and dltmqm have in common: is a queue manager there, and the process that runs it.

Here a queue manager is a process, ``trigmon run``, which makes its store at its first start. For a service systemd does
what these commands do.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import sys
import time
from pathlib import Path

from trigmon import paths
from trigmon.mq.names import is_object_name

DONE, RUNNING, EXISTS, DOES_NOT_EXIST, WRONG_OPTIONS, NOT_AVAILABLE, FAILED, NAME_ERROR = 0, 5, 8, 16, 39, 40, 71, 72
START_S = 60.0
END_S = 60.0
_LOOK_S = 0.02


def is_running(name: str) -> bool:
    """Returns whether the queue manager of this name answers."""
    return paths.answers(paths.find_socket(name))


def is_name(name: str) -> bool:
    """Returns whether this can be a queue manager's name."""
    return is_object_name(name)


def has_store(name: str) -> bool:
    """Returns whether the queue manager has a store where this user's would have it."""
    return (paths.data_directory(name) / "qm.db").exists()


def log_file(name: str) -> Path:
    """Returns where the log of a queue manager goes that strmqm starts."""
    return paths.data_directory(name).parent / f"{paths.file_name(name)}.log"


def start(name: str) -> int:
    """Starts a queue manager in the background, with its monitor, and waits until it answers; 0, or its exit status."""
    log = log_file(name)
    log.parent.mkdir(parents=True, exist_ok=True)
    argv = [sys.executable, "-P", "-m", "trigmon", "--qmgr", name, "run"]
    environment = {key: value for key, value in os.environ.items() if key != "TRIGMON_QMGR"}
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, descriptor, 1),
        (os.POSIX_SPAWN_DUP2, descriptor, 2),
    ]
    try:
        pid = os.posix_spawn(argv[0], argv, environment, file_actions=actions, setsid=True)
    finally:
        os.close(descriptor)
    deadline = time.monotonic() + START_S
    while not paths.answers(paths.socket_path(name)):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) or FAILED
        if time.monotonic() > deadline:
            return FAILED
        time.sleep(_LOOK_S)
    return DONE


def end(name: str) -> str:
    """Asks the process of a queue manager to stop and waits for its end; returns why it did not, "" where it did."""
    pid = _pid(paths.find_socket(name))
    unit = f"if it is a service: systemctl stop trigmon@{name}.socket trigmon@{name}.service"
    if not _is_ours(pid):
        return f"its socket is another program's (process {pid}); {unit}"
    try:
        descriptor = os.pidfd_open(pid)
        signal.pidfd_send_signal(descriptor, signal.SIGTERM)
    except ProcessLookupError:
        return ""
    except PermissionError:
        return f"process {pid} is another user's; {unit}"
    with os.fdopen(descriptor) as process:
        is_gone = bool(select.select([process], [], [], END_S)[0])
    return "" if is_gone else f"process {pid} has not ended within {END_S:g} seconds"


def _pid(path: Path) -> int:
    """Returns the process that listens on a socket; of a socket that systemd made it is systemd's."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.connect(str(path))
        raw = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", raw)[0])


def _is_ours(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return pid > 1 and b"run" in words and any(b"trigmon" in word for word in words)
