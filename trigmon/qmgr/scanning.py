"""Looking through queues for expired messages: at a start, each EXPRYINT, and at REFRESH QMGR TYPE(EXPIRY).

What is to be looked through stands in a list, each queue once. A slice ends when it has met SLICE expired messages or
looked at that many queues, so nobody waits long behind it; a queue without expired messages costs one look-up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from trigmon.mq.calls import Counted, Disconnect
from trigmon.qmgr.sessions import Session
from trigmon.rules.errands import Expire
from trigmon.rules.facts import SLICE

if TYPE_CHECKING:
    from trigmon.qmgr.manager import Answer, QueueManager


class Scan:
    """The queues still to be looked through. ``interval_ms`` is EXPRYINT, 0 for off."""

    def __init__(self) -> None:
        self.interval_ms = 0
        self._queues: dict[str, None] = {}
        self._began_ms = 0

    @property
    def is_under_way(self) -> bool:
        """Whether any queue is left."""
        return bool(self._queues)

    def add(self, q_names: Iterable[str]) -> None:
        """These are to be looked through."""
        self._queues.update(dict.fromkeys(q_names))

    def began(self, now: int) -> None:
        """A look through all queues begins; the next is due an interval later."""
        self._began_ms = now

    def is_due(self, now: int) -> bool:
        """Whether the interval has passed, and the look before is over. One that is late is due as well."""
        if not self.interval_ms or self.is_under_way or now - self._began_ms < self.interval_ms:
            return False
        self.began(now)
        return True

    def go_on(self, manager: QueueManager, session: Session) -> list[Answer]:
        """One slice, each queue in a turn of its own; what it woke is answered."""
        answers: list[Answer] = []
        room = SLICE
        while self._queues and room > 0:
            q_name = next(iter(self._queues))
            more = False
            for answer in manager.turn([(session, 1, Expire(q_name=q_name))]):
                if answer.session is not session:
                    answers.append(answer)
                elif isinstance(answer.reply, Counted):
                    room -= max(1, answer.reply.count)
                    more = answer.reply.more
            if not more:
                del self._queues[q_name]
        return answers + manager.turn([(session, 0, Disconnect())])
