"""What every way of launching has in common: the order that comes in, the plan that goes out, the refusal."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import msgspec

from trigmon.mq.attributes import Process
from trigmon.mq.descriptors import TriggerMessage


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One program to start: what the trigger message says, and what its process definition adds.

    ``address`` is what the started program connects to (a queue manager's name, or an address with a colon);
    ``occasion`` is the number of the law's row that fired ("" when the trigger message does not tell).
    """

    run_id: str
    q_mgr_name: str
    trigger: TriggerMessage
    process: Process
    address: str = ""
    occasion: str = ""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """What a run needs of a Spark Connect server: whose, and of what the session is made.

    ``remote`` is somebody else's server (``sc://...``); "": one that is kept here, with this ``master``.
    """

    remote: str = ""
    master: str = ""
    name: str = ""
    conf: dict[str, str] = {}
    py_files: list[str] = []
    files: list[str] = []
    archives: list[str] = []
    jars: list[str] = []


class LaunchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Exactly what will be executed: argument list, additions to the environment, working directory ("" = ours).

    ``fork`` are the words by which a fork server runs the same, [] where none can. ``session`` is that of a Spark
    Connect server in which it works: what names the server is added when it is there.
    ``user`` is as whom ("": the monitor's own user). The limits are 0 where there is none: memory in MiB, processor
    time in seconds, open files. ``secrets`` are files by the names under which the program finds them.
    """

    argv: list[str]
    environment: dict[str, str]
    working_directory: str = ""
    fork: list[str] = []
    session: Session | None = None
    user: str = ""
    memory_limit_mib: int = 0
    cpu_limit_s: int = 0
    open_files_limit: int = 0
    secrets: dict[str, str] = {}


class Lead(msgspec.Struct, frozen=True):
    """Where a running Spark application can be followed, as far as is known by now ("": not yet, or never).

    ``url`` is its driver's web server. ``tag`` is part of the tags of its jobs, where not all there are its own.
    ``driver_id`` is what a cluster's master calls its driver. ``page_key`` is what its web server asks for.
    """

    application_id: str = ""
    url: str = ""
    tag: str = ""
    driver_id: str = ""
    page_key: str = ""


class LaunchError(Exception):
    """An order cannot become a running program; the text says why and, where there is one, the remedy."""


STDOUT, STDERR = "stdout", "stderr"


class Launcher(Protocol):
    """Turns orders of one application type into plans.

    ``errors`` names the output files that tell why a program of this type failed, the telling one last.
    """

    @property
    def errors(self) -> tuple[str, ...]:
        """See the class."""

    def plan(self, order: Order) -> LaunchPlan:
        """The plan for ``order``. Raises LaunchError; looks for programs, but starts none."""

    def told(self, order: Order, directory: Path) -> dict[str, str]:
        """What the run's record is to hold besides, from what its program wrote.

        Two names in it are no fields of the record: ``unknown`` says why nobody knows how the run ended, though its
        process did; ``status`` is the run's, for where nobody saw its process end.
        """

    def lead(self, order: Order, directory: Path, pid: int) -> Lead | None:
        """Where the run that is this process can be followed; None: there is nothing to follow, now or ever."""

    def again(self, order: Order, directory: Path, *, ends: bool) -> LaunchPlan | None:
        """The plan for a run whose process was killed and has left work elsewhere; None when it has not.

        It is to go on with that work, not to do it anew; ``ends``: to end it, for the run is to be over.
        """

    def tend(self) -> None:
        """Called when a run has ended and that is noted: whatever had better not happen while one starts. Quick."""
