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
from trigmon.launch.ending import Run

STDOUT, STDERR = "stdout", "stderr"
"""The files that a program's output goes to, in the run's directory."""


class NotExecutedError(OSError):
    """The kernel refused to execute the program, or its working directory."""


class Kept(Run):
    """A program, started by being made: in a session of its own, with its output in its run's directory.

    ``order`` is the frame that asked for it. Raises NotExecutedError, OSError when its files cannot be made, and
    ValueError for what could never be executed.
    """

    def __init__(self, order: talk.Said, null: int) -> None:
        directory = Path(order["directory"])
        with (directory / STDOUT).open("xb") as out, (directory / STDERR).open("xb") as err:
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
        self._limit_s = float(order["time_limit_s"])
        super().__init__(str(order["run"]), directory, grace_s=float(order["grace_s"]), time_limit_s=self._limit_s)
        self.pid = self._popen.pid
        self.start_ms = now_ms()

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to its whole process group; only while it has not been waited for."""
        with suppress(OSError):
            os.killpg(self.pid, number)

    def ended(self) -> claims.Fields:
        """Waits for it, which has ended; what is to be known of that."""
        return {
            "run": self.run_id,
            "pid": self.pid,
            "start_ms": self.start_ms,
            "end_ms": now_ms(),
            "status": self._popen.wait(),
            "why": self.why,
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
