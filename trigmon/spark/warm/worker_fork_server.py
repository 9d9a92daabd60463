"""The fork server of Spark's Python workers: it has imported what they import, and forks a daemon of workers a kind.

``python -m trigmon.spark.warm.worker_fork_server SOCKET PID``, started by
:mod:`trigmon.spark.warm.worker_start` for the server whose process is PID.

Spark starts a daemon (``pyspark.daemon``) for each kind of worker of each session: four for a session that drains a
queue. Each daemon, and each worker that it forks, would import PySpark, pandas and pyarrow by itself, which takes
longer than a short job. A daemon that is forked here has all of it, and shares its memory.

An order is one connection: three descriptors (0, 1 and 2 of the daemon) beside the working directory, the module of the
workers and the environment, separated by NUL; the answer is ``1`` when the daemon is forked, ``0`` when Python would
start otherwise in that environment than it did here. The daemon keeps the connection to its end.

Spark never ends a daemon, and a session's are of no use to another one. So a daemon without workers ends after
``IDLE_S``; Spark starts another one where the session wants it after all. The fork server ends with the process PID.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import os
import select
import signal
import socket
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path

IDLE_S = 20.0
"""Spark ends a worker that has had nothing to do for 60 seconds."""
_TICK_S = 10.0
_ORDER_S = 5.0
_LONGEST = 1 << 20
_OF_INTERPRETER = (b"PYTHON", b"LD_", b"MALLOC_", b"OPENBLAS_", b"ARROW_")
_OF_DAEMON = b"PYTHON_"
"""Spark's own variables begin so, which Python itself does not read at its start."""
_PATHS, _THREADS = b"PYTHONPATH", b"OMP_NUM_THREADS"
_IMPORTED = (
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark.daemon",
    "pyspark.worker",
    "pyspark.sql.worker.analyze_udtf",
    "pyspark.sql.worker.commit_data_source_write",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.data_source_pushdown_filters",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.worker.write_into_data_source",
    "trigmon.spark.source",
)


class Order:
    """A daemon that is asked for: its connection and descriptors, directory, module of workers, and environment."""

    def __init__(self, link: socket.socket, descriptors: list[int], order: bytes) -> None:
        directory, module, *variables = order.split(b"\0")
        self.link = link
        self.descriptors = descriptors
        self.directory = directory
        self.module = module.decode()
        self.environment = dict(variable.split(b"=", 1) for variable in variables)


def warm_up() -> None:
    """Imports what workers import, and excludes it from garbage collection: so its memory pages stay shared."""
    for name in _IMPORTED:
        with suppress(ImportError):  # another Spark, with other modules
            importlib.import_module(name)
    import numpy

    # Else all workers would have the same random numbers; the module random does so itself.
    os.register_at_fork(after_in_child=numpy.random.seed)
    gc.collect()
    gc.freeze()


def of_interpreter(environment: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Returns the variables that Python and its libraries read when they start.

    Spark names some directories twice to some workers; a worker that plans leaves the number of threads open.
    """
    found = {
        name: value
        for name, value in environment.items()
        if name.startswith(_OF_INTERPRETER) and not name.startswith(_OF_DAEMON)
    }
    found[_PATHS] = b":".join(dict.fromkeys(environment.get(_PATHS, b"").split(b":")))
    found[_THREADS] = environment.get(_THREADS, os.environb.get(_THREADS, b""))
    return found


def received(listener: socket.socket) -> Order | None:
    """Returns the order of the next connection; None where it is none."""
    link, _ = listener.accept()
    link.settimeout(_ORDER_S)
    descriptors: list[int] = []
    try:
        order, descriptors, _, _ = socket.recv_fds(link, 1 << 16, 3)
        while len(order) < _LONGEST and (more := link.recv(1 << 16)):
            order += more
        if len(descriptors) == 3:
            link.settimeout(None)
            return Order(link, descriptors, order)
    except (OSError, ValueError):
        pass
    closed(link, descriptors)
    return None


def closed(link: socket.socket, descriptors: list[int]) -> None:
    """Closes an order's connection and descriptors here."""
    link.close()
    for descriptor in descriptors:
        os.close(descriptor)


def become(order: Order) -> None:
    """Turns the new process into the daemon, and runs it to its end."""
    import pyspark.daemon

    for target, descriptor in enumerate(order.descriptors):
        os.dup2(descriptor, target)
        os.close(descriptor)
    os.chdir(order.directory)
    os.environb.clear()
    os.environb.update(order.environment)
    time.tzset()
    if not os.environ.get("PYTHONSAFEPATH"):
        sys.path.insert(0, os.fsdecode(order.directory))  # as -m has it
    sys.argv = [str(pyspark.daemon.__file__), order.module]
    order.link.sendall(b"1")
    pyspark.daemon.manager()


def has_children(pid: int) -> bool:
    """Returns whether a process has children; True where the kernel does not tell."""
    try:
        return bool(Path(f"/proc/{pid}/task/{pid}/children").read_bytes())
    except OSError:
        return True


class ForkServer:
    """Serves orders until the process ``pidfd`` ends."""

    def __init__(self, listener: socket.socket, pidfd: int) -> None:
        self._listener = listener
        self._pidfd = pidfd
        self._own = of_interpreter(dict(os.environb))
        self._daemons: dict[int, float] = {}

    def serve(self) -> Order | None:
        """Returns the order in each new process, and None in the server at its end."""
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        poll.register(self._pidfd, select.POLLIN)
        look_at = 0.0
        while True:
            ready = dict(poll.poll(1000 * _TICK_S))
            if self._pidfd in ready:
                return None
            if self._listener.fileno() in ready and (order := received(self._listener)):
                if self._forked(order):
                    return order
                closed(order.link, order.descriptors)
            if (now := time.monotonic()) >= look_at:
                self._look(now)
                look_at = now + _TICK_S

    def _forked(self, order: Order) -> bool:
        """Forks and returns True in the new process. What cannot be forked is refused by a closed connection."""
        if of_interpreter(order.environment) != self._own:
            return False
        with warnings.catch_warnings(), suppress(OSError):
            warnings.simplefilter("ignore", DeprecationWarning)  # numpy's own threads wait for work
            pid = os.fork()
            if pid == 0:
                self._listener.close()
                os.close(self._pidfd)
                return True
            self._daemons[pid] = time.monotonic()
        return False

    def _look(self, now: float) -> None:
        """Forgets daemons that have ended, and ends those that have had no worker for long."""
        with suppress(ChildProcessError):
            while (pid := os.waitpid(-1, os.WNOHANG)[0]) > 0:
                self._daemons.pop(pid, None)
        for pid, since in self._daemons.items():
            if has_children(pid):
                self._daemons[pid] = now
            elif now >= since + IDLE_S:
                os.kill(pid, signal.SIGTERM)


def main(path: str, pid: int) -> int:
    """Runs the server, and in each forked process its daemon. Returns the exit status."""
    os.setpgid(0, 0)  # it ends with the process, and not by a signal to its group
    pidfd = os.pidfd_open(pid)
    lock_path = Path(f"{path}.lock")
    with lock_path.open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return 0  # another one is being started
        warm_up()
        Path(path).unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            order = ForkServer(listener, pidfd).serve()
            if order is None:
                for left in (Path(path), lock_path):
                    left.unlink(missing_ok=True)
                return 0
    become(order)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
