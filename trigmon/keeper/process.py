"""One program that a keeper runs as its own process, and which processes belong to it.

Standard library only: the keeper imports it. What most keepers never need is imported where it is needed, for a launch
waits while a keeper starts.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from trigmon.keeper import protocol, run_directory
from trigmon.keeper.keeper_log import report
from trigmon.keeper.run_directory import STDERR, STDOUT, now_ms
from trigmon.keeper.termination import Run

_RIGHTS = 1 << 6 | 1 << 7
"""CAP_SETGID and CAP_SETUID, as capabilities(7) numbers them."""

NO_ROOM = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
)
"""What passes: the program could be started when there is room again."""

_KNOWN = ("run", "directory", "time_limit_s", "grace_s", "lease_s", "limits")


class NotExecutedError(OSError):
    """The kernel refused to execute the program, or its working directory."""


class ProgramProcess(Run):
    """A program as a process in a session of its own, with its output in its run's directory.

    ``order`` is the message that asked for it, or the :attr:`known` of a killed keeper's run. ``is_left``: the process
    is a child of this keeper's parent, left by a killed keeper. ``is_forked``: a fork server made it.
    ``cpu_limit_s`` is how much processor time it may use (0: any), ``ticks`` when it started, in clock ticks since boot
    (0: that is to be asked for).
    """

    is_forked = False
    ticks = 0

    def __init__(self, order: protocol.Message, *, is_left: bool = False) -> None:
        self.order = order
        self.is_left = is_left
        self.limit_s = float(order["time_limit_s"])
        directory = Path(order["directory"])
        super().__init__(str(order["run"]), directory, grace_s=float(order["grace_s"]), time_limit_s=self.limit_s)
        self.cpu_limit_s = int((order.get("limits") or {}).get("cpu_s", 0))
        if is_left:
            self._take_over(order)

    def _take_over(self, known: protocol.Message) -> None:
        self.pid, self.start_ms = known["pid"], known["start_ms"]
        if self.limit_s:
            self.due_at -= (now_ms() - self.start_ms) / 1000
        if known.get("why"):  # it was to end, and its grace begins anew
            self.end(known["why"], self.grace_s)

    @property
    def known(self) -> protocol.Message:
        """What a later keeper must know of it; no more, for its environment may hold secrets."""
        kept = {name: self.order[name] for name in _KNOWN if name in self.order}
        more = {"pid": self.pid, "start_ms": self.start_ms, "why": self.why}
        return kept | more | {"secrets": bool(self.order.get("secrets"))}

    def start(self, null: int) -> None:
        """Starts the process. Raises NotExecutedError, OSError where its files or it cannot be made, ValueError."""
        order, user = self.order, self.order.get("user") or {}
        try:
            if order.get("secrets"):
                from trigmon.keeper import credentials

                owner = (user["uid"], user["gid"]) if user else (-1, -1)
                put = str(credentials.put(self.directory, order["secrets"], *owner))
                self.order = {**order, "environment": {**order["environment"], credentials.VARIABLE: put}}
            with output_files(self.directory, os.O_EXCL) as (out, err):
                self.pid, self.ticks = self._made(null, out, err)
        except BaseException:
            self._forget_secrets()
            raise
        self.start_ms = now_ms()

    def _made(self, null: int, out: int, err: int) -> tuple[int, int]:
        return start_process(self.order, null, out, err)

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to its whole process group; only while it has not been waited for."""
        if self.pid > 0:  # one that is just being forked has none yet
            with suppress(OSError):
                os.killpg(self.pid, number)

    def ended(self, status: int, cpu_s: float) -> run_directory.Fields:
        """Removes its secrets and returns the fields of its exit."""
        self._forget_secrets()
        return {
            "run": self.run_id,
            "pid": self.pid,
            "start_ms": self.start_ms,
            "end_ms": now_ms(),
            "status": status,
            "why": self.why or self._why_cpu(status, cpu_s),
            "limit_s": self.limit_s,
        }

    def _why_cpu(self, status: int, used_s: float) -> str:
        """Returns the limit of processor time as the reason when it ended the program, else "".

        The signal is SIGXCPU, or SIGKILL once the limit is used up. A shell passes its program's signal on as
        128 plus the number.
        """
        number = -status if status < 0 else status - 128
        is_it = number == signal.SIGXCPU or (number == signal.SIGKILL and used_s >= self.cpu_limit_s)
        return protocol.cpu_limit(self.cpu_limit_s) if self.cpu_limit_s and is_it else ""

    def _forget_secrets(self) -> None:
        if self.order.get("secrets"):
            from trigmon.keeper import credentials

            try:
                credentials.remove(self.directory)
            except OSError:
                report()


@contextmanager
def output_files(directory: Path, how: int) -> Iterator[tuple[int, int]]:
    """Yields the descriptors of the files that a program's output goes to; ``how``: with these flags of open(2)."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how
    out = os.open(directory / STDOUT, flags, 0o600)
    try:
        err = os.open(directory / STDERR, flags, 0o600)
        try:
            yield out, err
        finally:
            os.close(err)
    finally:
        os.close(out)


def start_process(order: protocol.Message, null: int, out: int, err: int) -> tuple[int, int]:
    """Starts the process of an order and returns its id and its ticks, 0 for ticks that are to be asked for.

    Raises NotExecutedError, OSError and ValueError.
    """
    is_plain = not (order.get("user") or order.get("limits"))
    ticks = run_directory.ticks_now()
    pid = (_spawned if is_plain else _forked)(order, null, out, err)
    # In the tick of its start it need not be asked for: that waits for what the kernel does to execute it.
    return pid, ticks if ticks == run_directory.ticks_now() else 0


def _spawned(order: protocol.Message, null: int, out: int, err: int) -> int:
    """Starts it by posix_spawn, the ordinary way: only the mark that it has begun is made before it executes."""
    mark = Path(order["directory"]) / run_directory.BEGUN
    try:
        os.chdir(order["working_directory"])
        return os.posix_spawn(
            order["argv"][0],
            order["argv"],
            order["environment"],
            file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 0),
                (os.POSIX_SPAWN_DUP2, out, 1),
                (os.POSIX_SPAWN_DUP2, err, 2),
                (os.POSIX_SPAWN_OPEN, protocol.LISTENER, str(mark), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600),
                (os.POSIX_SPAWN_CLOSE, protocol.LISTENER),
            ],
            setsid=True,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores them, and so would the program
        )
    except OSError as error:
        if error.errno in NO_ROOM and not mark.exists():
            raise
        raise NotExecutedError(error.errno, error.strerror) from error
    finally:
        os.chdir("/")  # a keeper keeps no file system busy


def _forked(order: protocol.Message, null: int, out: int, err: int) -> int:
    """Starts it by a fork, as another user or with limits."""
    from trigmon.keeper import spawn

    user = order.get("user") or {}
    if user:
        for file in (out, err):  # its /dev/stdout is opened anew, and the monitor still reads both
            with suppress(OSError):
                os.fchmod(file, 0o640)
                os.fchown(file, user["uid"], -1)
    try:
        return spawn.start(
            order["argv"],
            order["environment"],
            order["working_directory"],
            (null, out, err),
            user=user,
            limits=order.get("limits") or {},
            credentials=order["environment"]["CREDENTIALS_DIRECTORY"] if order.get("secrets") else "",
            mark=Path(order["directory"]) / run_directory.BEGUN,
        )
    except spawn.ExecRefusedError as error:
        raise NotExecutedError(error.errno, error.strerror) from error


def may_change_users(link: socket.socket) -> bool:
    """Returns whether the process at the other end may itself change users: the keeper lends nobody its right."""
    pid = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    try:
        lines = Path(f"/proc/{pid}/status").read_bytes().splitlines()
    except OSError:
        return False
    effective = next((int(line.split()[1], 16) for line in lines if line.startswith(b"CapEff:")), 0)
    return effective & _RIGHTS == _RIGHTS


class Named(Protocol):
    """Anything that belongs to a run."""

    @property
    def run_id(self) -> str:
        """The run."""


def run_behind(pid: int, leaders: Mapping[int, Named]) -> str:
    """Returns which run a process belongs to: by its session, else by its environment; "" when neither tells."""
    with suppress(OSError):
        leader = leaders.get(os.getsid(pid))
        if leader is not None:
            return leader.run_id
    return run_directory.run_of(pid)
