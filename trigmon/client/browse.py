"""A browse of a whole queue by many messages a call, divided into ranges that several connections can read.

The ranges cover the queue in get order, so each message is in exactly one of them, whenever it is put. A range can be
read again, and is read as it is then: what is put while it is being read does not belong to it, and a message that was
got meanwhile is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from trigmon.client.connection import Connection
from trigmon.mq.calls import BrowseMany, PlanBrowse
from trigmon.mq.errors import NoMsgAvailable
from trigmon.mq.replies import BrowsePlanned, WasGot, WereBrowsed

COUNT = 1000
"""Messages of a call."""

Place = tuple[int, ...]
"""Of a message on its queue: its priority and its number; none stands for either end of the queue."""


class Range(NamedTuple):
    """The messages behind ``after`` up to ``until``."""

    after: Place = ()
    until: Place = ()


def plan(connection: Connection, handle: int, parts: Callable[[int], int]) -> list[Range]:
    """Returns the ranges of a queue: as many as ``parts`` says of its depth, where it can be divided so often.

    A queue with groups is one range.
    """
    first = connection.ask(PlanBrowse(handle=handle), BrowsePlanned)
    wanted = max(1, parts(first.depth))
    places: list[Place] = [()]
    while len(places) < min(wanted, first.depth):
        place = _place(connection, handle, places[-1], -(-first.depth // wanted))
        if not place:
            break
        places.append(place)
    return [Range(after, until) for after, until in pairwise([*places, ()])]


def browse(connection: Connection, handle: int, of: Range, most: int | None = None) -> Iterator[list[WasGot]]:
    """Yields the messages of a range, those of a call at a time; ``most`` of them at most."""
    newest = connection.ask(PlanBrowse(handle=handle), BrowsePlanned).newest
    after, left = of.after, most
    while left is None or left > 0:
        count = COUNT if left is None else min(COUNT, left)
        call = BrowseMany(handle=handle, count=count, after=[*after], until=[*of.until], newest=newest)
        try:
            reply = connection.ask(call, WereBrowsed, is_sound=True)
        except NoMsgAvailable:
            return
        if reply.messages:
            yield reply.messages
        after = tuple(reply.after)
        left = None if left is None else left - len(reply.messages)


def _place(connection: Connection, handle: int, after: Place, skip: int) -> Place:
    """Returns the place so many messages further on; none where the queue ends before, or is not divided."""
    while skip > 0:
        reply = connection.ask(PlanBrowse(handle=handle, after=[*after], skip=skip), BrowsePlanned)
        if not reply.after:
            return ()
        after, skip = tuple(reply.after), skip - reply.skipped
    return after
