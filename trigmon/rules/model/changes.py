"""All that a rule may ask for: the closed list of changes. A store that can do these is complete."""

from __future__ import annotations

import msgspec

from trigmon.mq.attributes import AnyDefinition
from trigmon.mq.descriptors import MessageDescriptor, TriggerMessage
from trigmon.mq.enums import ObjectType, UnitOutcome
from trigmon.mq.run import Run
from trigmon.rules.model.facts import (
    Cause,
    ConnectionFacts,
    Cursor,
    Found,
    HandleFacts,
    Marked,
    Paused,
    Serving,
    StoredMessage,
    UnitFacts,
)
from trigmon.rules.model.group_position import Place, Side
from trigmon.rules.model.reservation import Reservation


class Change(msgspec.Struct, frozen=True):
    """Something to write."""


class AddMessage(Change, frozen=True):
    """A message arrives. In a unit of work (``unit_id`` > 0) it stays unseen by others until the unit commits.

    A held one is seen by nobody, its own unit included, until the unit ends; with ``on_backout`` even backout
    releases it (seed 001: the trigger messages of FIRST and DEPTH). ``trigger`` is what a trigger message says.
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


class TakeMessage(Change, frozen=True):
    """A message is got under a unit of work: hidden now, removed when the unit commits.

    ``marked``: the application's backout of that unit is to skip it (seed 002).
    """

    message: StoredMessage
    unit_id: int
    marked: Marked | None = None


class RemoveMessage(Change, frozen=True):
    """A message goes at once: got outside syncpoint, expired, cleared or moved."""

    message: StoredMessage


class SetAside(Change, frozen=True):
    """A message that is not what was written any more leaves its queue; its row stays for whoever can read it."""

    message: StoredMessage


class BeginUnit(Change, frozen=True):
    """A connection's unit of work begins with the first call that names it, or with the get ``carried`` into it."""

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


class SkipUnit(Change, frozen=True):
    """A unit of work ended in which nothing was done; its number is used up, and its outcome goes on record."""

    connection: int
    number: int
    client_id: str
    outcome: UnitOutcome
    now: int


class NoteRefused(Change, frozen=True):
    """A put in a unit of work was refused: if nothing else is done in that unit, it did not commit what it was for."""

    connection: int
    number: int


class EndUnit(Change, frozen=True):
    """A unit of work ends: its puts become visible and its gets final, or the other way about.

    ``deleted`` are the queues on which nothing becomes available to anyone, since they are logically deleted.
    ``is_decided``: all that the unit did is in the group's store, which commits it and tells that to the member's next
    life; so the commit need not last in the member's own.
    """

    unit: UnitFacts
    outcome: UnitOutcome
    now: int
    deleted: tuple[str, ...] = ()
    is_decided: bool = False


class OpenHandle(Change, frozen=True):
    """An object is opened."""

    handle: HandleFacts


class CloseHandle(Change, frozen=True):
    """An object is closed."""

    handle: int


class MoveCursor(Change, frozen=True):
    """A browse has moved on."""

    handle: int
    cursor: Cursor


class LockMessage(Change, frozen=True):
    """A handle has locked the message it browsed, by its rows: no other handle sees it. Forgotten at restart."""

    handle: int
    q_name: str
    numbers: tuple[int, ...]


class UnlockMessage(Change, frozen=True):
    """A handle lets go the message it has locked, if that is still there."""

    handle: int
    q_name: str


class SetPlace(Change, frozen=True):
    """A handle stands elsewhere in a group: by a put or get of a unit of work, whose backout takes it back, or not."""

    handle: int
    side: Side
    place: Place | None
    unit_id: int = 0


class SaveContext(Change, frozen=True):
    """The context of the message last got through a handle is kept for those who pass it on; None: there is none."""

    handle: int
    context: MessageDescriptor | None


class SetDefinition(Change, frozen=True):
    """An object is defined or altered; its messages and handles stay."""

    object_type: ObjectType
    definition: AnyDefinition


class DropDefinition(Change, frozen=True):
    """An object is deleted, and with a queue the messages that still lie on it."""

    object_type: ObjectType
    name: str
    is_temporary: bool = False


class DeleteLogically(Change, frozen=True):
    """A dynamic queue is deleted that somebody still uses: it stays for them alone, and no restart brings it back."""

    q_name: str
    is_temporary: bool


class StampTrigger(Change, frozen=True):
    """A trigger message was made for this queue now; TriggerInterval counts from here. Forgotten at restart."""

    q_name: str
    now: int


class SetGroupDefinition(Change, frozen=True):
    """The group has a definition, new or altered, of which each member takes a copy."""

    object_type: ObjectType
    definition: AnyDefinition


class DropGroupDefinition(Change, frozen=True):
    """The group has it no longer, and its copies go."""

    object_type: ObjectType
    name: str


class NoteTriggered(Change, frozen=True):
    """A shared queue has fired: for the whole group where its initiation queue is shared.

    ``is_disarmed``: its control goes off with that, in the change that follows.
    """

    q_name: str
    is_for_group: bool
    is_disarmed: bool


class NoteJudged(Change, frozen=True):
    """All that happened to a shared queue until now has been judged on this member. Forgotten at restart."""

    q_name: str


class Connect(Change, frozen=True):
    """A connection is made."""

    connection: ConnectionFacts


class DropConnection(Change, frozen=True):
    """A connection is gone, its handles closed and its unit ended before."""

    connection: int


class WriteRun(Change, frozen=True):
    """A run's record is written anew, whole. ``before`` is what it was, None for a new one.

    ``ended_ms`` is 0 until it has ended.
    ``is_news``: monitors are to hear of it at once. ``can_wait``: it tells what its program does, which a crash ends.
    """

    run_id: str
    run: Run
    ended_ms: int = 0
    is_news: bool = False
    before: Run | None = None
    can_wait: bool = False


class DropRun(Change, frozen=True):
    """A run that ended long ago leaves the ledger."""

    run_id: str


class Serve(Change, frozen=True):
    """A run becomes due, or its program has done something on its queue."""

    serving: Serving


class Unserve(Change, frozen=True):
    """A run is over, and judged; or it is held again."""

    run_id: str


class SetCause(Change, frozen=True):
    """How the last runs of a process for a queue ended; one that holds nothing any more is forgotten."""

    cause: Cause


class SetPause(Change, frozen=True):
    """Starting is paused."""

    pause: Paused


class DropPause(Change, frozen=True):
    """Starting goes on."""

    what: str
    name: str


class ReserveMessages(Change, frozen=True):
    """Messages become those of a reservation, with ordinals from ``first`` on: hidden from every getter."""

    reservation: int
    messages: tuple[StoredMessage, ...]
    first: int


class SetReservation(Change, frozen=True):
    """A reservation stands as it says now. With ``is_stored`` off only who stands behind it has changed.

    ``must_last`` off: after a crash nobody misses it, together with what was done to the rows in the same call.
    """

    reservation: Reservation
    is_stored: bool = True
    must_last: bool = True


class SettleReserved(Change, frozen=True):
    """Rows of a reservation go for good; its record says so already."""

    messages: tuple[StoredMessage, ...]


class ReturnReserved(Change, frozen=True):
    """Rows of a reservation go back to their places on the queue, ``adds`` on their backout counts."""

    messages: tuple[StoredMessage, ...]
    adds: int


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
    | OpenHandle
    | CloseHandle
    | MoveCursor
    | LockMessage
    | UnlockMessage
    | SetPlace
    | SaveContext
    | SetDefinition
    | DropDefinition
    | DeleteLogically
    | StampTrigger
    | SetGroupDefinition
    | DropGroupDefinition
    | NoteTriggered
    | NoteJudged
    | Connect
    | DropConnection
    | WriteRun
    | DropRun
    | Serve
    | Unserve
    | SetCause
    | SetPause
    | DropPause
    | ReserveMessages
    | SetReservation
    | SettleReserved
    | ReturnReserved
)


def met_on_the_way(found: Found) -> list[AnyChange]:
    """What a look discards: messages that had expired, and those that are not what was written any more."""
    return [*map(RemoveMessage, found.expired), *map(SetAside, found.damaged)]
