"""What a queue manager does by itself: looks at the clock, discards expired messages, forgets what is old."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from trigmon.mq.calls import Call, Disconnect
from trigmon.mq.replies import Counted, Listing
from trigmon.qmgr.expiry_scan import Scan
from trigmon.qmgr.follow_ups import Notes
from trigmon.qmgr.sessions import ITSELF
from trigmon.qmgr.startup import system_objects
from trigmon.rules.model.facts import Wants
from trigmon.rules.model.internal_calls import Awake, LookThrough, Prune, Tend
from trigmon.rules.model.stored_messages import SLICE
from trigmon.store.port import Store

if TYPE_CHECKING:
    from trigmon.qmgr.manager import Answer, QueueManager

FOR_EVER = 2**62
OUTCOMES_KEPT_MS = 7 * 86_400_000
"""So long an outcome can be asked for when its client is gone."""
SLICES_AT_ONCE = 4
"""So many slices of old runs go at a time: the ledger loses a thousand a second, and nobody waits long."""


class Retention(NamedTuple):
    """How long the ledger keeps runs that have ended: so many, and so long. None: for ever."""

    keep_count: int | None = None
    keep_ms: int | None = None


KEEPS_ALL = Retention()


class Housekeeping:
    """The work that no client asks for. ``store``, ``notes`` and ``scan`` are the manager's own."""

    def __init__(self, manager: QueueManager, store: Store, notes: Notes, scan: Scan, retention: Retention) -> None:
        self._manager = manager
        self._store = store
        self._notes = notes
        self._scan = scan
        self.retention = retention

    def idle(self) -> list[Answer]:
        """Nothing is going on: the store may tidy up."""
        self._store.idle()
        return []

    @property
    def watches_the_clock(self) -> bool:
        """Whether time brings anything: a queue has to be tended, or expired messages looked for."""
        return bool(self._notes.tended) or self._scan.interval_ms > 0

    def tend(self) -> list[Answer]:
        """Looks at the queues that have BACKSTOP, MAXWAIT or REARM(AUTO), a slice of them a turn."""
        answers: list[Answer] = []
        names = sorted(self._notes.tended)
        for start in range(0, len(names), SLICE):
            session = self._manager.connect(ITSELF)
            looks: list[Call] = [Tend(q_name=name) for name in names[start : start + SLICE]]
            answers += self._manager.turn([(session, 0, call) for call in (*looks, Disconnect())])
        return answers

    @property
    def is_scanning(self) -> bool:
        """Whether queues are still to be looked through, or rows to be removed: then :meth:`scan` goes on."""
        return self._scan.is_under_way or self._store.has_leftovers

    def scan(self) -> list[Answer]:
        """Discards a slice of expired messages, from the queues to be looked through; first of what is left to do.

        So a look meets every message that has expired, those also that a large unit has just made available.
        """
        if self._store.has_leftovers:
            # In a turn of the manager: what the look at the group finds is judged in it.
            return self._manager.turn([], self._store.remove_leftovers)
        return self._scan.go_on(self._manager, self._manager.connect(ITSELF)) if self._scan.is_under_way else []

    def expire(self) -> list[Answer]:
        """Begins to look for expired messages when EXPRYINT has passed since it last did."""
        if not self._scan.is_due(self._manager.clock.now()):
            return []
        session = self._manager.connect(ITSELF)
        return self._manager.turn([(session, 0, self._look_through()), (session, 0, Disconnect())])

    def _look_through(self) -> LookThrough:
        """The look at all queues; at the group's too where no other member does that, who ended or lets it rest."""
        now = self._manager.clock.now()
        return LookThrough(shared=self._store.takes_role("EXPIRY", now, now + 2 * self._scan.interval_ms))

    def forget_outcomes(self) -> list[Answer]:
        """Forgets what became of the units of work of clients that have long been gone, a slice of them."""
        before_ms = self._manager.clock.now() - OUTCOMES_KEPT_MS
        return self._manager.turn([], lambda: self._store.forget_outcomes(before_ms))

    def prune(self) -> list[Answer]:
        """Forgets runs that ended long ago or are too many, a few slices of them, each in a turn of its own."""
        keep_count, keep_ms = self.retention
        if keep_count is None and keep_ms is None:
            return []
        before = 0 if keep_ms is None else self._manager.clock.now() - keep_ms
        call = Prune(keep_count=FOR_EVER if keep_count is None else keep_count, ended_before_ms=before)
        answers: list[Answer] = []
        session, more = self._manager.connect(ITSELF), True
        for _ in range(SLICES_AT_ONCE):
            done = self._manager.turn([(session, 1, call)]) if more else []
            more = any(isinstance(answer.reply, Counted) and answer.reply.more for answer in done)
            answers += [answer for answer in done if answer.session is not session]
        return answers + self._manager.turn([(session, 0, Disconnect())])

    def define_system_objects(self) -> None:
        """Defines what is missing at a start; what an operator changed stays as it is."""
        turn, session = self._manager.turn, self._manager.connect(ITSELF)
        turn([(session, number, call) for number, call in enumerate(system_objects(), 1)])
        facts = self._store.facts(Wants(session.connection), False)
        self._scan.interval_ms = facts.q_mgr.expiry_interval * 1000
        # Every start looks for expired messages, whatever EXPRYINT says; it goes on when calls are answered already.
        awake = turn([(session, 1, Awake()), (session, 0, self._look_through()), (session, 0, Disconnect())])
        self._scan.began(self._manager.started_ms)
        for answer in awake:
            if isinstance(answer.reply, Listing):
                self._notes.tended = {str(row["name"]) for row in answer.reply.rows}
