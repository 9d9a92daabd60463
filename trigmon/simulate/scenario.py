"""What a scenario file says, as values: a title, a setup, steps, and what must be seen of each.

The file's own words are turned into the queue manager's (options to flags, ids to bytes) while reading
(:mod:`trigmon.simulate.scenario_files`), so that the player has nothing left to interpret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trigmon.mq.attributes import Attribute
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.reasons import Reason
from trigmon.mqsc.commands import Command

DYNAMIC_Q_NAME = "AMQ.*"

# -- what a step does ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mqsc:
    """Runs commands, in order, up to the first that fails."""

    commands: tuple[Command, ...]


@dataclass(frozen=True)
class Open:
    """Opens ``queue`` with OpenOption bits, to be known as ``handle``; a model queue makes ``dynamic_q_name``."""

    queue: str
    options: int
    handle: str
    dynamic_q_name: str = DYNAMIC_Q_NAME


@dataclass(frozen=True)
class Close:
    """Closes the handle known by this name, with CloseOption bits."""

    handle: str
    options: int = 0


@dataclass(frozen=True)
class Put:
    """Puts through ``handle``; without one through that of ``queue`` which is open for output, or as a put1."""

    queue: str
    handle: str
    data: bytes
    options: int
    descriptor: MessageDescriptor
    context: str = ""


@dataclass(frozen=True)
class Get:
    """Gets from a handle: GetOption and MatchOption bits, milliseconds (-1: without end), bytes (-1: all).

    ``matched`` are the fields that are matched, by name.
    """

    handle: str
    options: int = 0
    wait_interval_ms: int = 0
    max_length: int = -1
    match: int = 0
    matched: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SetAttributes:
    """MQSET through a handle: values by long name."""

    handle: str
    attributes: Mapping[str | int, Any]


@dataclass(frozen=True)
class Commit:
    """Commits the application's unit of work."""


@dataclass(frozen=True)
class Backout:
    """Backs the application's unit of work out."""


@dataclass(frozen=True)
class Disconnect:
    """Ends the application in order."""


@dataclass(frozen=True)
class Kill:
    """Cuts the application's connection."""


@dataclass(frozen=True)
class Advance:
    """Lets time pass."""

    milliseconds: int


@dataclass(frozen=True)
class Restart:
    """Ends the queue manager in order and starts it again."""

    q_mgr: str


@dataclass(frozen=True)
class Crash:
    """Kills the queue manager and starts it again."""

    q_mgr: str


@dataclass(frozen=True)
class Explain:
    """Asks what a put of this priority (-1: the queue's) would meet."""

    queue: str
    priority: int = -1


@dataclass(frozen=True)
class Check:
    """Compares attributes of a queue: pairs of the table's attribute and the value wanted, as it was written."""

    queue: str
    wanted: tuple[tuple[Attribute, Any], ...]


@dataclass(frozen=True)
class Reserve:
    """Reserves for a consumer through the handle known by this name, until the reservation is complete."""

    handle: str
    consumer: str
    max_messages: int
    max_bytes: int
    whole_groups: bool
    token: str


@dataclass(frozen=True)
class ReadReserved:
    """Reads from what the consumer has reserved last: so many ordinals from ``first`` on."""

    consumer: str
    first: int
    count: int


@dataclass(frozen=True)
class Settle:
    """Settles so many ordinals (-1: all) of what the consumer has reserved last."""

    consumer: str
    first: int
    count: int


@dataclass(frozen=True)
class Release:
    """Gives so many ordinals (-1: all) back of what the consumer has reserved last."""

    consumer: str
    first: int
    count: int
    counts: bool


@dataclass(frozen=True)
class Attempt:
    """Says that the holder works on so many ordinals alone of what the consumer has reserved last."""

    consumer: str
    first: int
    count: int


@dataclass(frozen=True)
class Reject:
    """Puts one message aside of what the consumer has reserved last."""

    consumer: str
    ordinal: int
    why: str


OfReservation = ReadReserved | Settle | Release | Attempt | Reject

Act = (
    Mqsc
    | Open
    | Close
    | Put
    | Get
    | SetAttributes
    | Commit
    | Backout
    | Disconnect
    | Kill
    | Advance
    | Restart
    | Crash
    | Explain
    | Check
    | Reserve
    | OfReservation
)

# -- what must be seen --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Expected:
    """The expectations of a step; None is not asked.

    ``triggers``: per trigger message the fields compared, values as read (``on`` is the queue manager's name).
    ``returns``: fields of the message got, values as read. ``reason`` and ``warning`` are NONE when the call must
    complete without.
    """

    triggers: tuple[Mapping[str, Any], ...] | None = None
    returns: Mapping[str, Any] | None = None
    reason: Reason = Reason.NONE
    warning: Reason = Reason.NONE
    fires: bool | None = None
    fails: frozenset[str] | None = None


@dataclass(frozen=True)
class Step:
    """One step: its number from 1, its line in the file, its verb as written, who does it where, and what it does.

    ``q_mgr`` is blank where the file does not say: where the application is connected, else the first.
    """

    number: int
    line: int
    verb: str
    application: str
    q_mgr: str
    act: Act
    expected: Expected


@dataclass(frozen=True)
class Scenario:
    """A rehearsal: ``file`` and ``line`` say where it stands, ``source`` where its rule is stated.

    ``state`` are steps before the setup that make the state of real queues (:mod:`trigmon.simulate.start_state`).
    """

    title: str
    file: str
    line: int
    q_mgrs: tuple[str, ...]
    setup: tuple[Command, ...]
    setup_line: int
    steps: tuple[Step, ...]
    source: str = ""
    state: tuple[Step, ...] = ()
