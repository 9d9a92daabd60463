"""The scan of queues for expired messages: at a start, each EXPRYINT, and at REFRESH QMGR TYPE(EXPIRY).

The same scan removes the rows of ended reservations, a slice of one reservation in a turn.

A list has the queues still to be scanned, each once. A slice discards at most SLICE expired messages, on at most as
many queues, so no call waits long behind it; a queue without expired messages costs one look-up.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from trigmon.mq.calls import Call, Disconnect
from trigmon.mq.replies import Counted
from trigmon.qmgr.sessions import Session
from trigmon.rules.model.events import ScanDue, SweepDue
from trigmon.rules.model.internal_calls import Expire, Sweep
from trigmon.rules.model.stored_messages import SLICE

if TYPE_CHECKING:
    from trigmon.qmgr.manager import Answer, QueueManager


class Scan:
    """The queues still to be scanned. ``interval_ms`` is EXPRYINT, 0 for off."""

    def __init__(self) -> None:
        self.interval_ms = 0
        self._queues: dict[str, None] = {}
        self._reservations: dict[int, None] = {}
        self._began_ms = 0

    @property
    def is_under_way(self) -> bool:
        """Whether any queue or reservation is left."""
        return bool(self._queues or self._reservations)

    def add(self, event: ScanDue | SweepDue) -> None:
        """Adds queues to be scanned, or reservations whose rows are to be removed."""
        if isinstance(event, SweepDue):
            self._reservations.update(dict.fromkeys(event.reservations))
        else:
            self._queues.update(dict.fromkeys(event.q_names))

    def began(self, now: int) -> None:
        """Records that a scan of all queues begins; the next is due an interval later."""
        self._began_ms = now

    def is_due(self, now: int) -> bool:
        """Returns whether the interval has passed and the previous scan is over. A late scan is due as well."""
        if not self.interval_ms or self._queues or now - self._began_ms < self.interval_ms:
            return False
        self.began(now)
        return True

    def go_on(self, manager: QueueManager, session: Session) -> list[Answer]:
        """Scans one slice in one turn and returns the answers of the gets that it woke.

        The queues share the slice, so that one sync does for all.
        """
        q_names = list(islice(self._queues, SLICE))
        looks: list[Call] = [Expire(q_name=q_name, limit=SLICE // len(q_names)) for q_name in q_names]
        if self._reservations:
            number = next(iter(self._reservations))
            del self._reservations[number]  # it is added again where more is left
            looks.append(Sweep(reservation=number))
        answers: list[Answer] = []
        numbered = [(session, number, look) for number, look in enumerate(looks, 1)]
        for answer in manager.turn([*numbered, (session, 0, Disconnect())]):
            if answer.session is not session:
                answers.append(answer)
            elif answer.sequence <= len(q_names) and not (isinstance(answer.reply, Counted) and answer.reply.more):
                del self._queues[q_names[answer.sequence - 1]]
        return answers
