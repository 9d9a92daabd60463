"""One program in a keeper's keeping, and which processes belong to it.

Standard library only: the keeper imports it. What most keepers never need is imported where it is needed, for a launch
waits while a keeper starts.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import subprocess
import time
import traceback
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Protocol

from trigmon.launch import claims, talk
from trigmon.launch.ending import Run

STDOUT, STDERR = "stdout", "stderr"
"""The files that a program's output goes to, in the run's directory."""


_RIGHTS = 1 << 6 | 1 << 7
"""CAP_SETGID and CAP_SETUID, as capabilities(7) numbers them."""


class NotExecutedError(OSError):
    """The kernel refused to execute the program, or its working directory."""


class Program(Protocol):
    """A started program."""

    pid: int

    def wait(self) -> int:
        """Its status when it has ended, as subprocess gives it."""


Begin = Callable[[talk.Said, int, IO[bytes], IO[bytes]], Program]


class Kept(Run):
    """A program, started by being made: in a session of its own, with its output in its run's directory.

    ``order`` is the frame that asked for it, ``begin`` what makes a process of it: the ordinary way, unless it is said.
    Raises NotExecutedError, OSError when its files cannot be made, and ValueError for what could never be executed.
    """

    def __init__(self, order: talk.Said, null: int, begin: Begin | None = None) -> None:
        self._limit_s = float(order["time_limit_s"])
        directory = Path(order["directory"])
        super().__init__(str(order["run"]), directory, grace_s=float(order["grace_s"]), time_limit_s=self._limit_s)
        user, limits = order.get("user") or {}, order.get("limits") or {}
        self._cpu_limit_s = int(limits.get("cpu_s", 0))
        self._has_secrets = bool(order.get("secrets"))
        environment = order["environment"]
        try:
            if self._has_secrets:
                from trigmon.launch import credentials

                owner = (user["uid"], user["gid"]) if user else (-1, -1)
                put = str(credentials.put(directory, order["secrets"], *owner))
                order = {**order, "environment": {**environment, credentials.VARIABLE: put}}
            with (directory / STDOUT).open("xb") as out, (directory / STDERR).open("xb") as err:
                self._program = (begin or begun)(order, null, out, err)
        except BaseException:
            self._forget_secrets()
            raise
        self.pid = self._program.pid
        self.start_ms = now_ms()

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to its whole process group; only while it has not been waited for."""
        if self.pid > 0:  # one that is just being forked has none yet
            with suppress(OSError):
                os.killpg(self.pid, number)

    def ended(self) -> claims.Fields:
        """Waits for it, which has ended; what is to be known of that. Its secrets go."""
        status = self._program.wait()
        self._forget_secrets()
        return {
            "run": self.run_id,
            "pid": self.pid,
            "start_ms": self.start_ms,
            "end_ms": now_ms(),
            "status": status,
            "why": self.why or self._why_cpu(status),
            "limit_s": self._limit_s,
        }

    def _why_cpu(self, status: int) -> str:
        """Whether its limit of processor time ended it: by the kernel's own signal, or by SIGKILL when that is spent.

        A shell hands its program's signal on as 128 and the number.
        """
        used_s = getattr(self._program, "cpu_s", 0.0)
        number = -status if status < 0 else status - 128
        is_it = number == signal.SIGXCPU or (number == signal.SIGKILL and used_s >= self._cpu_limit_s)
        return talk.cpu_limit(self._cpu_limit_s) if self._cpu_limit_s and is_it else ""

    def _forget_secrets(self) -> None:
        if self._has_secrets:
            from trigmon.launch import credentials

            try:
                credentials.remove(self.directory)
            except OSError:
                traceback.print_exc()


def begun(order: talk.Said, null: int, out: IO[bytes], err: IO[bytes]) -> Program:
    """Makes a process of an order. Raises NotExecutedError, OSError and ValueError."""
    is_plain = not (order.get("user") or order.get("limits"))
    return (_started if is_plain else _forked)(order, null, out, err)


def _started(order: talk.Said, null: int, out: IO[bytes], err: IO[bytes]) -> Program:
    """The ordinary way: no fork, and nothing between the keeper and the program."""
    try:
        return subprocess.Popen(
            order["argv"],
            stdin=null,
            stdout=out,
            stderr=err,
            cwd=order["working_directory"],
            env=order["environment"],
            start_new_session=True,
        )
    except OSError as error:
        raise NotExecutedError(error.errno, error.strerror) from error


def _forked(order: talk.Said, null: int, out: IO[bytes], err: IO[bytes]) -> Program:
    """As another user, or with limits."""
    from trigmon.launch import forked

    user = order.get("user") or {}
    if user:
        for file in (out, err):  # its /dev/stdout is opened anew, and the monitor still reads both
            with suppress(OSError):
                os.fchmod(file.fileno(), 0o640)
                os.fchown(file.fileno(), user["uid"], -1)
    try:
        return forked.start(
            order["argv"],
            order["environment"],
            order["working_directory"],
            (null, out.fileno(), err.fileno()),
            user=user,
            limits=order.get("limits") or {},
            credentials=order["environment"]["CREDENTIALS_DIRECTORY"] if order.get("secrets") else "",
        )
    except forked.Refused as error:
        raise NotExecutedError(error.errno, error.strerror) from error


def may_change_users(link: socket.socket) -> bool:
    """Whether who is at the other end has itself the right to become other users: nobody borrows a keeper's."""
    pid = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    try:
        lines = Path(f"/proc/{pid}/status").read_bytes().splitlines()
    except OSError:
        return False
    effective = next((int(line.split()[1], 16) for line in lines if line.startswith(b"CapEff:")), 0)
    return effective & _RIGHTS == _RIGHTS


class Named(Protocol):
    """Anything that says which run it is of."""

    @property
    def run_id(self) -> str:
        """The run."""


def run_behind(pid: int, leaders: Mapping[int, Named]) -> str:
    """Which run a process belongs to: by its session, else by its environment; "" when neither tells."""
    with suppress(OSError):
        leader = leaders.get(os.getsid(pid))
        if leader is not None:
            return leader.run_id
    return claims.run_of(pid)


def children() -> list[int]:
    """The process ids of this process's children, those it was left with among them."""
    pid = os.getpid()
    try:
        return [int(word) for word in Path(f"/proc/self/task/{pid}/children").read_bytes().split()]
    except FileNotFoundError:  # a kernel without the list
        return [int(entry.name) for entry in Path("/proc").iterdir() if _is_child(entry, {pid})]


def _is_child(entry: Path, of: Container[int]) -> bool:
    if not entry.name.isdecimal():
        return False
    try:
        return int((entry / "stat").read_bytes().rpartition(b")")[2].split()[1]) in of
    except (OSError, IndexError):
        return False


def now_ms() -> int:
    """Milliseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1_000_000
