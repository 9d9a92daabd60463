"""Runs as facts: due and running ones, how they ended, pauses and held runs."""

from __future__ import annotations

import msgspec

from trigmon.mq.attributes import Process
from trigmon.rules.model.queue_facts import QueueFacts

BREAKER = "the breaker"
"""The name under which a queue that is not drained is paused: no user has such a name."""


class Paused(msgspec.Struct, frozen=True):
    """A pause of starts: its user, time and reason."""

    what: str  # queue, process, schedule, watch or everything
    name: str  # blank for everything
    by: str
    since_ms: int
    reason: str = ""

    @property
    def is_breaker(self) -> bool:
        """Whether no person did it: runs ended again and again without removing a message."""
        return self.by == BREAKER

    def concerns(self, q_name: object, process_name: object) -> bool:
        """Returns whether the pause holds for runs for this queue, or of this process."""
        concerned = {"queue": q_name, "process": process_name}
        return self.what == "everything" or (self.what in concerned and self.name == concerned[self.what])


class Serving(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run that is due or has a program, and what that has done on its queue. Times are 0 until it happened."""

    run_id: str
    q_name: str
    slot: str  # what instances are counted by: the process, or the program where none is named
    monitor: str = ""
    first_open_ms: int = 0
    first_get_ms: int = 0
    opens: int = 0  # its handles for input
    taken: int = 0  # messages it got; then committed or backed out
    committed: int = 0
    backed_out: int = 0
    put_aside: int = 0  # moved out of its way as poison
    is_over: bool = False  # it has ended, and its connections have not
    user: str = ""  # as whom it runs, blank where that is not known: no other user's connection is its program's
    batches: int = 0  # reservations that it settled to their end
    settled_ms: int = 0  # when the last of them was
    # Some of its processes run on a cluster; their connections come over TCP and have no user.
    is_elsewhere: bool = False


class Cause(msgspec.Struct, frozen=True):
    """How the last runs of a process for a queue ended."""

    slot: str
    q_name: str
    failed: int = 0  # in a row
    fruitless: int = 0  # in a row: ended without removing a message while some were left
    until_ms: int = 0  # the next is not started before


class EndedRun(msgspec.Struct, frozen=True, gc=False):
    """What is counted of a run that has ended."""

    ended_ms: int
    state: str
    q_name: str
    process_name: str = ""
    exit_status: int | None = None
    start_ms: int = 0  # 0 where it never became a process
    was_stopped: bool = False  # by its monitor's stop


class Line(msgspec.Struct, frozen=True):
    """The held runs of one process for one queue from one initiation queue."""

    initiation_q: str
    slot: str
    q_name: str
    count: int  # how many they are
    run_ids: tuple[str, ...]  # the first of them
    queue: QueueFacts | None
    process: Process | None
    cause: Cause | None
