"""What deciding a call results in. A rule that refuses raises instead, and then nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from trigmon.mq.calls import Call
from trigmon.mq.replies import Done, Reply
from trigmon.rules.model.changes import AnyChange
from trigmon.rules.model.situation import Situation
from trigmon.rules.model.verdict import Verdict


class Ids(Protocol):
    """Fresh numbers, handed in so that a rehearsal and the real thing get theirs the same way."""

    def message(self) -> int:
        """An arrival number, above all before it."""

    def unit(self) -> int:
        """A number for a unit of work."""

    def handle(self) -> int:
        """A number for an open object."""

    def msg_id(self, number: int) -> bytes:
        """The 24 bytes of a message id, ascending with ``number``."""


DONE = Done()


class Fired(msgspec.Struct, frozen=True):
    """A verdict that fired, or would have, for the log."""

    q_name: str
    verdict: Verdict


class Judged(msgspec.Struct, frozen=True):
    """A situation with its verdict, whether it fired or not: what ``explain --why-not`` tells afterwards."""

    situation: Situation
    verdict: Verdict


class Dropped(msgspec.Struct, frozen=True):
    """A trigger message that nothing could take."""

    q_name: str
    why: str


class Lost(msgspec.Struct, frozen=True):
    """A message for this queue that nothing could take: a report, or another's that was to be a dead letter."""

    q_name: str
    why: str


class ToScan(msgspec.Struct, frozen=True):
    """Queues that are to be looked through for expired messages, slice by slice, behind what is done now."""

    q_names: tuple[str, ...]


class ToSweep(msgspec.Struct, frozen=True):
    """Reservations with rows that they are done with: those go, slice by slice, behind what is done now."""

    reservations: tuple[int, ...]


class Aside(msgspec.Struct, frozen=True):
    """A message backed out too often was put onto another queue; blank: it was discarded, as it asked to be.

    ``why`` says what hindered the backout queue, where there is one.
    """

    q_name: str
    to_q_name: str
    msg_id: bytes
    backout_count: int
    why: str = ""


class NotAside(msgspec.Struct, frozen=True):
    """A message backed out too often that no queue took: it is handed out again."""

    q_name: str
    msg_id: bytes
    backout_count: int
    why: str


class Asked(msgspec.Struct, frozen=True):
    """What an operator asked for that concerns more than its objects: what is to be started, and what to be ended."""

    event: str
    about: dict[str, str]


class QueueHeld(msgspec.Struct, frozen=True):
    """The breaker holds a queue: programs are started for it again and again, and it does not drain."""

    q_name: str
    why: str


Told = Fired | Dropped | Lost | ToScan | ToSweep | Aside | NotAside | Asked | QueueHeld
"""What is for the log, and for the housekeeper."""


class Decision(msgspec.Struct, frozen=True):
    """The reply, the changes, and the errands: further calls to perform on the same road after this one.

    ``gather`` makes the reply of a call out of its errands' replies. ``judged`` are the verdicts this call brought.
    """

    reply: Reply = DONE
    changes: list[AnyChange] = []
    errands: list[Call] = []
    told: tuple[Told, ...] = ()
    gather: Callable[[list[Reply]], Reply] | None = None
    judged: tuple[Judged, ...] = ()
