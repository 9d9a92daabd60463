"""One program in a keeper's keeping, and which processes belong to it.

Standard library only: the keeper imports it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Container, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from trigmon.launch import claims, talk

STDOUT, STDERR = "stdout", "stderr"
"""The files that a program's output goes to, in the run's directory."""


class NotExecutedError(OSError):
    """The kernel refused to execute the program, or its working directory."""


class Kept:
    """A program, started by being made: in a session of its own, with its output in its run's directory.

    ``order`` is the frame that asked for it. Raises NotExecutedError, OSError when its files cannot be made, and
    ValueError for what could never be executed.
    """

    def __init__(self, order: talk.Said, null: int) -> None:
        self.run_id = str(order["run"])
        self.directory = Path(order["directory"])
        self.grace_s = float(order["grace_s"])
        with (self.directory / STDOUT).open("xb") as out, (self.directory / STDERR).open("xb") as err:
            try:
                self._popen = subprocess.Popen(
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
        self.pid = self._popen.pid
        self.start_ms = now_ms()
        self._limit_s = float(order["time_limit_s"])
        self.due_at = time.monotonic() + self._limit_s if self._limit_s else 0.0
        self._why = ""

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to its whole process group; only while it has not been waited for."""
        with suppress(OSError):
            os.killpg(self.pid, number)

    def end(self, why: str, grace_s: float) -> None:
        """SIGTERM now (which one that is stopped gets too), SIGKILL when the grace is over."""
        if self._why:
            return
        self._why = why
        self.grace_s = grace_s
        self.due_at = time.monotonic() + grace_s
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)

    def keep_time(self, now: float) -> None:
        """Ends it when its time is up."""
        if not self.due_at or now < self.due_at:
            return
        if self._why:
            self.due_at = 0.0
            self.signal(signal.SIGKILL)
        else:
            self.end(talk.TIME_LIMIT, self.grace_s)

    def ended(self) -> claims.Fields:
        """Waits for it, which has ended; what is to be known of that."""
        return {
            "run": self.run_id,
            "pid": self.pid,
            "start_ms": self.start_ms,
            "end_ms": now_ms(),
            "status": self._popen.wait(),
            "why": self._why,
            "limit_s": self._limit_s,
        }


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
