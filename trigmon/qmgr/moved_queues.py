"""Shared queues that moved: their triggers are judged, whichever member moved them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trigmon.mq.calls import Call, Disconnect, LostConnection
from trigmon.mq.errors import MQError
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused, Reply
from trigmon.qmgr.follow_ups import Notes
from trigmon.qmgr.manager_events import SharedQueuesJudged, SharedQueuesUnjudged
from trigmon.qmgr.sessions import ITSELF, Session
from trigmon.qmgr.waiters import ANY
from trigmon.rules.model.decision import Decision
from trigmon.rules.model.facts import Wants
from trigmon.rules.model.group_changes import NoteJudged
from trigmon.rules.model.internal_calls import Forget, JudgeMoved
from trigmon.rules.model.shared_view import NOTHING_MOVED, Moved
from trigmon.rules.shared_triggers import decide_untriggered
from trigmon.store.port import Store

if TYPE_CHECKING:
    from trigmon.qmgr.manager import Answer, QueueManager


class MovedQueues:
    """The shared queues that moved and are not judged yet.

    ``store`` and ``notes`` are the manager's own, and so is ``noted``: the decisions of the present call.
    """

    def __init__(self, manager: QueueManager, store: Store, notes: Notes, noted: list[Decision]) -> None:
        self._manager = manager
        self._store = store
        self._notes = notes
        self._noted = noted
        # The moves of other members that could not be judged yet, and why.
        self._left = NOTHING_MOVED
        self._left_for: MQError | None = None

    def judge(self, by: Session, call: Call, now: int) -> None:
        """Judges what a call has done to shared queues, within the call: its connection may be gone afterwards."""
        while (moved := self._store.changed()) is not NOTHING_MOVED:
            self._judge(moved, by, call, now)

    def _judge(self, moved: Moved, by: Session, call: Call, now: int) -> None:
        if moved.quiet:
            moved = Moved(tuple(name for name in moved.queues if name not in moved.quiet), moved.definitions)
            if moved == NOTHING_MOVED:
                return
        if self._judge_untriggered(moved, by, call, now):
            return
        session = self._manager.connect(ITSELF)
        try:
            self._manager.perform(JudgeMoved(moved=moved, acted=True), session, now)
            self._manager.perform(Forget(), session, now)
        finally:
            self._manager.forget_session(session)

    def _judge_untriggered(self, moved: Moved, by: Session, call: Call, now: int) -> bool:
        """Judges queues whose triggers are off, and returns True; returns False, with nothing done, for all others.

        That needs no connection of the queue manager's own, since no trigger message is put: the facts are those that
        the caller's connection sees, where the call has left it.
        """
        if moved.definitions or isinstance(call, Disconnect | LostConnection):
            return False
        decisions: list[Decision] = []
        for name in moved.queues:
            facts = self._store.facts(Wants(by.connection, name), False)
            decision = decide_untriggered(facts, now, acted=True)
            if decision is None:
                return False
            decisions.append(decision)
        self._store.apply([NoteJudged(name) for name in moved.queues], True)
        self._noted += decisions
        return True

    def judge_others(self, now: int, answers: list[Answer]) -> None:
        """Judges what other members of the group did to shared queues, and wakes the gets that wait on them."""
        moved, self._left = _both(self._left, self._store.changed()), NOTHING_MOVED
        if moved is NOTHING_MOVED:
            return
        session = self._manager.connect(ITSELF)
        reply = self._manager.answer(session, JudgeMoved(moved=moved), now)
        self._manager.answer(session, Disconnect(), now)
        self._note(moved, reply)
        self._notes.woken.update(dict.fromkeys(moved.queues, ANY))
        self._manager.wake(now, answers)

    def _note(self, moved: Moved, reply: Reply) -> None:
        """Keeps refused queues for the next turn, and reports the first refusal and the first success after it.

        A bug would come again with every turn: it is logged as such, and the next move brings another try.
        """
        why: MQError | None = None
        if isinstance(reply, Refused) and reply.reason != Reason.UNEXPECTED_ERROR:
            why = MQError.of(reply.reason, reply.about)
            self._left = _both(self._left, moved)
        if type(why) is not type(self._left_for):
            self._notes.events.append(SharedQueuesJudged() if why is None else SharedQueuesUnjudged(why))
        self._left_for = why


def _both(one: Moved, other: Moved) -> Moved:
    """Returns what moved by either."""
    if one is NOTHING_MOVED or other is NOTHING_MOVED:
        return other if one is NOTHING_MOVED else one
    queues, definitions = {*one.queues, *other.queues}, {*one.definitions, *other.definitions}
    return Moved(tuple(sorted(queues)), tuple(sorted(definitions)))
