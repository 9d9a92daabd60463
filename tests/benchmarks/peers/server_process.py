"""The process of a peer: found on PATH, started, awaited, read, and ended with all that it has started."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.processes import cpu_seconds_of_all

READY_S = 600.0
END_S = 20.0
ENDING = (signal.SIGTERM, signal.SIGALRM)
"""The signals that end the command."""
_PR_SET_PDEATHSIG = 1
_MORE_PLACES = "/usr/local/sbin:/usr/sbin:/sbin"


def found(program: str) -> str:
    """Returns the path of a program, blank where it is not installed; servers often lie outside a user's PATH."""
    return shutil.which(program) or shutil.which(program, path=_MORE_PLACES) or ""


def free_port() -> int:
    """Returns a port of this machine's that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextlib.contextmanager
def ending_signals_held_back() -> Iterator[None]:
    """Lets a SIGTERM, and the SIGALRM that repeats it, act afterwards: a child is known only when its fork is over.

    The mask is for the child, which inherits it. In this process a thread of a library may take the signal all the
    same.
    """
    came: list[int] = []
    handlers = {each: signal.signal(each, lambda number, _: came.append(number)) for each in ENDING}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for each, handler in handlers.items():
            signal.signal(each, handler)
        if came:
            signal.raise_signal(came[0])


def end_with_parent(parent: int) -> None:
    """Lets a child, which calls it first of all, be ended by SIGTERM, and when its parent is, however that ends."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the command's handler would wait for locks that others hold
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    if os.getppid() != parent:  # it ended before the child could ask for the signal
        os._exit(1)


def ending_with_this() -> Callable[[], None]:
    """Returns a ``preexec_fn`` for a child that is to end when this process does."""
    return partial(end_with_parent, os.getpid())


class ServerProcess:
    """A server in a session of its own; what it prints goes to a file beside its data."""

    def __init__(self, argv: Sequence[str], home: Path, environment: Mapping[str, str] | None = None) -> None:
        self.log = home / "server.log"
        with self.log.open("ab") as log, ending_signals_held_back():
            self._process = subprocess.Popen(
                argv,
                cwd=home,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=ending_with_this(),
            )

    def wait_until(self, answers: Callable[[], object]) -> None:
        """Waits until this raises no OSError. Raises RuntimeError, with what it printed, when the server ends."""
        deadline = time.monotonic() + READY_S
        while True:
            try:
                answers()
            except OSError as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.end()
                    raise RuntimeError(f"it does not answer: {self.log.read_text()[-2000:]}") from error
                time.sleep(0.02)
            else:
                return

    def cpu_seconds(self) -> float:
        """Returns the CPU seconds of all its processes so far."""
        return cpu_seconds_of_all(self._process.pid)

    def end(self) -> None:
        """Ends it, and what is left of its session."""
        self._process.terminate()
        try:
            self._process.wait(END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
