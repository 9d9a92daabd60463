"""The interface of launchers: the order that comes in, the plan that goes out, the error that refuses an order."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import msgspec

from trigmon.mq.attributes import Process
from trigmon.mq.descriptors import TriggerMessage


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One program to start: what the trigger message says, and what its process definition adds.

    ``address`` is what the started program connects to (a queue manager's name, or an address with a colon).
    ``occasion`` is the number of the trigger condition that fired ("" when the trigger message does not name one).
    ``triggered_ms`` is when the trigger message was written, 0 where that is not known. ``put_traceparent`` is the span
    of the put that fired, ``traceparent`` the one that the program belongs to, both "" for none. Where the queue is one
    of a queue manager elsewhere, ``bridge`` names the bridge, ``q_mgr_name`` that queue manager, and by ``variables``
    IBM's MQI finds it.
    """

    run_id: str
    q_mgr_name: str
    trigger: TriggerMessage
    process: Process
    address: str = ""
    occasion: str = ""
    triggered_ms: int = 0
    put_traceparent: str = ""
    traceparent: str = ""
    bridge: str = ""
    variables: dict[str, str] = {}

    @property
    def shown_q_name(self) -> str:
        """The queue's name in records, logs and metrics."""
        return f"{self.trigger.q_name}@{self.q_mgr_name}" if self.bridge else self.trigger.q_name


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """The Spark Connect session that a run needs: on which server, and with which settings and files.

    ``remote`` is an external server (``sc://...``); "": one that the monitor keeps, with this ``master``.
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
    """The exact execution: argument list, additions to the environment, working directory ("": the monitor's own).

    ``fork`` are the words by which a fork server runs the same, [] where none can. ``interpreter`` is Python with its
    options, where that server is a warm interpreter, which imports ``modules`` in advance. ``session`` is the Spark
    Connect session in which it works; the server's address is added when the server is ready.
    ``user`` is the user it runs as ("": the monitor's own). A limit of 0 is none: memory in MiB, processor time in
    seconds, open files. ``secrets`` are files by the names under which the program finds them.
    """

    argv: list[str]
    environment: dict[str, str]
    working_directory: str = ""
    fork: list[str] = []
    interpreter: list[str] = []
    modules: list[str] = []
    session: Session | None = None
    user: str = ""
    memory_limit_mib: int = 0
    cpu_limit_s: int = 0
    open_files_limit: int = 0
    secrets: dict[str, str] = {}


class Lead(msgspec.Struct, frozen=True):
    """How the progress of a running Spark application can be read, as far as it is known ("": not yet, or never).

    ``url`` is its driver's web server. ``tag`` is part of the tags of its jobs, where the server has jobs of others.
    ``driver_id`` is the driver's id at a cluster's master. ``page_key`` is the key of its web server.
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

    ``errors`` names the output files that show why a program of this type failed, the most important one last.
    """

    @property
    def errors(self) -> tuple[str, ...]:
        """See the class."""

    def plan(self, order: Order) -> LaunchPlan:
        """Returns the plan for ``order``. Raises LaunchError; looks for programs, but starts none."""

    def record_fields(self, order: Order, directory: Path) -> dict[str, str]:
        """Returns further fields of the run's record, read from the output of its program.

        Two names in it are no fields of the record. ``unknown`` is the reason why the outcome of the run is not known
        though its process has ended. ``status`` is the run's exit status, where the end of its process was not seen.
        """

    def lead(self, order: Order, directory: Path, pid: int) -> Lead | None:
        """Returns how the run of this process can be followed; None: it never can."""

    def again(self, order: Order, directory: Path, *, ends: bool) -> LaunchPlan | None:
        """Returns the plan for a run whose process was killed and has left work elsewhere; None when it has not.

        The plan goes on with that work and does not begin it anew; with ``ends`` it ends that work.
        """

    def tend(self) -> None:
        """Performs work that should not delay a start. Called when the end of a run has been recorded. Is quick."""
