"""Which sessions wait for a message, by queue: destructive gets for something special first, then in turn.

One message wakes one general destructive get: the next that finds nothing ends the round, since those behind it
would find nothing either. Browses and gets that match a field are all asked.
"""

from __future__ import annotations

import itertools
from heapq import heapify, heappop, heappush

from trigmon.mq.calls import Get
from trigmon.mq.enums import GetOption
from trigmon.qmgr.sessions import Parked, Session

_BROWSES = (GetOption.BROWSE_FIRST | GetOption.BROWSE_NEXT | GetOption.BROWSE_MSG_UNDER_CURSOR).value

MOST_STALE = 64


class Waiters:
    """The waiting sessions of one queue manager."""

    def __init__(self) -> None:
        self._special: dict[str, dict[int, Session]] = {}
        self._general: dict[str, dict[int, Session]] = {}
        self._deadlines: list[tuple[int, int, Session, Parked]] = []
        self._numbers = itertools.count()
        self.count = 0

    def park(self, session: Session, parked: Parked) -> None:
        """The session waits from now on."""
        session.parked = parked
        table = self._special if _is_special(parked) else self._general
        table.setdefault(parked.q_name, {})[session.connection] = session
        self.count += 1
        if parked.deadline_ms is not None:
            # The number decides between equal deadlines: one session may have waited twice until the same moment.
            heappush(self._deadlines, (parked.deadline_ms, next(self._numbers), session, parked))
            if len(self._deadlines) > 2 * self.count + MOST_STALE:
                self._forget_answered()

    def release(self, session: Session) -> None:
        """The session waits no longer."""
        parked = session.parked
        if parked is None:
            return
        session.parked = None
        self.count -= 1
        for table in (self._special, self._general):
            of_queue = table.get(parked.q_name)
            if of_queue is not None and of_queue.pop(session.connection, None) is not None and not of_queue:
                del table[parked.q_name]

    def special(self, q_name: str) -> list[Session]:
        """Those that browse or match a field."""
        return list(self._special.get(q_name, {}).values())

    def general(self, q_name: str) -> list[Session]:
        """Those that take whatever comes, in the order they began to wait."""
        return list(self._general.get(q_name, {}).values())

    def all(self) -> list[Session]:
        """Everybody who waits."""
        tables = (*self._special.values(), *self._general.values())
        return [session for of_queue in tables for session in of_queue.values()]

    def _forget_answered(self) -> None:
        """Waits that were answered before their time leave the heap when they are the most of it."""
        self._deadlines = [entry for entry in self._deadlines if entry[2].parked is entry[3]]
        heapify(self._deadlines)

    def next_deadline_ms(self) -> int | None:
        """When the first wait runs out."""
        while self._deadlines and self._deadlines[0][2].parked is not self._deadlines[0][3]:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def due(self, now: int) -> list[Session]:
        """Those whose wait has run out."""
        sessions = []
        while (deadline := self.next_deadline_ms()) is not None and deadline <= now:
            sessions.append(heappop(self._deadlines)[2])
        return sessions


def _is_special(parked: Parked) -> bool:
    call = parked.call
    return isinstance(call, Get) and bool(call.match or call.options & _BROWSES)
