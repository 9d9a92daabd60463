"""The closed list of changes: all that a rule may write. A store that can apply these is complete."""

from __future__ import annotations

from trigmon.mq.attributes import AnyDefinition, LocalQueue
from trigmon.mq.descriptors import MessageDescriptor, TriggerMessage
from trigmon.mq.enums import DefinitionType, ObjectType, UnitOutcome
from trigmon.mq.run import Run
from trigmon.rules.model import group_changes as g
from trigmon.rules.model import handle_changes as h
from trigmon.rules.model import reservation_changes as r
from trigmon.rules.model.change import STORED, SYNCED, VOLATILE, Change, Durability, QuietChange
from trigmon.rules.model.handles import HeldTrigger, Marked, UnitFacts
from trigmon.rules.model.run_facts import Cause, Paused, Serving
from trigmon.rules.model.stored_messages import Found, StoredMessage


class AddMessage(QuietChange, frozen=True, gc=False):
    """A message arrives. In a unit of work (``unit_id`` > 0) it stays unseen by others until the unit commits.

    A held one is visible to no get, not even in its own unit, until the unit ends; with ``on_backout`` even backout
    releases it (seed 001: the trigger messages of FIRST and DEPTH). ``trigger`` is the content of a trigger message.
    A further one is a segment after the first of a put that the queue manager split: MAXUMSGS has counted the put.
    """

    q_name: str
    number: int
    priority: int
    is_persistent: bool
    descriptor: MessageDescriptor
    data: bytes
    expires_ms: int = 0
    unit_id: int = 0
    is_held: bool = False
    on_backout: bool = False
    trigger: TriggerMessage | None = None
    is_further: bool = False

    @property
    def message(self) -> StoredMessage:
        """The message as it lies on its queue."""
        return StoredMessage(
            self.number, self.q_name, self.priority, self.is_persistent, self.descriptor, self.data, self.expires_ms
        )

    @property
    def durability(self) -> Durability:
        """A unit's put is backed out by a crash, and a volatile message is gone with it."""
        return SYNCED if self.is_persistent and not self.unit_id else VOLATILE

    @property
    def written_to(self) -> str:
        """Returns the queue it arrives on."""
        return self.q_name


class OfMessage(QuietChange, frozen=True):
    """What is done to one message that lies on a queue."""

    message: StoredMessage

    @property
    def written_to(self) -> str:
        """Returns the message's queue."""
        return self.message.q_name


class TakeMessage(OfMessage, frozen=True):
    """A message is got under a unit of work: hidden now, removed when the unit commits.

    ``marked``: the application's backout of that unit is to skip it (seed 002).
    """

    unit_id: int
    marked: Marked | None = None

    @property
    def durability(self) -> Durability:
        """The mark of a get may not wait: it raises the backout count."""
        return STORED if self.message.is_persistent else VOLATILE


class RemoveMessage(OfMessage, frozen=True):
    """A message goes at once: got outside syncpoint, expired, cleared or moved."""

    @property
    def durability(self) -> Durability:
        """A volatile message is gone with a crash anyway."""
        return SYNCED if self.message.is_persistent else VOLATILE


class SetAside(OfMessage, frozen=True):
    """A damaged message, not what was written any more, leaves its queue; its row stays for repair."""

    durability = SYNCED


class BeginUnit(Change, frozen=True):
    """A connection's unit of work begins with the first call that names it, or with the get ``carried`` into it."""

    durability = VOLATILE

    connection: int
    unit_id: int
    number: int
    client_id: str
    now: int
    carried: Marked | None = None


class CarryOver(Change, frozen=True):
    """A marked get skips a backout: its message belongs to the next unit, which begins behind the end of this one."""

    message: Marked
    unit_id: int

    @property
    def durability(self) -> Durability:
        """As of the get that it carries over."""
        return STORED if self.message.is_persistent else VOLATILE

    @property
    def written_to(self) -> str:
        """Returns the message's queue."""
        return self.message.q_name


class SkipUnit(Change, frozen=True):
    """A unit of work ended in which nothing was done; its number is used up, and its outcome goes on record."""

    connection: int
    number: int
    client_id: str
    outcome: UnitOutcome
    now: int


class NoteRefused(Change, frozen=True):
    """A put in a unit of work was refused: if nothing else is done in that unit, it did not commit what it was for."""

    durability = VOLATILE

    connection: int
    number: int


class EndUnit(Change, frozen=True):
    """A unit of work ends: its puts become visible and its gets final, or the other way about.

    ``deleted`` are the queues on which nothing becomes available, since they are logically deleted.
    ``is_decided``: all that the unit did is in the group's store, which commits it and tells that to the member's next
    start; so the commit need not last in the member's own.
    """

    unit: UnitFacts
    outcome: UnitOutcome
    now: int
    deleted: tuple[str, ...] = ()
    is_decided: bool = False

    @property
    def durability(self) -> Durability:
        """A commit that the group's store has decided is repeated at the next start."""
        if self.is_decided:
            return VOLATILE
        return SYNCED if self.unit.is_durable else STORED

    @property
    def wakes(self) -> tuple[str, ...]:
        """Returns the queues that its gets go back to, and those that what it held is released on."""
        back = () if self.outcome is UnitOutcome.COMMITTED else self.unit.gets
        return (*(q_name for q_name, _ in back), *(held.q_name for held in self.released))

    @property
    def released(self) -> tuple[HeldTrigger, ...]:
        """The messages held until the unit ended that become available now."""
        committed = self.outcome is UnitOutcome.COMMITTED
        return tuple(held for held in self.unit.held if committed or held.on_backout)


class SetDefinition(Change, frozen=True):
    """An object is defined or altered; its messages and handles stay."""

    object_type: ObjectType
    definition: AnyDefinition

    @property
    def durability(self) -> Durability:
        """No restart brings a temporary dynamic queue back."""
        kind = self.definition.definition_type if isinstance(self.definition, LocalQueue) else None
        return VOLATILE if kind is DefinitionType.TEMPORARY_DYNAMIC else SYNCED

    @property
    def written_to(self) -> str:
        """Returns the queue that is defined."""
        return self.definition.name

    @property
    def wakes(self) -> tuple[str, ...]:
        """Returns the queue. An alias changed leads gets of any name elsewhere: the manager knows which wait."""
        return () if self.object_type is ObjectType.QALIAS else (self.definition.name,)


class DropDefinition(Change, frozen=True):
    """An object is deleted, and with a queue the messages that still lie on it."""

    object_type: ObjectType
    name: str
    is_temporary: bool = False

    @property
    def durability(self) -> Durability:
        """No restart brings a temporary dynamic queue back."""
        return VOLATILE if self.is_temporary else SYNCED

    @property
    def written_to(self) -> str:
        """Returns the queue that is deleted."""
        return self.name


class DeleteLogically(Change, frozen=True):
    """A dynamic queue is deleted while in use: it stays for its open handles alone, and no restart brings it back."""

    q_name: str
    is_temporary: bool

    @property
    def durability(self) -> Durability:
        """No restart brings a temporary dynamic queue back."""
        return VOLATILE if self.is_temporary else SYNCED

    @property
    def wakes(self) -> tuple[str, ...]:
        """Returns the queue: waiting gets end."""
        return (self.q_name,)


class StampTrigger(QuietChange, frozen=True):
    """A trigger message was made for this queue now; TriggerInterval counts from here. Forgotten at restart."""

    durability = VOLATILE

    q_name: str
    now: int


class WriteRun(Change, frozen=True):
    """A run's record is written anew, whole. ``before`` is what it was, None for a new one.

    ``ended_ms`` is 0 until it has ended.
    ``is_news``: monitors are notified of it at once. ``can_wait``: it is about a program's work, which a crash ends.
    """

    run_id: str
    run: Run
    ended_ms: int = 0
    is_news: bool = False
    before: Run | None = None
    can_wait: bool = False

    @property
    def durability(self) -> Durability:
        """What its program does is ended by a crash."""
        return VOLATILE if self.can_wait else SYNCED


class DropRun(Change, frozen=True):
    """A run that ended long ago leaves the ledger."""

    run_id: str


class Serve(Change, frozen=True):
    """A run becomes due, or its program has done something on its queue."""

    # What a program has done is written with what it did: its commits are.
    durability = VOLATILE

    serving: Serving


class Unserve(Change, frozen=True):
    """A run is over, and judged; or it is held again."""

    run_id: str


class SetCause(Change, frozen=True):
    """How the last runs of a process for a queue ended; one that holds nothing any more is forgotten."""

    cause: Cause


class SetPause(Change, frozen=True):
    """Starting is paused."""

    durability = SYNCED
    is_news = True

    pause: Paused


class DropPause(Change, frozen=True):
    """Starting goes on."""

    durability = SYNCED
    is_news = True

    what: str
    name: str


AnyChange = (
    AddMessage
    | TakeMessage
    | RemoveMessage
    | SetAside
    | BeginUnit
    | CarryOver
    | SkipUnit
    | NoteRefused
    | EndUnit
    | h.OpenHandle
    | h.CloseHandle
    | h.MoveCursor
    | h.LockMessage
    | h.UnlockMessage
    | h.SetPlace
    | h.SaveContext
    | h.KeepPutPlan
    | SetDefinition
    | DropDefinition
    | DeleteLogically
    | StampTrigger
    | g.SetGroupDefinition
    | g.DropGroupDefinition
    | g.NoteTriggered
    | g.NoteJudged
    | h.Connect
    | h.DropConnection
    | WriteRun
    | DropRun
    | Serve
    | Unserve
    | SetCause
    | SetPause
    | DropPause
    | r.ReserveMessages
    | r.SetReservation
    | r.SettleReserved
    | r.ReturnReserved
)


def met_on_the_way(found: Found) -> list[AnyChange]:
    """Returns the changes that discard what a search met: expired messages, and damaged ones."""
    if not found.expired and not found.damaged:
        return []  # as nearly always, in each get
    return [*map(RemoveMessage, found.expired), *map(SetAside, found.damaged)]
