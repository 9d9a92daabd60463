"""The sessions that wait for a message, by queue: gets with conditions first, then the others in order.

One message wakes one general destructive get: the next that finds nothing ends the round, since those behind it
would find nothing either. Browses and gets that match a field or look for what a group needs are all asked.
"""

from __future__ import annotations

import itertools
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from trigmon.mq.calls import Get
from trigmon.mq.enums import GetOption, MatchOption
from trigmon.qmgr.sessions import Parked, Session

# What is got may be another message than the one that came: that one was missing from its group.
_OF_GROUPS = (
    GetOption.LOGICAL_ORDER | GetOption.COMPLETE_MSG | GetOption.ALL_MSGS_AVAILABLE | GetOption.ALL_SEGMENTS_AVAILABLE
).value
# Browses, and gets that not every message suits.
_PARTICULAR = (GetOption.BROWSE_FIRST | GetOption.BROWSE_NEXT | GetOption.BROWSE_MSG_UNDER_CURSOR).value | _OF_GROUPS

MOST_STALE = 64
MOST_IDS = 256

Came = list[tuple[bytes, bytes]] | None
ANY: Came = None


class OfQueue(NamedTuple):
    """The sessions that wait on one queue, by connection."""

    special: dict[int, Session]
    general: dict[int, Session]


_NOBODY = OfQueue({}, {})


class Waiters:
    """The waiting sessions of one queue manager. ``queues``: those on which any waits."""

    def __init__(self) -> None:
        self.queues: dict[str, OfQueue] = {}
        self._deadlines: list[tuple[int, int, Session, Parked]] = []
        self._numbers = itertools.count()
        self.count = 0

    def park(self, session: Session, parked: Parked) -> None:
        """Adds a waiting session."""
        session.parked = parked
        of_queue = self.queues.setdefault(parked.q_name, OfQueue({}, {}))
        (of_queue.special if _is_special(parked) else of_queue.general)[session.connection] = session
        self.count += 1
        if parked.deadline_ms is not None:
            # The number decides between equal deadlines: one session may have waited twice until the same moment.
            heappush(self._deadlines, (parked.deadline_ms, next(self._numbers), session, parked))
            if len(self._deadlines) > 2 * self.count + MOST_STALE:
                self._forget_answered()

    def release(self, session: Session) -> None:
        """Removes a session, if it waits."""
        parked = session.parked
        if parked is None:
            return
        session.parked = None
        self.count -= 1
        of_queue = self.queues[parked.q_name]
        for sessions in of_queue:
            sessions.pop(session.connection, None)
        if not any(of_queue):
            del self.queues[parked.q_name]

    def special(self, q_name: str, came: Came) -> list[Session]:
        """Returns the sessions that browse or match a field, except those that no message that came can concern."""
        sessions = self.queues.get(q_name, _NOBODY).special.values()
        if came is None:
            return list(sessions)
        return [session for session in sessions if _is_concerned(session, came)]

    def general(self, q_name: str) -> list[Session]:
        """Returns the sessions that take any message, in the order in which they began to wait."""
        return list(self.queues.get(q_name, _NOBODY).general.values())

    def all(self) -> list[Session]:
        """Returns all waiting sessions."""
        return [session for of_queue in self.queues.values() for table in of_queue for session in table.values()]

    def _forget_answered(self) -> None:
        """Removes answered waits from the heap."""
        self._deadlines = [entry for entry in self._deadlines if entry[2].parked is entry[3]]
        heapify(self._deadlines)

    def next_deadline_ms(self) -> int | None:
        """Returns when the first wait runs out; None if none does."""
        while self._deadlines and self._deadlines[0][2].parked is not self._deadlines[0][3]:
            heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def due(self, now: int) -> list[Session]:
        """Removes and returns the sessions whose wait has run out."""
        sessions = []
        while (deadline := self.next_deadline_ms()) is not None and deadline <= now:
            sessions.append(heappop(self._deadlines)[2])
        return sessions


def note_coming(came: dict[str, Came], q_name: str, ids: Came) -> None:
    """Notes that messages with these ids come to a queue."""
    known = came.setdefault(q_name, [])
    if known is None:
        return
    if ids is None or len(known) + len(ids) > MOST_IDS:
        came[q_name] = ANY
    else:
        known += ids


def _is_concerned(session: Session, came: list[tuple[bytes, bytes]]) -> bool:
    call = session.parked.call if session.parked is not None else None
    if not isinstance(call, Get) or not call.match or call.options & _OF_GROUPS:
        return True
    by_msg_id, by_correl_id = call.match & MatchOption.MSG_ID, call.match & MatchOption.CORREL_ID
    return any(
        (not by_msg_id or msg_id == call.msg_id) and (not by_correl_id or correl_id == call.correl_id)
        for msg_id, correl_id in came
    )


def _is_special(parked: Parked) -> bool:
    call = parked.call
    return isinstance(call, Get) and bool(call.match or call.options & _PARTICULAR)
