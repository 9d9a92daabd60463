"""A shared queue as one member sees it, and what moved in a group."""

from __future__ import annotations

import msgspec

from trigmon.mq.enums import ObjectType

NO_DEPTH = (0,) * 10


class Reader(msgspec.Struct, frozen=True):
    """Another member of the queue-sharing group that has a shared queue open for input, by so many handles."""

    q_mgr_name: str
    count: int
    is_exclusive: bool = False


class Shared(msgspec.Struct, frozen=True):
    """What a shared queue has besides, as one member sees it. What counts up never goes back."""

    readers: tuple[Reader, ...] = ()  # the other members that read it
    put_totals: tuple[int, ...] = NO_DEPTH  # messages that became available by a put, by priority
    rises: tuple[int, ...] = NO_DEPTH  # how often, by priority, none of that priority or more waited and then some did
    crossings: int = 0  # how often TriggerDepth was reached (type DEPTH)
    triggers: int = 0  # how often a trigger message was written to an initiation queue that is shared as well
    disarms: int = 0  # how often it switched its control off by firing


class Moved(msgspec.Struct, frozen=True):
    """What moved in a group."""

    queues: tuple[str, ...] = ()  # shared queues, by name
    definitions: tuple[tuple[ObjectType, str], ...] = ()  # those that each member has a copy of
    quiet: frozenset[str] = frozenset()  # those of the queues of which nothing moved that is ever judged


NOTHING_MOVED = Moved()
"""The one value for "nothing moved", so that the check after each call is an identity comparison."""
