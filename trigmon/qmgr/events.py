"""What the manager tells the outside, after the turn is durable. The daemon logs it, a rehearsal collects it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trigmon.mq.calls import Call
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.errors import MQError
from trigmon.rules.model.decision import Aside, Asked, NotAside, QueueHeld
from trigmon.rules.model.verdict import Verdict

if TYPE_CHECKING:
    from trigmon.qmgr.sessions import Session


class Telling:
    """Listens to nothing; override what matters."""

    def trigger_available(self, q_mgr_name: str, initiation_q: str, message: TriggerMessage) -> None:
        """A trigger message became available on an initiation queue."""

    def trigger_written(self, q_name: str, verdict: Verdict) -> None:
        """A verdict fired, and its trigger message was made."""

    def trigger_dropped(self, q_name: str, why: str) -> None:
        """A trigger message found no place, not even on the dead-letter queue."""

    def message_lost(self, q_name: str, why: str) -> None:
        """A report, or a message that was to be a dead letter, found no place."""

    def message_put_aside(self, told: Aside) -> None:
        """A message that was backed out too often was moved to another queue, or discarded as it asked to be."""

    def message_not_put_aside(self, told: NotAside) -> None:
        """A message that was backed out too often is handed out again, since no queue took it."""

    def asked(self, told: Asked) -> None:
        """An operator paused or resumed starting, or had a run cancelled or repeated."""

    def queue_held(self, told: QueueHeld) -> None:
        """The breaker holds a queue that is not drained."""

    def message_damaged(self, q_name: str, number: int) -> None:
        """A message that is not what was written any more was set aside; ``number`` is its row's."""

    def not_heeded(self, why: MQError | None) -> None:
        """What other members did to shared queues cannot be judged now, and is tried again; None: it was, at last."""

    def refused(self, session: Session, call: Call, error: MQError) -> None:
        """A call was refused."""

    def failed(self, session: Session, call: Call, error: BaseException) -> None:
        """A bug: the call was taken back and answered 2195; its connection should be closed."""
