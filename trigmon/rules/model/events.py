"""What a decision reports beside its reply, for the log and for periodic work: one struct an event.

``name`` is stable: programs that read the log may rely on it.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from trigmon.rules.model.handles import ConnectionFacts
from trigmon.rules.model.verdict import Verdict


class TriggerFired(msgspec.Struct, frozen=True):
    """A verdict fired, and its trigger message was made."""

    name: ClassVar[str] = "trigger_fired"
    q_name: str
    verdict: Verdict


class TriggerMessageDropped(msgspec.Struct, frozen=True):
    """A trigger message found no place, not even on the dead-letter queue."""

    name: ClassVar[str] = "trigger_message_dropped"
    q_name: str
    why: str


class MessageDropped(msgspec.Struct, frozen=True):
    """A message for this queue found no place: a report, or another's that was to be a dead letter."""

    name: ClassVar[str] = "message_dropped"
    q_name: str
    why: str


class PoisonMoved(msgspec.Struct, frozen=True):
    """A message backed out too often was put onto another queue; blank: it was discarded, as it asked to be.

    ``why`` says what hindered the backout queue, where there is one.
    """

    q_name: str
    to_q_name: str
    msg_id: bytes
    backout_count: int
    why: str = ""

    @property
    def name(self) -> str:
        """The stable name: whether it was moved or discarded."""
        return "poison_message_moved" if self.to_q_name else "poison_message_discarded"


class PoisonKept(msgspec.Struct, frozen=True):
    """A message backed out too often that no queue took: it is handed out again."""

    name: ClassVar[str] = "poison_message_kept"
    q_name: str
    msg_id: bytes
    backout_count: int
    why: str


class OperatorAsked(msgspec.Struct, frozen=True):
    """An operator paused or resumed starting, or had a run cancelled or repeated. ``event`` is the log's sentence."""

    event: str
    about: dict[str, str]

    @property
    def name(self) -> str:
        """The stable name, as run_cancelled."""
        return self.event.replace(" ", "_")


class QueueHeld(msgspec.Struct, frozen=True):
    """The breaker holds a queue: programs are started for it again and again, and it does not drain."""

    name: ClassVar[str] = "queue_held"
    q_name: str
    why: str


class MomentNotStarted(msgspec.Struct, frozen=True):
    """A moment of a schedule came, and a condition did not hold: nothing is started for it."""

    name: ClassVar[str] = "moment_not_started"
    schedule: str
    moment_ms: int
    why: str


class EventMessageDropped(msgspec.Struct, frozen=True):
    """An event message found no place on its queue. What it was about happened nevertheless."""

    name: ClassVar[str] = "event_message_dropped"
    q_name: str
    event: str
    why: str


class CommandPut(msgspec.Struct, frozen=True):
    """A message was put on the command queue, in this unit of work (0: none).

    ``by`` is the connection whose command it is; None where it is nobody's, since a context was passed on or set.
    """

    name: ClassVar[str] = "command_put"
    number: int
    by: ConnectionFacts | None
    unit_id: int


class ScanDue(msgspec.Struct, frozen=True):
    """Queues are to be looked through for expired messages, slice by slice, behind what is done now."""

    name: ClassVar[str] = "scan_due"
    q_names: tuple[str, ...]


class SweepDue(msgspec.Struct, frozen=True):
    """Reservations have rows that they are done with: those go, slice by slice, behind what is done now."""

    name: ClassVar[str] = "sweep_due"
    reservations: tuple[int, ...]


DecisionEvent = (
    TriggerFired
    | TriggerMessageDropped
    | MessageDropped
    | PoisonMoved
    | PoisonKept
    | OperatorAsked
    | QueueHeld
    | MomentNotStarted
    | EventMessageDropped
    | CommandPut
    | ScanDue
    | SweepDue
)
