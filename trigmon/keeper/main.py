"""The process of a keeper, which starts a monitor's programs and records how they end.

``python -m trigmon.keeper.main NAME [RUNS]`` with a listening socket as descriptor 3, as
:mod:`trigmon.launch.keeper_client` starts it, in a session of its own. It takes the orders of
:mod:`trigmon.keeper.protocol`, and ends by itself when it has nothing to keep and no monitor has been connected for a
while. With the directory RUNS it first adopts the systemd units of an earlier keeper of its name.

The process is two: a parent (:mod:`trigmon.keeper.subreaper`) and the keeper (:mod:`trigmon.keeper.keeper`), which is a
copy of it. So nothing is lost when a keeper is killed.

Standard library only, and little of it: it is started while a launch waits.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trigmon.keeper import protocol
from trigmon.keeper.keeper import Keeper
from trigmon.keeper.private_memory import keep_memory_private
from trigmon.keeper.subreaper import Known, Parent, Subreaper

_PR_SET_CHILD_SUBREAPER = 36
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_TRY_AGAIN_S = 1.0


def main() -> None:
    """Runs the process: the parent of a keeper, which is a copy of it, or that keeper."""
    keep_memory_private()
    prctl = ctypes.CDLL(None).prctl
    # A monitor's unit may give it the right to change users. It is the keeper's then, and no program's.
    prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    os.umask(0o077)
    listener = socket.socket(fileno=protocol.LISTENER)
    listener.set_inheritable(False)
    os.chdir("/")  # it keeps no file system busy
    # Handled and not ignored: what is ignored here would be ignored in every program too.
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _ignore)
    known: Known = {}
    while True:
        above, below = socket.socketpair()
        unread = os.eventfd(0, os.EFD_CLOEXEC)
        keeper = os.fork()
        (below if keeper else above).close()
        if keeper:
            status, known = _watch(Subreaper(keeper, above, unread, known))
            above.close()
            os.close(unread)
            if status == 0:
                return
            if status > 0:  # it failed, and may again
                time.sleep(_TRY_AGAIN_S)
        else:
            prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # no fork has it
            left = _keep(listener, Parent(below, unread), known)
            os.close(unread)
            if left is None:
                return
            known = left


def _watch(parent: Subreaper) -> tuple[int, Known]:
    """Watches a keeper. Returns how it ended, and what is known of the runs that it leaves."""
    with _signals() as signals:
        return parent.watch(signals), parent.known


def _keep(listener: socket.socket, parent: Parent, known: Known) -> Known | None:
    """Runs the keeper. Returns what is known of its runs when this process is to be the next keeper's parent."""
    with _signals() as signals:
        keeper = Keeper(sys.argv[1], listener, parent=parent, known=known)
        if sys.argv[2:]:
            keeper.adopt_units(Path(sys.argv[2]))
        return None if keeper.serve(signals) else keeper.close()


@contextmanager
def _signals() -> Iterator[int]:
    """Yields the wake-up descriptor: it is readable when a signal has come, for this process alone."""
    signals, woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    os.write(woken, bytes([signal.SIGCHLD]))  # for what came before
    try:
        yield signals
    finally:
        signal.set_wakeup_fd(-1)
        os.close(signals)
        os.close(woken)


def _ignore(_number: int, _frame: Any) -> None:
    """Ignores the signal: the wake-up descriptor becomes readable all the same."""


if __name__ == "__main__":
    main()
