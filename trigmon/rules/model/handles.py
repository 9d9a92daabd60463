"""Handles, connections and units of work."""

from __future__ import annotations

from collections.abc import Container

import msgspec
from msgspec.structs import replace

from trigmon.mq.attributes import AliasQueue, LocalQueue, QueueManagerDefinition
from trigmon.mq.descriptors import MessageDescriptor, TriggerMessage
from trigmon.mq.enums import ObjectType
from trigmon.rules.model.group_position import Place, Side
from trigmon.rules.model.stored_messages import Cursor, StoredMessage
from trigmon.rules.model.ticket import Ticket


class Route(msgspec.Struct, frozen=True):
    """Where messages for a remote queue go, as it was when the queue was opened; ``definition`` is the QREMOTE."""

    definition: str
    remote_q_name: str
    remote_q_mgr_name: str


class Transmission(msgspec.Struct, frozen=True):
    """Which queue a remote queue's messages wait on: its name, if any, and whether a queue of any type has it."""

    q_name: str
    is_default: bool
    exists: bool


class PutPlan(msgspec.Struct, frozen=True):
    """What follows for all puts of one kind through a handle, and what it follows from.

    Puts are of one kind that have the same options, and descriptors that differ in their ids at most. A definition that
    is altered is another object: the plan holds as long as those in force are the very objects named here.
    """

    # What it follows from, beside what the handle was opened for, which never changes.
    definition: LocalQueue
    alias: AliasQueue | None
    q_mgr: QueueManagerDefinition
    options: int
    given: MessageDescriptor  # without ids
    # What follows.
    route: Route | None
    descriptor: MessageDescriptor  # as stored, but for its ids and the time of its put
    priority: int  # at which the message is placed and counted
    warning: int  # a reason, or 0
    is_plain: bool  # what is stored depends neither on the content nor on other messages


class HandleFacts(msgspec.Struct, frozen=True):
    """An open object: which one, behind which alias, for what."""

    handle: int
    connection: int
    object_type: ObjectType
    object_name: str
    q_name: str  # the local queue it leads to: behind a remote queue, by its route, the transmission queue
    options: int  # resolved OpenOption bits
    cursor: Cursor | None = None
    route: Route | None = None
    is_creator: bool = False  # it was opened by the open of a model queue that made the queue
    context: MessageDescriptor | None = None  # of the message last got, with SAVE_ALL_CONTEXT
    put_place: Place | None = None  # where its last put left it in a group
    get_place: Place | None = None  # where its last destructive get left it
    browse_place: Place | None = None  # where its last browse left it
    locked: tuple[int, ...] = ()  # the numbers of the message it has locked, more than one where it is of segments
    put_plan: PutPlan | None = None  # of its last plain put

    def place(self, side: Side) -> Place | None:
        """Returns where its last call of this side left it."""
        return {Side.PUT: self.put_place, Side.GET: self.get_place, Side.BROWSE: self.browse_place}[side]


def with_place(handle: HandleFacts, side: Side, place: Place | None) -> HandleFacts:
    """Returns the handle, standing elsewhere on one side."""
    if side is Side.PUT:
        return replace(handle, put_place=place)
    return replace(handle, get_place=place) if side is Side.GET else replace(handle, browse_place=place)


class HeldTrigger(msgspec.Struct, frozen=True):
    """A message that waits for its unit of work to end."""

    q_name: str
    priority: int
    message: TriggerMessage | None  # the content of a trigger message, None for one on the dead-letter queue
    on_backout: bool  # whether backout releases it too


class Marked(msgspec.Struct, frozen=True):
    """A message got with MARK_SKIP_BACKOUT, as far as its unit of work has to know it."""

    number: int
    q_name: str
    priority: int
    is_persistent: bool
    is_own: bool  # that unit has put it as well, so a backout leaves nothing that could be skipped
    handle: int = 0  # whose place in a group its get moved, first in that unit; 0 where it did not
    place: Place | None = None  # where that moved to


class UnitFacts(msgspec.Struct, frozen=True):
    """An open unit of work: what it put and got, by queue and counted priority, and which get was marked."""

    unit_id: int
    number: int
    connection: int
    client_id: str
    count: int = 0
    is_durable: bool = False
    puts: dict[tuple[str, int], int] = {}
    gets: dict[tuple[str, int], int] = {}
    held: tuple[HeldTrigger, ...] = ()
    # What handles had before their first put or get in it; its backout gives them back.
    places: dict[tuple[int, Side], Place | None] = {}
    marked: Marked | None = None
    # The trigger messages that it got: the first of them, if they are very many.
    triggers: tuple[StoredMessage, ...] = ()

    def on(self, q_names: Container[str]) -> UnitFacts:
        """Returns what the unit of work did on these queues."""
        return replace(
            self,
            puts={key: count for key, count in self.puts.items() if key[0] in q_names},
            gets={key: count for key, count in self.gets.items() if key[0] in q_names},
            held=tuple(held for held in self.held if held.q_name in q_names),
        )


class Decided(msgspec.Struct, frozen=True):
    """A client's unit of work whose shared half the group's store has committed: so is the rest of it."""

    client_id: str
    number: int
    unit_id: int


class ConnectionFacts(msgspec.Struct, frozen=True):
    """A connection and what it has open."""

    connection: int
    client_id: str
    application: str
    user: str
    pid: int
    run_id: str = ""
    handles: tuple[int, ...] = ()  # in order of opening
    unit_id: int = 0  # its open unit, 0 for none
    unit_number: int = 0  # the last that it used
    is_administrator: bool = False
    is_setter: bool = False
    is_monitor: bool = False
    groups: tuple[str, ...] = ()
    max_handles: int = 0  # for its user, over all connections; 0 is any number
    max_dynamic_queues: int = 0  # likewise
    max_reservations: int = 0  # likewise, of open reservations
    refused_unit: int = 0  # the last in which a put was refused
    reservations: tuple[int, ...] = ()  # those it stands behind
    since_ms: int = 0
    ticket: Ticket | None = None  # by which it came: it reads that reservation, and nothing else
