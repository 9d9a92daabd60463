"""State that only the queue manager's process knows, for the replies that show it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from trigmon.mq.calls import BridgeState, CopyState, LostServer, WatchState
from trigmon.mq.explanation import Looked
from trigmon.rules.model.authority import User
from trigmon.rules.model.ticket import Ticket


class Backup(Protocol):
    """The backup of one connection: the store's file, held as it was when the backup began."""

    def begin(self) -> int:
        """Begins it; returns the bytes of the file. Raises ObjectInUse, FunctionNotSupported, StorageMediumFull."""

    def read(self, offset: int, count: int) -> bytes:
        """Returns bytes of the file. Raises BackedOut when the backup has ended."""

    def end(self) -> None:
        """Ends it, if it is under way."""


class QueueActivity(msgspec.Struct):
    """What went through a queue since ``since_ms``; 0 where there was no put, or no get.

    What was counted is not taken back by a backout, as in MQ. ``high_q_depth`` is the most at the end of a turn.
    ``q_time_short_us`` and ``q_time_long_us`` are how long got messages had been on the queue: microseconds, moving
    averages of about the last 8 and the last 64 messages; -1 before the first get.
    """

    since_ms: int
    puts: int = 0
    gets: int = 0
    high_q_depth: int = 0
    last_put_ms: int = 0
    last_get_ms: int = 0
    q_time_short_us: int = -1
    q_time_long_us: int = -1


class Disk(msgspec.Struct, frozen=True):
    """The free space where the store lies, in bytes, and how much of it is kept from puts.

    ``not_archived``: what the archive of the store's journal lacks; empty where nothing does.
    """

    free_bytes: int
    reserve_bytes: int
    not_archived: str = ""


class Activities(Protocol):
    """The counters of all queues."""

    def of(self, q_name: str, depth: int) -> QueueActivity:
        """Returns the counters of a queue that is so deep now."""

    def reset(self, q_name: str, depth: int, now: int) -> None:
        """Counts anew from now on."""

    def left_ms(self, q_name: str) -> int:
        """Returns when a message last was got from a queue or left it otherwise; 0: not since the process started."""


class Reports(Protocol):
    """What connected monitors and services report of themselves; it is forgotten with their connection."""

    def report_servers(self, monitor: str, servers: list[LostServer]) -> None:
        """Notes which of the Spark Connect servers of the calling monitor end again and again."""

    def report_bridges(self, monitor: str, bridges: list[BridgeState]) -> None:
        """Notes how the calling monitor stands to initiation queues elsewhere."""

    def report_watches(self, watches: list[WatchState]) -> None:
        """Notes how the watches are that the caller serves."""

    def report_copy(self, state: CopyState) -> None:
        """Notes how the copy is that the caller does."""

    def lost_servers(self) -> dict[str, list[LostServer]]:
        """Returns by monitor the Spark Connect servers that end again and again."""

    def bridges(self) -> dict[str, list[BridgeState]]:
        """Returns by monitor how it stands to initiation queues elsewhere."""

    def watches(self) -> dict[str, WatchState] | None:
        """Returns by name how the watches are, None where no process serves them."""

    def copies(self) -> list[CopyState]:
        """Returns how the copies of queues elsewhere are, by name."""


class ManagerState(msgspec.Struct, frozen=True):
    """The process of a queue manager as it is now. Times are milliseconds since 1970."""

    now_ms: int
    started_ms: int
    waiting_gets: int
    are_puts_allowed: bool
    warnings: list[str]  # of how it is run
    news: int  # how often there was news for monitors
    last_verdicts: Callable[[str], list[Looked]]  # of a queue, newest first
    backup: Backup  # of the connection that calls
    activity: Activities
    disk: Disk | None  # None where the store is on no disk of its own
    reports: Reports  # of the connections, and of the one that calls
    end_connection: Callable[[int], None]  # cuts the connection of this number behind the turn
    oldest_put_ms: Callable[[str], int]  # of a queue: when its oldest message was put, 0 for none
    known_user: Callable[[str, Sequence[str]], User]  # a user by name, with the groups that the caller knows
    sign_ticket: Callable[[Ticket], str]  # raises FunctionNotSupported where there is no TLS listener
    figures: Callable[[], dict[str, Any]]  # what was counted since the start (trigmon.qmgr.counters)
