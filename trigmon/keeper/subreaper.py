"""The parent of a keeper: it outlives a killed keeper, so no program's exit status is lost.

It does next to nothing, so little could end it. As a subreaper (prctl(2)) it becomes the parent of a killed keeper's
programs, and forks the next keeper, which takes over the runs in ``Known``. When one of those programs ends, it reports
that to the keeper, and waits for the process (waitpid) when the keeper has written the exit. A keeper whose parent was
killed becomes the parent of the next keeper in turn. Only where both are killed while a program runs may its exit stay
unknown: it is neither's child then.

The keeper sends, in the format of :mod:`trigmon.keeper.protocol`: ``starts`` (a run, before its process is made),
``known`` (what a later keeper must know of a run with a process), ``failed`` (it has none), ``why`` (what ends it) and
``reap`` (its exit is written). The parent needs that when the keeper has ended: it is woken for many messages at once,
and for the ``reap`` of a process that is its own child. The keeper receives ``ended`` (``pid``, ``status``, ``cpu_s``).
Standard library only.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from trigmon.keeper import protocol, run_directory

Known = dict[int, dict[str, Any]]
"""What is to be known of the runs with processes, by process id; ``ended`` is an end that only is to be written."""

_SETTLES_S = 2.0
_SENT_S = 1.0
_MOST_UNREAD = 16
"""Of so many messages the parent reads while there is room for as many again. Long ones fill the socket before."""


class Parent:
    """A keeper's connection to its parent. Nothing is sent any more when that has gone.

    ``unread`` is the eventfd by which the parent is woken to receive.
    """

    def __init__(self, link: socket.socket, unread: int) -> None:
        self.link = link
        self._unread = unread
        self._sent = 0
        self._lines = protocol.Lines()
        self.pid = os.getppid()
        link.settimeout(_SENT_S)

    def send(self, say: str, **fields: Any) -> None:
        """Sends a message; :meth:`receive` notices a parent that has gone."""
        is_full = not select.select([], [self.link], [], 0)[1]  # a quarter of it, for a socket of this kind
        if is_full or self._sent >= _MOST_UNREAD:
            self.wake()
        with suppress(OSError):
            self.link.sendall(protocol.line(say, **fields), socket.MSG_NOSIGNAL)
        self._sent += 1

    def wake(self) -> None:
        """Lets the parent receive what was sent."""
        self._sent = 0
        os.eventfd_write(self._unread, 1)

    def receive(self) -> list[protocol.Message] | None:
        """Returns the messages since the last call; None when the parent has gone."""
        try:
            data = self.link.recv(1 << 16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return []
        except OSError:
            return None
        return self._lines.feed(data) if data else None


class Subreaper:
    """The parent of one keeper at a time; ``known`` are the runs whose processes it has, or would have.

    ``unread`` is the eventfd by which the keeper wakes it.
    """

    def __init__(self, keeper: int, link: socket.socket, unread: int, known: Known) -> None:
        self.known = known
        self._keeper = keeper
        self._link = link
        self._unread = unread
        self._lines = protocol.Lines()
        self._left = set(known)
        self._starts: dict[str, Any] | None = None
        self._reported: set[int] = set()
        link.settimeout(_SENT_S)

    def watch(self, signals: int) -> int:
        """Waits for the keeper's end; returns its waitstatus_to_exitcode. ``signals`` is readable when one has come."""
        while (status := self._look()) is None:
            ready, _, _ = select.select([signals, self._unread], [], [])
            if signals in ready and signal.SIGTERM in os.read(signals, 4096):
                os.kill(self._keeper, signal.SIGTERM)
            if self._unread in ready:
                os.eventfd_read(self._unread)
                self._receive()
        self._receive()
        self._settle()
        there = set(children())
        self.known = {pid: known for pid, known in self.known.items() if pid in there or "ended" in known}
        return status

    def _look(self) -> int | None:
        """Reports programs that have ended. Returns the keeper's exit status when it has ended."""
        # Made before the keeper is looked at: what it leaves is not in this list.
        there = [pid for pid in children() if pid != self._keeper]
        if self._has_ended(self._keeper):
            _, status = os.waitpid(self._keeper, 0)
            return os.waitstatus_to_exitcode(status)
        for pid in there:
            if not (found := self._has_ended(pid)):
                continue
            if pid not in self.known:
                os.waitpid(pid, os.WNOHANG)
            elif pid not in self._reported:
                self._reported.add(pid)
                message = protocol.line("ended", pid=pid, status=status_of(found), cpu_s=used_s(pid))
                with suppress(OSError):
                    self._link.sendall(message, socket.MSG_NOSIGNAL)
        return None

    def _has_ended(self, pid: int) -> Any:
        with suppress(ChildProcessError):
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return None

    def _receive(self) -> None:
        """Handles all that the keeper has sent."""
        with suppress(OSError):  # it died with something unread
            while select.select([self._link], [], [], 0)[0] and (data := self._link.recv(1 << 16)):
                for message in self._lines.feed(data):
                    self._handle(message)

    def _handle(self, message: protocol.Message) -> None:
        if message["say"] == "starts":
            self._starts = message
        elif message["say"] == "known":
            self.known[message["pid"]] = message
            self._starts = None
        elif message["say"] == "failed":
            self._starts = None
        elif message["say"] == "why" and message["pid"] in self.known:
            self.known[message["pid"]] |= message
        elif message["say"] == "reap":
            self.known.pop(message["pid"], None)
            self._reported.discard(message["pid"])
            # Any other was the keeper's child: its number may be that of a program which the keeper has left since.
            if message["pid"] in self._left and self._has_ended(message["pid"]):
                self._left.discard(message["pid"])
                os.waitpid(message["pid"], os.WNOHANG)

    def _settle(self) -> None:
        """Finds the process of the run that the keeper was starting when it was killed."""
        starts, until = self._starts, time.monotonic() + _SETTLES_S
        if starts is None:
            return
        own = _cmdline(os.getpid())
        while time.monotonic() < until and any(self._is_to_execute(pid, own) for pid in self._unknown_children()):
            time.sleep(0.001)
        if not run_directory.has_begun(Path(starts["directory"])):
            return
        alive = (pid for pid in self._unknown_children() if run_directory.is_program_of(pid, starts["run"]))
        ended = (pid for pid in self._unknown_children() if _leads(pid) and self._has_ended(pid))
        pid = next(alive, 0) or next(ended, 0)
        if pid:
            self.known[pid] = {**starts, "pid": pid, "start_ms": run_directory.now_ms()}

    def _unknown_children(self) -> list[int]:
        return [pid for pid in children() if pid not in self.known]

    def _is_to_execute(self, pid: int, keepers: bytes) -> bool:
        """Returns whether a process was made by the keeper and is still to execute, or just executes, its program.

        Until then it has the keeper's command line, ``keepers``. In the middle of its execve(2) it has none, and no
        environment to know it by.
        """
        return _cmdline(pid) in (keepers, b"") and not self._has_ended(pid)


def children(of: int = 0) -> Iterator[int]:
    """Yields the process ids of a process's children (0: this one's), those it was left with among them."""
    pid = of or os.getpid()
    try:
        yield from [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()]
    except OSError:  # a kernel without the list, or it has gone
        yield from [each for each in run_directory.all_processes() if parent_of(each) == pid]


def status_of(found: Any) -> int:
    """Returns the exit status of a waitid result as subprocess gives it: minus the signal when one ended it."""
    return int(found.si_status if found.si_code == os.CLD_EXITED else -found.si_status)


def used_s(pid: int) -> float:
    """Returns the processor time that a process which has ended used, and those it waited for, in seconds."""
    return sum(int(word) for word in run_directory.stat_fields(pid)[11:15]) / os.sysconf("SC_CLK_TCK")


def parent_of(pid: int) -> int:
    """Returns the process id of a process's parent, 0 when there is no such process."""
    stat = run_directory.stat_fields(pid)
    return int(stat[1]) if stat else 0


@contextmanager
def open_process(pid: int) -> Iterator[int]:
    """Yields a pidfd of a process. Raises OSError when there is no such process."""
    descriptor = os.pidfd_open(pid)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _leads(pid: int) -> bool:
    stat = run_directory.stat_fields(pid)
    return bool(stat) and int(stat[3]) == pid


def _cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
