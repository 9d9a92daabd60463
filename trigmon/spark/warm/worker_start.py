"""Starts Python for a warm server of Spark: daemons of Python workers are forked, all else is executed.

``python -I -S worker_start.py NAME [WORD ...]``, with the words that Spark gives to Python. A daemon of workers
(``-m pyspark.daemon MODULE``) is forked by the server's fork server (:mod:`trigmon.spark.warm.worker_fork_server`),
whose socket is ``.NAME.sock`` in the directory of the workers' sockets. This process then lasts as long as the daemon,
since Spark closes the daemon's input when it ends. Where there is no fork server, one is started. Where none takes the
daemon over, Python is executed in the place of this process, as without it.

It starts once for each kind of worker of each session, so it imports little: it is no part of the package when it runs.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from array import array

DAEMON = ("-m", "pyspark.daemon")
DIRECTORY = "PYTHON_WORKER_FACTORY_SOCK_DIR"
"""The variable of a daemon with the directory of its socket; Spark sets it where it uses Unix domain sockets."""
FORKING = "trigmon.spark.warm.worker_fork_server"
THREADS = {"OMP_NUM_THREADS": "1"}
"""What Spark sets for workers in tasks, by a task's cores, and leaves open for those that plan."""
_ANSWER_S, _START_S, _PAUSE_S = 5.0, 60.0, 0.02


def main(name: str, words: list[str]) -> None:
    """Waits for the end of a daemon that is forked, or executes Python."""
    directory = os.environ.get(DIRECTORY)
    if tuple(words[:2]) == DAEMON and len(words) == 3 and directory:
        path = f"{directory}/.{name}.sock"
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(_ANSWER_S)
            if (is_connected(link, path) or is_started(link, path)) and is_forked(link, words[2]):
                link.settimeout(None)
                link.recv(1)  # until the daemon has ended
                return
    os.execv(sys.executable, [sys.executable, *words])  # noqa: S606 - what Spark would execute


def is_connected(link: socket.socket, path: str) -> bool:
    """Returns whether there is a fork server, to which the socket is connected then."""
    try:
        link.connect(path)
    except OSError:
        return False
    return True


def is_forked(link: socket.socket, module: str) -> bool:
    """Returns whether the fork server has taken the daemon over, with the descriptors 0, 1 and 2 of this process."""
    try:
        directory = os.getcwdb()  # noqa: PTH109 - to import pathlib would take longer than all of this
        order = b"\0".join([directory, module.encode(), *(b"%b=%b" % pair for pair in os.environb.items())])
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", [0, 1, 2]))]
        sent = link.sendmsg([order], rights)
        link.sendall(order[sent:])
        link.shutdown(socket.SHUT_WR)
        return link.recv(1) == b"1"
    except OSError:
        return False


def is_started(link: socket.socket, path: str) -> bool:
    """Starts a fork server for the process that has started this one, and returns whether it takes orders.

    Its imports take no longer than those of a worker would. Its errors go to that process's standard error. One that
    ends with 0 has found another one that is being started.
    """
    server = os.getppid()
    argv = [sys.executable, "-P", "-m", FORKING, path, str(server)]  # -P: no module of this directory, a session's
    nowhere = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    out = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)
    errors = (os.POSIX_SPAWN_OPEN, 2, f"/proc/{server}/fd/2", os.O_WRONLY | os.O_APPEND, 0)
    try:
        pid = os.posix_spawn(argv[0], argv, THREADS | os.environ, file_actions=[nowhere, out, errors])
    except OSError:
        return False
    until = time.monotonic() + _START_S
    while not is_connected(link, path):
        ended, status = os.waitpid(pid, os.WNOHANG) if pid else (0, 0)
        if status or time.monotonic() >= until:
            return False
        pid = 0 if ended else pid
        time.sleep(_PAUSE_S)
    return True


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
