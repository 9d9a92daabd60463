"""What becomes of a call when the link was lost under it, and how long the client tries to connect again.

As IBM MQ's automatic client reconnection does it: handles are opened again, a wait goes on, and a unit of work in
flight is backed out, of which 2003 tells. Only where the queue manager announced its stop is it known
that a call was not performed.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import TypeVar

from msgspec.structs import replace

from trigmon.mq.calls import (
    Attempt,
    Backout,
    BrowseMany,
    Call,
    Close,
    Commit,
    DeadLetters,
    Disconnect,
    Display,
    DisplayConnections,
    DisplayGroup,
    DisplayHandles,
    Explain,
    Get,
    GetMany,
    Inquire,
    IssueTicket,
    Open,
    Outcome,
    Pauses,
    Ping,
    PlanBrowse,
    Put,
    QueueStatus,
    ReadReserved,
    RecordRun,
    RecordRuns,
    Rehearse,
    Release,
    Reservations,
    Reserve,
    RunHistory,
    Runs,
    Settle,
    Status,
)
from trigmon.mq.enums import GetOption, PutOption
from trigmon.mq.errors import CfNotAvailable, ConnectionBroken, MQError, QMgrNotAvailable, QMgrStopping

T = TypeVar("T")

RECONNECT = "TRIGMON_RECONNECT"
DEFAULT_RECONNECT_S = 60.0
"""For programs that a monitor started; others connect again where they ask for it."""
MAY_PASS = (QMgrNotAvailable, QMgrStopping, CfNotAvailable)
"""Refusals of a connection that pass when the queue manager has started again."""
_PAUSES_S = (0.02, 1.0)

_AS_GOOD_TWICE = frozenset(
    (
        *(
            Get,
            GetMany,
            BrowseMany,
            PlanBrowse,
            Open,
            Close,
            Inquire,
            Display,
            DisplayConnections,
            DisplayHandles,
            DisplayGroup,
            Status,
            Explain,
            Rehearse,
            Ping,
            Outcome,
            Pauses,
            QueueStatus,
            Runs,
            RunHistory,
        ),
        *(
            Commit,
            Backout,
            Disconnect,
            DeadLetters,
            Reservations,
            Reserve,
            ReadReserved,
            Settle,
            Release,
            Attempt,
            IssueTicket,
        ),
    )
)
_COMMITS_TOO = (RecordRun, RecordRuns)
_OF_A_CURSOR = int(
    GetOption.BROWSE_NEXT | GetOption.BROWSE_MSG_UNDER_CURSOR | GetOption.MSG_UNDER_CURSOR | GetOption.LOGICAL_ORDER
)


class Fate(Enum):
    """What becomes of a call whose link was lost, on the next link."""

    REPEATED = auto()
    BACKED_OUT = auto()
    ASKED = auto()
    """It is a commit: its outcome is on record."""
    DONE = auto()
    """It asked for what the loss has done."""
    UNKNOWN = auto()


def fate_of(call: Call, *, had_unit: bool, is_undone: bool) -> Fate:
    """Returns what becomes of a call. ``had_unit``: a unit of work was in flight before it.

    ``is_undone``: the queue manager announced its stop, so the call was not performed.
    """
    if had_unit and isinstance(call, Backout):
        return Fate.DONE
    if had_unit and isinstance(call, Commit | Disconnect):
        return Fate.BACKED_OUT if is_undone else Fate.ASKED
    if had_unit and _unit_of(call) and not _commits(call):
        return Fate.BACKED_OUT
    options: int = getattr(call, "options", 0)
    has_place = isinstance(call, Get | GetMany) and options & _OF_A_CURSOR
    has_place = has_place or (isinstance(call, Put) and options & PutOption.LOGICAL_ORDER)
    is_gone = _unit_of(call) and not _commits(call)  # what it did is backed out
    is_repeatable = is_undone or is_gone or (type(call) in _AS_GOOD_TWICE and not _commits(call))
    return Fate.REPEATED if is_repeatable and not has_place else Fate.UNKNOWN


def _commits(call: Call) -> bool:
    """Returns whether the unit of work ends with it, beside what else it does."""
    return isinstance(call, _COMMITS_TOO) or (isinstance(call, GetMany) and call.runs is not None)


def _unit_of(call: Call) -> int:
    unit: int = getattr(call, "unit", 0)
    return unit


def with_handles(call: Call, handles: Mapping[int, int]) -> Call:
    """Returns the call with the present handles for those that the application has."""
    fields: dict[str, object] = {}
    handle: int = getattr(call, "handle", 0)
    if handle in handles:
        fields["handle"] = handles[handle]
    if isinstance(call, Put) and call.context in handles:
        fields["context"] = handles[call.context]
    return replace(call, **fields) if fields else call


def on_next_link(call: Call, unit: int, waited_s: float) -> Call:
    """Returns the call as it is sent on the next link: with its unit of work there, and what is left of its wait."""
    fields: dict[str, object] = {}
    if _unit_of(call) and not isinstance(call, Outcome):
        fields["unit"] = unit
    if (wait_ms := getattr(call, "wait_interval_ms", 0)) > 0:
        fields["wait_interval_ms"] = max(0, wait_ms - int(waited_s * 1000))
    return replace(call, **fields) if fields else call


def tried_until(deadline: float, connect: Callable[[], T], lost: MQError | None = None) -> T:
    """Returns what ``connect`` returns as soon as the queue manager can be reached; ``deadline``: time.monotonic().

    Raises what it raised last or, where a link was ``lost``, ConnectionBroken with both.
    """
    pause_s, longest_s = _PAUSES_S
    while True:
        try:
            return connect()
        except MAY_PASS as error:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                if lost is None:
                    raise
                raise ConnectionBroken(f"{lost.about}; and again: {error.about}") from error
            time.sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 2, longest_s)


class VariableError(ValueError):
    """An environment variable with an impossible value. The text names it."""


def reconnect_s(asked: float | None, run_id: str) -> float:
    """Returns how long is tried: what was asked, else ``$TRIGMON_RECONNECT``, else a minute for a started program.

    Raises VariableError for what is no number of seconds.
    """
    if asked is not None:
        return asked
    return seconds_of(RECONNECT, DEFAULT_RECONNECT_S if run_id else 0.0, zero="never")


def seconds_of(variable: str, default: float, *, zero: str) -> float:
    """Returns the seconds that a variable says, where ``zero`` is what 0 means. Raises VariableError for no number."""
    text = os.environ.get(variable, "")
    if not text:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < threading.TIMEOUT_MAX:
        raise VariableError(f"{variable}={text}: it is a number of seconds, 0 for {zero}")
    return seconds
