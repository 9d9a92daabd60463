"""The events that the manager reports after a turn is durable. The daemon logs them, a simulation collects them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from trigmon.mq.attributes import Definition
from trigmon.mq.calls import Call, Delete
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.errors import MQError
from trigmon.mq.replies import Reply
from trigmon.qmgr.sessions import Session
from trigmon.qmgr.waiting_commands import CommandDropped, CommandFailed, CommandRefused
from trigmon.rules.model.changes import SetDefinition
from trigmon.rules.model.decision import Decision
from trigmon.rules.model.events import (
    EventMessageDropped,
    MessageDropped,
    MomentNotStarted,
    OperatorAsked,
    PoisonKept,
    PoisonMoved,
    QueueHeld,
    TriggerFired,
    TriggerMessageDropped,
)
from trigmon.rules.model.group_changes import SetGroupDefinition


class TriggerMessageAvailable(msgspec.Struct, frozen=True):
    """A trigger message became available on an initiation queue."""

    name: ClassVar[str] = "trigger_message_available"
    q_mgr_name: str
    initiation_q: str
    message: TriggerMessage


class MessageDamaged(msgspec.Struct, frozen=True):
    """A damaged message was set aside; ``number`` is its row's."""

    name: ClassVar[str] = "message_damaged"
    q_name: str
    number: int


class SharedQueuesUnjudged(msgspec.Struct, frozen=True):
    """What other members did to shared queues cannot be judged now, and is tried again."""

    name: ClassVar[str] = "shared_queues_unjudged"
    why: MQError


class SharedQueuesJudged(msgspec.Struct, frozen=True):
    """What other members did to shared queues could be judged at last."""

    name: ClassVar[str] = "shared_queues_judged"


class NotAuthorizedCall(msgspec.Struct, frozen=True):
    """A call was refused for want of authority."""

    name: ClassVar[str] = "not_authorized"
    session: Session
    call: Call
    error: MQError


class AdministrativeAct(msgspec.Struct, frozen=True):
    """A call changed objects, rights or what is started: its definition before and after, where it has one."""

    name: ClassVar[str] = "administrative_act"
    session: Session
    call: Call
    reply: Reply
    before: Definition | None = None
    after: Definition | None = None


class CallFailed(msgspec.Struct, frozen=True):
    """A bug: the call was undone and answered 2195; its connection should be closed."""

    name: ClassVar[str] = "call_failed"
    session: Session
    call: Call
    error: BaseException


class SessionEnded(msgspec.Struct, frozen=True):
    """An operator ended a connection: it is to be cut."""

    name: ClassVar[str] = "connection_ended"
    session: Session
    by: Session


Event = (
    TriggerFired
    | TriggerMessageDropped
    | MessageDropped
    | PoisonMoved
    | PoisonKept
    | OperatorAsked
    | QueueHeld
    | MomentNotStarted
    | EventMessageDropped
    | TriggerMessageAvailable
    | MessageDamaged
    | SharedQueuesUnjudged
    | SharedQueuesJudged
    | NotAuthorizedCall
    | AdministrativeAct
    | CallFailed
    | SessionEnded
    | CommandDropped
    | CommandRefused
    | CommandFailed
)


def act_of(
    session: Session, call: Call, reply: Reply, named: Definition | None, decisions: Sequence[Decision]
) -> AdministrativeAct:
    """Returns the act that a call was; ``named`` is what it names, as it was before the decisions on it."""
    written = (change for decision in decisions for change in decision.changes)
    definitions = (c.definition for c in written if isinstance(c, SetDefinition | SetGroupDefinition))
    after = next(definitions, None)
    is_of_object = after is not None or isinstance(call, Delete)
    return AdministrativeAct(session, call, reply, named if is_of_object else None, after)


class Telling:
    """The receiver of events. It ignores them; a subclass does not. ``ignored``: kinds that it need not be given."""

    ignored: frozenset[type[Event]] = frozenset()

    def tell(self, event: Event) -> None:
        """Receives an event. Called once for each, in order: at once for a bug, otherwise when its turn is durable."""
