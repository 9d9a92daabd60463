"""A run that is a program, or is about to be, and how it is found again when nobody tells what became of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from trigmon.launch import claims
from trigmon.launch.keeping import Keeper
from trigmon.launch.port import LaunchPlan, Order
from trigmon.monitor.plan import DeadLetter
from trigmon.mq.descriptors import MessageDescriptor, TriggerMessage

Letter = tuple[MessageDescriptor, bytes]
"""A trigger message as it came."""


class Limits(msgspec.Struct, frozen=True):
    """What holds for processes whose definitions say nothing: how many at once, how long (0: any time).

    ``grace_s`` is what every program has between SIGTERM and SIGKILL.
    """

    instances: int = 4
    time_limit_s: float = 0
    grace_s: float = 10


class Child(msgspec.Struct, kw_only=True, eq=False):
    """A run in a monitor's hands.

    ``keeper`` is who keeps it, None while that is not known and where its keeper has died: then ``pidfd`` is the
    program's, or -1 when it has ended. ``kept_by`` names the keeper to ask first. ``pid`` is 0 until it is told.
    ``order``, ``plan`` and ``letter`` are what it was started with; of a run that an earlier monitor started there is
    only the order, and only where the run may have to be started yet. ``kill_at`` is set when it was told to end.
    """

    run_id: str
    trigger: TriggerMessage
    directory: Path
    order: Order | None = None
    plan: LaunchPlan | None = None
    letter: Letter | None = None
    keeper: Keeper | None = None
    kept_by: str = ""
    pid: int = 0
    pidfd: int = -1
    kill_at: float = 0.0


class WriteOff(msgspec.Struct, frozen=True):
    """A run that can never start, until its trigger message lies where it should."""

    trigger: TriggerMessage
    verdict: DeadLetter
    letter: Letter


class Exited(msgspec.Struct, frozen=True):
    """It has ended, or failed to start: ``said`` is its exit (:mod:`trigmon.launch.claims`)."""

    said: dict[str, Any]


class KeptBy(msgspec.Struct, frozen=True):
    """A keeper has it, and will tell; ``pid`` and ``start_ms`` are 0 where that is all that is known."""

    keeper: Keeper
    pid: int
    start_ms: int


class NotStarted(msgspec.Struct, frozen=True):
    """Nobody has claimed it."""


class Stray(msgspec.Struct, frozen=True):
    """It runs, and its keeper has died: its end can be seen, and not how it ends."""

    pid: int
    pidfd: int
    start_ms: int


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
    claim = claims.read(child.directory)
    if claim and (keeper is None or child.run_id not in keeper.runs):
        keeper = there(str(claim.get("keeper", "")))
    said = claims.read_exit(child.directory)
    if said is not None:
        return Exited(said)
    if keeper is not None and child.run_id in keeper.runs:
        return KeptBy(keeper, (claim or {}).get("pid", 0), (claim or {}).get("start_ms", 0))
    if claim is None:
        return NotStarted() if child.order is not None else Lost("its directory is gone")
    process = claims.open_program(claim, child.run_id)
    if process is not None:
        return Stray(*process, claim.get("start_ms", 0))
    has_run = child.pid or claim.get("pid")
    return Lost("its keeper was gone when it ended" if has_run else "its keeper ended in the moment of starting it")
