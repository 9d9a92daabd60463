"""The members of a queue-sharing group, and what each has of the shared queues, for DISPLAY of the group."""

from __future__ import annotations

import msgspec


class Member(msgspec.Struct, frozen=True):
    """A member as its group knows it. ``silent_ms``: so long ago was its last heartbeat.

    ``recovered_ms``: so long ago it was last recovered, None where it never was; by which member, and what was backed
    out: uncommitted puts and gets, opens and locks.
    """

    name: str
    epoch: int
    is_serving: bool
    silent_ms: int
    lease_ms: int
    host: str
    pid: int
    roles: tuple[str, ...] = ()
    recovered_ms: int | None = None
    recovered_by: str = ""
    puts: int = 0
    gets: int = 0
    opens: int = 0
    locks: int = 0


class Use(msgspec.Struct, frozen=True):
    """What one member has of a shared queue: handles, those for input and for output, and uncommitted work."""

    opens: int = 0
    inputs: int = 0
    is_exclusive: bool = False
    outputs: int = 0
    puts: int = 0
    gets: int = 0


class Holding(msgspec.Struct, frozen=True):
    """What one member has of one shared queue."""

    q_name: str
    member: str
    use: Use


class Group(msgspec.Struct, frozen=True):
    """A group as one of its members sees it."""

    members: tuple[Member, ...]
    holdings: tuple[Holding, ...]
