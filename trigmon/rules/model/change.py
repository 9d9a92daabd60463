"""The base of all changes: how durable a change is, which queue it is written to, which waiting gets it wakes."""

from __future__ import annotations

from enum import IntEnum

import msgspec


class Durability(IntEnum):
    """How long a change must last once its call is answered, in ascending order.

    The rows of a reservation are STORED, since they are many: one slice a commit, without a sync. So is the outcome
    of a unit in which nothing was done: it is on record before it is answered.
    """

    VOLATILE = 0
    """A crash of the process undoes it by itself, so it need not be written before the answer."""
    STORED = 1
    """It survives a crash of the process, not a power cut."""
    SYNCED = 2
    """It survives a power cut."""


# To look a member up in its enumeration costs as much as the rest of judging; a put does it a few times.
VOLATILE, STORED, SYNCED = Durability.VOLATILE, Durability.STORED, Durability.SYNCED


class Change(msgspec.Struct, frozen=True):
    """Something to write."""

    @property
    def durability(self) -> Durability:
        """How long it must last."""
        return STORED

    @property
    def written_to(self) -> str:
        """Returns the queue that it is written to, which may be a shared one; blank: it is the queue manager's own."""
        return ""

    @property
    def wakes(self) -> tuple[str, ...]:
        """Returns the queues whose waiting gets are performed again, whatever message they wait for."""
        return ()

    @property
    def is_news(self) -> bool:
        """Whether monitors are notified of it at once."""
        return False


class QuietChange(Change, frozen=True):
    """A change that by itself ends no wait: which gets a new message wakes depends on its ids."""

    wakes = ()
    is_news = False
