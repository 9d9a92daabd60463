"""The parent of a keeper: who kills the keeper has not killed it, so no program's end is lost.

It does next to nothing, so there is little that could end it. As a subreaper (prctl(2)) it becomes the parent of a
killed keeper's programs, and makes the next keeper, a copy of itself, which takes up what :class:`Known` says. A
program that ends then is seen here, told to that keeper, and waited for when the keeper has written its end down.
A keeper whose parent was killed becomes the parent of the next keeper in turn. Only where both are killed at once may
an end stay unknown.

The keeper says, in the words of :mod:`trigmon.keeper.protocol`: ``starts`` (a run, before its process is made),
``known`` (what a later keeper must know of a run with a process), ``failed`` (it has none), ``why`` (what ends it) and
``reap`` (its end is written). It is told ``ended`` (``pid``, ``status``, ``cpu_s``). Standard library only.
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


class Parent:
    """A keeper's connection to its parent. Nothing is sent any more when that has gone."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self._lines = protocol.Lines()
        self.pid = os.getppid()
        link.settimeout(_SENT_S)

    def send(self, say: str, **fields: Any) -> None:
        """Sends a message; :meth:`receive` notices a parent that has gone."""
        with suppress(OSError):
            self.link.sendall(protocol.line(say, **fields), socket.MSG_NOSIGNAL)

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
    """The parent of one keeper at a time; ``known`` are the runs whose processes it has, or would have."""

    def __init__(self, keeper: int, link: socket.socket, known: Known) -> None:
        self.known = known
        self._keeper = keeper
        self._link = link
        self._lines = protocol.Lines()
        self._starts: dict[str, Any] | None = None
        self._told: set[int] = set()
        link.settimeout(_SENT_S)

    def watch(self, signals: int) -> int:
        """Returns how its keeper ended, as waitstatus_to_exitcode says. ``signals`` is readable when one has come."""
        while (status := self._look()) is None:
            ready, _, _ = select.select([signals, self._link.fileno()], [], [])
            if signals in ready and signal.SIGTERM in os.read(signals, 4096):
                os.kill(self._keeper, signal.SIGTERM)
            if self._link.fileno() in ready and not self._hear():
                _, ended = os.waitpid(self._keeper, 0)  # it closes its end by ending
                status = os.waitstatus_to_exitcode(ended)
                break
        while self._hear():
            pass
        self._settle()
        there = set(children())
        self.known = {pid: known for pid, known in self.known.items() if pid in there or "ended" in known}
        return status

    def _look(self) -> int | None:
        """Tells of programs that have ended. Returns the keeper's status when it has."""
        there = list(children())  # before the keeper is looked at: what it leaves is not in this list
        if self._has_ended(self._keeper):
            _, status = os.waitpid(self._keeper, 0)
            return os.waitstatus_to_exitcode(status)
        for pid in there:
            if not (found := self._has_ended(pid)):
                continue
            if pid not in self.known:
                os.waitpid(pid, os.WNOHANG)
            elif pid not in self._told:
                self._told.add(pid)
                said = protocol.line("ended", pid=pid, status=status_of(found), cpu_s=used_s(pid))
                with suppress(OSError):
                    self._link.sendall(said, socket.MSG_NOSIGNAL)
        return None

    def _has_ended(self, pid: int) -> Any:
        with suppress(ChildProcessError):
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return None

    def _hear(self) -> bool:
        try:
            data = self._link.recv(1 << 16)
        except OSError:
            data = b""
        for said in self._lines.feed(data) if data else ():
            self._heard(said)
        return bool(data)

    def _heard(self, said: protocol.Message) -> None:
        if said["say"] == "starts":
            self._starts = said
        elif said["say"] == "known":
            self.known[said["pid"]] = said
            self._starts = None
        elif said["say"] == "failed":
            self._starts = None
        elif said["say"] == "why" and said["pid"] in self.known:
            self.known[said["pid"]] |= said
        elif said["say"] == "reap":
            self.known.pop(said["pid"], None)
            self._told.discard(said["pid"])
            if self._has_ended(said["pid"]):
                os.waitpid(said["pid"], os.WNOHANG)

    def _settle(self) -> None:
        """Finds the process of the run that the keeper was starting when it was killed."""
        starts, until = self._starts, time.monotonic() + _SETTLES_S
        if starts is None:
            return
        own = _cmdline(os.getpid())
        while time.monotonic() < until and any(_cmdline(pid) == own for pid in self._strangers()):
            time.sleep(0.001)  # made, and about to execute the program
        if not run_directory.has_begun(Path(starts["directory"])):
            return
        alive = (pid for pid in self._strangers() if run_directory.is_program_of(pid, starts["run"]))
        ended = (pid for pid in self._strangers() if _leads(pid) and self._has_ended(pid))
        pid = next(alive, 0) or next(ended, 0)
        if pid:
            self.known[pid] = {**starts, "pid": pid, "start_ms": run_directory.now_ms()}

    def _strangers(self) -> list[int]:
        return [pid for pid in children() if pid not in self.known]


def children(of: int = 0) -> Iterator[int]:
    """The process ids of a process's children (0: this one's), those it was left with among them."""
    pid = of or os.getpid()
    try:
        yield from [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_bytes().split()]
    except OSError:  # a kernel without the list, or it has gone
        yield from [each for each in run_directory.all_processes() if parent_of(each) == pid]


def status_of(found: Any) -> int:
    """A child's status as subprocess gives it, of what waitid says."""
    return int(found.si_status if found.si_code == os.CLD_EXITED else -found.si_status)


def used_s(pid: int) -> float:
    """The processor time that a process which has ended used, and those it waited for."""
    return sum(int(word) for word in _stat(pid)[11:15]) / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[bytes]:
    """proc_pid_stat(5) from its third field on; [] where there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


def parent_of(pid: int) -> int:
    """The process id of a process's parent, 0 when there is no such process."""
    stat = _stat(pid)
    return int(stat[1]) if stat else 0


@contextmanager
def open_process(pid: int) -> Iterator[int]:
    """A pidfd. Raises OSError when there is no such process."""
    descriptor = os.pidfd_open(pid)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _leads(pid: int) -> bool:
    stat = _stat(pid)
    return bool(stat) and int(stat[3]) == pid


def _cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
