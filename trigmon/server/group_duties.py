"""What a daemon does beside its turns as a member of a queue-sharing group.

It says that it lives, finds members that do not and backs out what they left, also one that stands still in the middle
of its turn, and takes a turn now and then for wake-ups of other members that were lost. A wake-up that arrives brings
one at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trigmon.server.executor import aside
from trigmon.server.timers import Chore
from trigmon.server.turns import Turns

if TYPE_CHECKING:
    from trigmon.store.postgres.group.membership import PostgresMembership

POLL_S = 1.0
"""How long a change of another member may stay unseen if its wake-up was lost, in seconds."""

FIND_S = 0.1
"""How often dead members are looked for: what they held is back so long after their lease at the latest."""


class Duties:
    """The duties of one life of a member. ``on_lost`` gets each dead member that was recovered, and the group."""

    def __init__(
        self, half: PostgresMembership, turns: Turns, log: Any, on_lost: Callable[[tuple[str, str]], None]
    ) -> None:
        self._half = half
        self._on_lost = on_lost
        self._turns = turns
        self._log = log
        self._freeing: asyncio.Future[None] | None = None

    def chores(self) -> list[Chore]:
        """Returns what is to be done again and again."""
        return [
            Chore("say that this member lives", self._half.session.beat_s, lambda: self._turns.keep(self._half.beat)),
            Chore("find dead members", FIND_S, lambda: self._turns.keep(self._recovered, self._tell)),
            Chore("free the turn", self._half.session.lease_s, self._free),
            Chore("look at the group", POLL_S, self._turns.look),
        ]

    def _free(self) -> None:
        """Frees the turn of a dead member, which blocks its own recovery."""
        if self._turns.busy_s > self._half.session.lease_s and (self._freeing is None or self._freeing.done()):
            self._freeing = aside(self._half.session.end_stuck)

    def _recovered(self) -> list[str]:
        return [member for member in self._half.dead() if self._half.recover(member)]

    def _tell(self, recovered: list[str]) -> None:
        for member in recovered:
            self._log.warning("a dead member was recovered", member=member, group=self._half.group_name)
            self._on_lost((member, self._half.group_name))
        if recovered:
            self._turns.look()  # what came back may be waited for here
