"""A run that is a program, or is about to be, and how it is found again when nobody tells what became of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from trigmon.keeper import run_directory
from trigmon.launch.keeper_client import Keeper
from trigmon.launch.launch_plan import LaunchPlan, Order
from trigmon.monitor.trigger_plan import DeadLetter
from trigmon.mq.descriptors import MessageDescriptor, TriggerMessage

Letter = tuple[MessageDescriptor, bytes]
"""A trigger message as it came."""


class Limits(msgspec.Struct, frozen=True):
    """What holds for processes whose definitions say nothing: how many at once, how long (0: any time).

    ``grace_s`` is what every program has between SIGTERM and SIGKILL, ``runs`` how many programs a monitor has at a
    time (0: any).
    """

    instances: int = 4
    time_limit_s: float = 0
    grace_s: float = 10
    runs: int = 0


class Child(msgspec.Struct, kw_only=True, eq=False):
    """A run in a monitor's hands.

    ``keeper`` is who keeps it, None while that is not known and where its keeper has died: then ``pidfd`` is the
    program's, or -1 when it has ended. ``kept_by`` names the keeper to ask first. ``pid`` is 0 until it is told.
    ``order``, ``plan`` and ``letter`` are what it was started with; of a run that an earlier monitor had there is only
    the order. ``may_be_unstarted``: that monitor may have ended before it started it. ``kill_at`` is set when it was
    told to end, ``opens_by`` is until when it is to open its queue (0: whenever it likes), and ``ends_by`` until when a
    program without a keeper is to end (0: whenever it likes), all by time.monotonic(). ``base`` is the run's directory;
    ``directory`` is that of its process, another one below where a process was started for what the first had left
    elsewhere. ``ended_as`` is how the run ended, where all that is done yet is to end that.
    ``is_anothers``: its claim names a process that is not the user's as whom it runs.
    """

    order: Order
    directory: Path
    base: Path
    ended_as: dict[str, Any] | None = None
    may_be_unstarted: bool = False
    plan: LaunchPlan | None = None
    letter: Letter | None = None
    keeper: Keeper | None = None
    kept_by: str = ""
    pid: int = 0
    pidfd: int = -1
    kill_at: float = 0.0
    opens_by: float = 0.0
    ends_by: float = 0.0
    is_anothers: bool = False

    @property
    def run_id(self) -> str:
        """Which run it is."""
        return self.order.run_id

    @property
    def trigger(self) -> TriggerMessage:
        """What it was started by."""
        return self.order.trigger


class WriteOff(msgspec.Struct, frozen=True):
    """A run that can never start, until its trigger message lies where it should."""

    verdict: DeadLetter
    letter: Letter


class Exited(msgspec.Struct, frozen=True):
    """It has ended, or failed to start: ``said`` is its exit (:mod:`trigmon.keeper.run_directory`)."""

    said: dict[str, Any]


class KeptBy(msgspec.Struct, frozen=True):
    """A keeper has it, and will tell; ``pid`` and ``start_ms`` are 0 where that is all that is known."""

    keeper: Keeper
    pid: int
    start_ms: int
    argv: list[str]


class NotStarted(msgspec.Struct, frozen=True):
    """Nobody has claimed it, or what was claimed never came to be and is claimed no more."""


class Stray(msgspec.Struct, frozen=True):
    """It runs, and its keeper has died: its end can be seen, and not how it ends."""

    pid: int
    pidfd: int
    start_ms: int
    argv: list[str]


class Lost(msgspec.Struct, frozen=True):
    """It has ended, and nobody saw how."""

    why: str


Found = Exited | KeptBy | NotStarted | Stray | Lost


def find(child: Child, there: Callable[[str], Keeper | None]) -> Found:
    """What became of a run; ``there`` gives the keeper of a name where it runs.

    The keeper is asked first: by then it has done all that anybody had told it. What it no longer keeps has its exit
    written, so that is looked at last.
    """
    keeper = there(child.kept_by)
    claim = run_directory.read(child.directory)
    if claim and (keeper is None or child.run_id not in keeper.runs):
        keeper = there(str(claim.get("keeper", "")))
    said = run_directory.read_exit(child.directory)
    if said is not None:
        return Exited(said)
    if keeper is not None and child.run_id in keeper.runs:
        known = claim or {}
        return KeptBy(keeper, known.get("pid", 0), known.get("start_ms", 0), known.get("argv", []))
    if claim is None:
        return NotStarted() if child.may_be_unstarted else Lost("its directory is gone")
    process = run_directory.open_program(claim, child.run_id)
    if process is not None:
        return Stray(*process, claim.get("start_ms", 0), claim.get("argv", []))
    if run_directory.withdraw(child.directory):
        return NotStarted()
    has_run = child.pid or claim.get("pid")
    return Lost("its keeper was gone when it ended" if has_run else "its keeper ended in the moment of starting it")
