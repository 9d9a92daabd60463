"""What a daemon does beside its turns as a member of a queue-sharing group.

It says that it lives, finds members that do not and backs out what they left, and takes a turn when another member has
changed something shared: at once when that rings, and now and then for bells that went astray.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trigmon.server.chores import Chore
from trigmon.server.turns import Turns

if TYPE_CHECKING:
    from trigmon.store.postgres.membership import PostgresMembership

POLL_S = 1.0
"""How long a change of another member's may stay unseen whose bell was not heard."""

FIND_S = 0.1
"""How often dead members are looked for: what they held is back so long after their lease at the latest."""


class Duties:
    """The duties of one life of a member, from :meth:`begin` to :meth:`end`."""

    def __init__(self, half: PostgresMembership, turns: Turns, log: Any) -> None:
        self._half = half
        self._turns = turns
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._ear = -1

    def chores(self) -> list[Chore]:
        """What is to be done again and again."""
        return [
            Chore("say that this member lives", self._half.beat_s, self._kept(self._half.beat)),
            Chore("find dead members", FIND_S, self._kept(self._find_dead)),
            Chore("look at the group", POLL_S, self._turns.look),
        ]

    def begin(self) -> None:
        """Hears the bell from now on."""
        self._ear = self._half.fileno()
        self._loop.add_reader(self._ear, self._kept(lambda: None))

    def end(self) -> None:
        """Hears it no more."""
        if self._ear >= 0:
            self._loop.remove_reader(self._ear)
            self._ear = -1

    def new_turn(self) -> None:
        """A turn begins. A bell that rings while it speaks to the database is heard behind it."""
        self._loop.call_soon(self._kept(lambda: None))

    def _kept(self, call: Callable[[], None]) -> Callable[[], None]:
        """The call as what the store needs done: where it fails a turn would. Behind it the bell is heard.

        Whatever speaks to the database may read the bell with its answer, and then nothing else would.
        """

        def done() -> None:
            call()
            if self._half.rang():
                self._turns.look()

        return lambda: self._turns.keep(done)

    def _find_dead(self) -> None:
        for member in self._half.dead():
            if self._half.recover(member):
                self._log.warning("a dead member was recovered", member=member, group=self._half.group_name)
                self._turns.look()  # what came back may be waited for here
