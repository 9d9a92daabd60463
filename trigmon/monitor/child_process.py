"""A run's program, running or about to start, and how it is found again when no keeper reports on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from trigmon.keeper import run_directory
from trigmon.launch.keeper_client import Keeper
from trigmon.launch.launch_plan import LaunchPlan, Order
from trigmon.mq.descriptors import TriggerMessage

"""A trigger message as it came."""


class Limits(msgspec.Struct, frozen=True):
    """Limits of processes whose definitions set none: how many at once, how long in seconds (0: any time).

    ``grace_s`` is the time in seconds between SIGTERM and SIGKILL, ``runs`` how many programs a monitor has at a time
    (0: any).
    """

    instances: int = 4
    time_limit_s: float = 0
    grace_s: float = 10
    runs: int = 0


class Child(msgspec.Struct, kw_only=True, eq=False):
    """A run that this monitor supervises.

    ``keeper`` is its keeper, None while that is not known and where its keeper has died: then ``pidfd`` is the
    program's, or -1 when it has ended. ``kept_by`` names the keeper to ask first. ``pid`` is 0 until it is known.
    ``order`` and ``plan`` are what it was started with; of a run that an earlier monitor had there is
    only the order. ``may_be_unstarted``: that monitor may have ended before it started it. ``kill_at`` is set when it
    was asked to end, ``opens_by`` is until when it is to open its queue (0: no limit), and ``ends_by`` until when a
    program without a keeper is to end (0: no limit), all by time.monotonic(). ``base`` is the run's directory;
    ``directory`` is that of its process, another one below where a process was started for what the first had left
    elsewhere. ``ended_as`` is how the run ended, where all that is done yet is to end that.
    ``is_unopened_there``: its queue is elsewhere, and it did not have it open when its time to open it was over.
    ``is_of_another_user``: its claim names a process of another user than the one that it runs as.
    """

    order: Order
    directory: Path
    base: Path
    ended_as: dict[str, Any] | None = None
    may_be_unstarted: bool = False
    plan: LaunchPlan | None = None
    keeper: Keeper | None = None
    kept_by: str = ""
    pid: int = 0
    pidfd: int = -1
    kill_at: float = 0.0
    opens_by: float = 0.0
    ends_by: float = 0.0
    is_of_another_user: bool = False
    is_unopened_there: bool = False

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self.order.run_id

    @property
    def trigger(self) -> TriggerMessage:
        """The trigger message that started it."""
        return self.order.trigger


class Exited(msgspec.Struct, frozen=True):
    """The program has ended, or failed to start: ``exit_fields`` is its exit (:mod:`trigmon.keeper.run_directory`)."""

    exit_fields: dict[str, Any]


class KeptBy(msgspec.Struct, frozen=True):
    """A keeper has the program and will report its end; ``pid`` and ``start_ms`` are 0 where not known."""

    keeper: Keeper
    pid: int
    start_ms: int
    argv: list[str]


class NotStarted(msgspec.Struct, frozen=True):
    """No keeper has claimed the run, or its program never started and the claim was withdrawn."""


class Unowned(msgspec.Struct, frozen=True):
    """An unowned process: it runs and its keeper has died, so its end can be seen, but not its exit status."""

    pid: int
    pidfd: int
    start_ms: int
    argv: list[str]


class Lost(msgspec.Struct, frozen=True):
    """The program has ended, and no keeper saw how."""

    why: str


Found = Exited | KeptBy | NotStarted | Unowned | Lost


def find(child: Child, there: Callable[[str], Keeper | None]) -> Found:
    """Returns what became of a run; ``there`` returns the running keeper of a name, or None.

    The keeper is asked first: its answer comes after everything that it was asked before. It has written the exit of a
    run that it no longer has, so the exit is read last.
    """
    keeper = there(child.kept_by)
    claim = run_directory.read(child.directory)
    if claim and (keeper is None or child.run_id not in keeper.runs):
        keeper = there(str(claim.get("keeper", "")))
    exit_fields = run_directory.read_exit(child.directory)
    if exit_fields is not None:
        return Exited(exit_fields)
    if keeper is not None and child.run_id in keeper.runs:
        known = claim or {}
        return KeptBy(keeper, known.get("pid", 0), known.get("start_ms", 0), known.get("argv", []))
    if claim is None:
        return NotStarted() if child.may_be_unstarted else Lost("its directory is gone")
    process = run_directory.open_program(claim, child.run_id)
    if process is not None:
        return Unowned(*process, claim.get("start_ms", 0), claim.get("argv", []))
    if run_directory.withdraw(child.directory):
        return NotStarted()
    has_run = child.pid or claim.get("pid")
    return Lost("its keeper was gone when it ended" if has_run else "its keeper ended in the moment of starting it")


def now_ms() -> int:
    """Returns milliseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1_000_000
