"""The decision on a call. A rule that refuses raises instead, and then nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec

from trigmon.mq.calls import Call
from trigmon.mq.replies import Done, Reply
from trigmon.rules.model.changes import AnyChange
from trigmon.rules.model.events import DecisionEvent
from trigmon.rules.model.situation import Situation
from trigmon.rules.model.verdict import Verdict


class Ids(Protocol):
    """Fresh numbers, handed in so that a rehearsal and the real thing get theirs the same way."""

    def message(self) -> int:
        """Returns an arrival number, above all before it."""

    def unit(self) -> int:
        """Returns a number for a unit of work."""

    def handle(self) -> int:
        """Returns a number for an open object."""

    def msg_id(self, number: int) -> bytes:
        """Returns the 24 bytes of a message id, ascending with ``number``."""


DONE = Done()


class Judged(msgspec.Struct, frozen=True):
    """A situation with its verdict, whether it fired or not: what ``explain --why-not`` shows afterwards.

    The verdict is None where trigger control is off: it does not fire, and the rest is found when ``explain`` asks.
    ``times``: how many puts were judged so, of which the situation is the last one's.
    """

    situation: Situation
    verdict: Verdict | None
    times: int = 1


class Decision(msgspec.Struct, frozen=True):
    """The reply, the changes, and the internal calls, which are performed after this one in the same way.

    ``gather`` makes the reply of a call out of the replies to its internal calls. ``judged`` are the verdicts of this
    call; ``events`` are for the log and for periodic work.
    """

    reply: Reply = DONE
    changes: list[AnyChange] = []
    internal_calls: list[Call] = []
    events: tuple[DecisionEvent, ...] = ()
    gather: Callable[[list[Reply]], Reply] | None = None
    judged: tuple[Judged, ...] = ()
