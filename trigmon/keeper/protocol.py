"""The protocol between a monitor and its keeper: JSON lines over a Unix socket in the monitors' directory.

The monitor sends

========  ==================================================================================================
start     ``run``, ``argv``, ``environment`` (all of it), ``working_directory``, ``directory`` (the run's,
          to be made), ``time_limit_s`` (0: none), ``grace_s`` (between SIGTERM and SIGKILL); where there is
          any, ``user`` (``name uid gid groups``), ``limits`` (``memory_mib cpu_s open_files``) and
          ``secrets`` (files by name); ``launcher`` (process, systemd); ``fork`` (the arguments by which the
          fork server would run it, where one is ready: argv otherwise), and ``interpreter`` where that is a
          warm interpreter and not the fork server of Spark's jobs: ``argv`` (Python and its options),
          ``modules`` (to be imported in advance), ``without`` (the variables that each run has for itself);
          of a helper, ``lease_s``
keep      ``run``, ``lease_s``: a helper is wanted for so long from now on
warm      ``argv``, ``environment``: a fork server of Spark's jobs with these arguments is to be kept; or, with
          ``interpreter``, ``environment``, ``working_directory``: a warm interpreter, for runs of this kind
cool      no fork server of Spark's jobs is to be kept any more; what it has made runs on
stop      ``run``, ``why``, ``grace_s``: SIGTERM to its process group, and SIGKILL after the grace
bye       it disconnects; a keeper with nothing to keep and no other monitor ends at once
========  ==================================================================================================

and the keeper

========  ==================================================================================================
hello     the first message, sent when all earlier orders are carried out: ``pid``, ``runs`` (the ids of those
          it keeps)
started   ``run``, ``pid``, ``start_ms``
ended     what :mod:`trigmon.keeper.run_directory` writes as the run's exit
failed    likewise, where no program came to be: ``errno`` (0: not the kernel's refusal to execute it), ``error``
warm      ``pid``: a fork server is ready
later     ``run``, ``error``: no program came of it and nothing is left of it, for want of room; it may be asked for
          again
taken     ``run``: another start has claimed it, so nothing was started; or it never came to be
========  ==================================================================================================

Each object's ``say`` is its type; an end ignores the types that it does not know, for a keeper may be older than its
monitor. Standard library only: the keeper imports it.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Message = dict[str, Any]
"""One object of a connection, with its type as ``say``."""

LISTENER = 3
"""The descriptor of its listening socket that a keeper is started with."""

TIME_LIMIT = "time limit"
"""Why a run was ended: it took longer than it may."""
STOPPED = "monitor stopped"
"""Why a run was ended: its monitor was stopped, and its programs with it."""
CANCELLED = "cancelled"
"""Why a run was ended: an operator asked for it."""
NOT_OPENED = "not opened"
"""Why a run was ended: it had not opened the queue it was started for within OPENWAIT."""
SERVER_LOST = "server lost"
"""Why a run was ended: the Spark Connect server that it worked in has ended."""
KEEPER_ENDED = "keeper ended"
"""Why a run was ended: its keeper got SIGTERM."""
OUT_OF_MEMORY = "the kernel, for want of memory"
"""Why a run was ended: it, or the machine, had used up its memory. Only systemd tells."""

PROCESS, SYSTEMD = "process", "systemd"
"""What a program is started as: a process of the keeper's, or a transient unit of systemd's."""


def cpu_limit(seconds: int) -> str:
    """Returns why a run was ended: it used more processor time than it may."""
    return f"its limit of {seconds} s of processor time"


def line(say: str, **fields: Any) -> bytes:
    """Returns one object as a line of JSON, ready to send."""
    return json.dumps({"say": say, **fields}).encode() + b"\n"


class Lines:
    """Reads JSON lines from bytes as they are received. Raises ValueError for what is no JSON."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Message]:
        """Returns the objects that are complete with these bytes."""
        *whole, self._rest = (self._rest + data).split(b"\n") if b"\n" in data else [self._rest + data]
        return [json.loads(one) for one in whole]


@contextmanager
def address(directory: Path, name: str) -> Iterator[str]:
    """Yields a path to a socket that is short enough for a socket's address, whatever the directory is called."""
    descriptor = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}"
    finally:
        os.close(descriptor)


def listen(directory: Path, name: str) -> socket.socket:
    """Returns a listening socket of this name, for its owner alone; one that was left there goes."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(listener.fileno(), 0o600)  # before it has a name, so that no other user ever finds it open
        (directory / name).unlink(missing_ok=True)
        with address(directory, name) as path:
            listener.bind(path)
        listener.listen(16)
    except BaseException:
        listener.close()
        raise
    return listener


def connected(directory: Path, name: str) -> socket.socket | None:
    """Returns a connection to the listening socket of this name; None when there is none."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with address(directory, name) as path:
            link.connect(path)
    except (FileNotFoundError, ConnectionRefusedError):
        link.close()
        return None
    except BaseException:
        link.close()
        raise
    return link
