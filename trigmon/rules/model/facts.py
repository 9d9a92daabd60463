"""What a rule may know: frozen values that a store hands in, read once a call.

Priorities are the *counted* ones (a FIFO queue's messages all count at DEFPRTY); depths count every message put,
committed or not, less those got, committed or not, which is how a private queue is counted for triggering
(seed 001, condition 3, note a). Times are milliseconds since 1970.
"""

from __future__ import annotations

from operator import attrgetter

import msgspec
from msgspec.structs import replace

from trigmon.mq.attributes import (
    AliasQueue,
    AnyDefinition,
    LocalQueue,
    ModelQueue,
    Process,
    QueueManagerDefinition,
    RemoteQueue,
)
from trigmon.mq.descriptors import EXPIRY_UNLIMITED, MessageDescriptor, TriggerMessage
from trigmon.mq.enums import ObjectType, Recover, TriggerType
from trigmon.mq.explanation import moment
from trigmon.mq.run import Run
from trigmon.rules.model.group_completeness import Whole
from trigmon.rules.model.group_members import Group
from trigmon.rules.model.group_position import LAST_SEGMENT, SEGMENT, Place, Side
from trigmon.rules.model.reservation import Ordinals, Reservation

NO_DEPTH = (0,) * 10
SLICE = 256
"""Rows that one call looks at or moves where there may be many: work goes in slices, so that a turn stays short."""


class Reader(msgspec.Struct, frozen=True):
    """Another member of the queue-sharing group that has a shared queue open for input, by so many handles."""

    q_mgr_name: str
    count: int
    is_exclusive: bool = False


class Shared(msgspec.Struct, frozen=True):
    """What a shared queue has besides, as one member sees it. What counts up never goes back.

    ``readers`` are the other members that read it. ``put_totals``: messages that became available by a put, by
    priority. ``rises``: how often, by priority, none of that priority or more waited and then some did. ``crossings``:
    how often TriggerDepth was reached (type DEPTH). ``triggers``: how often a trigger message of it was written to an
    initiation queue that is shared as well. ``disarms``: how often it switched its control off by firing.
    """

    readers: tuple[Reader, ...] = ()
    put_totals: tuple[int, ...] = NO_DEPTH
    rises: tuple[int, ...] = NO_DEPTH
    crossings: int = 0
    triggers: int = 0
    disarms: int = 0


class QueueFacts(msgspec.Struct, frozen=True):
    """A local queue as it stands: its definition, what lies on it, who has it open, its last trigger.

    ``reserved`` counts messages of reservations that a connection stands behind: those are not in ``depths``.

    Of a ``shared`` queue ``depths`` are the committed messages of the whole group (seed 001, condition 3, note b), and
    so are the counts of what is uncommitted and of open handles in all; ``open_input_count``, ``open_output_count``
    and the stamp are this member's own. ``open_exclusive`` is said of whichever member has it so.

    ``is_deleted``: a dynamic queue that was deleted while others had it open or work on it was uncommitted. It stays
    until the last of them is done, and nobody may use it (the manual: logically deleted).
    """

    definition: LocalQueue
    depths: tuple[int, ...] = NO_DEPTH
    open_input_count: int = 0
    open_exclusive: bool = False
    open_output_count: int = 0
    open_count: int = 0
    uncommitted_puts: int = 0
    uncommitted_gets: int = 0
    trigger_stamp_ms: int | None = None
    is_deleted: bool = False
    reserved: int = 0
    shared: Shared | None = None

    @property
    def readers(self) -> int:
        """How many handles are open for input, on whichever member."""
        if self.shared is None:
            return self.open_input_count
        return self.open_input_count + sum(reader.count for reader in self.shared.readers)

    @property
    def lying(self) -> int:
        """How many messages take up places: a shared queue's uncommitted ones do, which do not count as waiting."""
        return self.depth if self.shared is None else self.depth + self.uncommitted_puts

    @property
    def unseen(self) -> int:
        """How many of those that wait are not committed, so that nobody else can get them."""
        return self.uncommitted_puts if self.shared is None else 0

    @property
    def in_use(self) -> int:
        """How many handles and uncommitted or reserved messages there are."""
        return self.open_count + self.uncommitted_puts + self.uncommitted_gets + self.reserved

    @property
    def depth(self) -> int:
        """CURDEPTH."""
        return sum(self.depths)

    def waiting(self, priority: int) -> int:
        """How many messages of at least this priority."""
        return sum(self.depths[priority:])


class Cursor(msgspec.Struct, frozen=True):
    """Where a browse stands: the counted priority and the arrival number of the message last browsed."""

    priority: int
    number: int


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


class HandleFacts(msgspec.Struct, frozen=True):
    """An open object: which one, behind which alias, for what. ``options`` are resolved OpenOption bits.

    ``q_name`` is the local queue it leads to: behind a remote queue, by its ``route``, the transmission queue.
    ``context`` is the descriptor of the message last got, with SAVE_ALL_CONTEXT.
    ``is_creator``: it was opened by the open of a model queue that made the queue. The places are where its last put,
    its last destructive get and its last browse left it in a group. ``locked`` are the numbers of the message it has
    locked, more than one where it is of segments.
    """

    handle: int
    connection: int
    object_type: ObjectType
    object_name: str
    q_name: str
    options: int
    cursor: Cursor | None = None
    route: Route | None = None
    is_creator: bool = False
    context: MessageDescriptor | None = None
    put_place: Place | None = None
    get_place: Place | None = None
    browse_place: Place | None = None
    locked: tuple[int, ...] = ()

    def place(self, side: Side) -> Place | None:
        """Where its last call of this side left it."""
        return {Side.PUT: self.put_place, Side.GET: self.get_place, Side.BROWSE: self.browse_place}[side]


def with_place(handle: HandleFacts, side: Side, place: Place | None) -> HandleFacts:
    """The handle, standing elsewhere on one side."""
    if side is Side.PUT:
        return replace(handle, put_place=place)
    return replace(handle, get_place=place) if side is Side.GET else replace(handle, browse_place=place)


class HeldTrigger(msgspec.Struct, frozen=True):
    """A message that waits for its unit of work to end; ``on_backout`` says whether backout releases it too.

    ``message`` is what a trigger message on its initiation queue says, None for one on the dead-letter queue.
    """

    q_name: str
    priority: int
    message: TriggerMessage | None
    on_backout: bool


class Marked(msgspec.Struct, frozen=True):
    """A message got with MARK_SKIP_BACKOUT, as far as its unit of work has to know it.

    ``is_own``: that unit has put it as well, so a backout leaves nothing that could be skipped. ``handle`` is the one
    whose place in a group its get moved, first in that unit, to ``place``; 0 where it did not.
    """

    number: int
    q_name: str
    priority: int
    is_persistent: bool
    is_own: bool
    handle: int = 0
    place: Place | None = None


class UnitFacts(msgspec.Struct, frozen=True):
    """An open unit of work: what it put and got, by queue and counted priority, and which get was marked.

    ``places`` are the places that handles had before their first put or get in it; its backout gives them back.
    ``triggers`` are the trigger messages that it got, whoever put them: the first of them, if they are very many.
    """

    unit_id: int
    number: int
    connection: int
    client_id: str
    count: int = 0
    is_durable: bool = False
    puts: dict[tuple[str, int], int] = {}
    gets: dict[tuple[str, int], int] = {}
    held: tuple[HeldTrigger, ...] = ()
    places: dict[tuple[int, Side], Place | None] = {}
    marked: Marked | None = None
    triggers: tuple[StoredMessage, ...] = ()


class Decided(msgspec.Struct, frozen=True):
    """A client's unit of work whose shared half the group's store has committed: so is the rest of it."""

    client_id: str
    number: int
    unit_id: int


class Moved(msgspec.Struct, frozen=True):
    """What moved in a group: shared queues by name, and definitions that each member has a copy of.

    ``quiet`` are those of the queues of which nothing moved that is ever judged.
    """

    queues: tuple[str, ...] = ()
    definitions: tuple[tuple[ObjectType, str], ...] = ()
    quiet: frozenset[str] = frozenset()


NOTHING_MOVED = Moved()
"""The one answer that nothing did: whoever asks after each call need only look whether it is this."""


class ConnectionFacts(msgspec.Struct, frozen=True):
    """A connection: its handles in order of opening, its open unit (0: none), the last unit number it used.

    ``reservations`` are those it stands behind; ``refused_unit`` is the last in which a put was refused.
    ``max_handles``, ``max_dynamic_queues`` and ``max_reservations`` are for its user, over all connections; 0 is any
    number.
    """

    connection: int
    client_id: str
    application: str
    user: str
    pid: int
    run_id: str = ""
    handles: tuple[int, ...] = ()
    unit_id: int = 0
    unit_number: int = 0
    is_administrator: bool = False
    is_setter: bool = False
    max_handles: int = 0
    max_dynamic_queues: int = 0
    max_reservations: int = 0
    refused_unit: int = 0
    reservations: tuple[int, ...] = ()


class StoredMessage(msgspec.Struct, frozen=True):
    """A message as it lies in a store. ``number`` is its arrival; ``expires_ms`` 0 means never.

    ``is_own``: the unit of work that looks has put it, and not committed yet. ``ordinal`` is its place in the
    reservation it is of, -1 in none.
    """

    number: int
    q_name: str
    priority: int
    is_persistent: bool
    descriptor: MessageDescriptor
    data: bytes
    expires_ms: int = 0
    is_own: bool = False
    ordinal: int = -1

    def waited_ms(self, now: int) -> int:
        """How long it has been on its way: by its expiry where it has one, since PutTime may be another's word."""
        if self.expires_ms:
            return self.descriptor.expiry * 100 - (self.expires_ms - now)
        return now - self.descriptor.put_ms

    def tenths_left(self, now: int) -> int:
        """Expiry as a get returns it: the time it has left, above 0, or that it has no end."""
        return max(1, (self.expires_ms - now) // 100) if self.expires_ms else EXPIRY_UNLIMITED


class Selection(msgspec.Struct, frozen=True):
    """Which messages a call looks for, in get order: highest priority first, then arrival.

    ``unit_id`` is the unit whose own uncommitted puts are visible; ``after`` begins behind a browse cursor,
    ``at`` looks at that one message. Messages expired at ``now`` are returned apart. A store stops looking once it has
    ``limit`` messages, or those of one kind (committed, or the unit's own) hold ``limit_bytes``. What another handle
    than ``handle`` has locked is not there. With ``own_persistent`` only the persistent ones of the unit's own are.

    ``starts``: only what a logical message, or a group, begins with; a message in none is both. ``whole``: only what
    has all of its logical message, or group, there. ``gathers``: what is found first
    brings the segments that follow it, in order.

    Two questions are of another kind, and may be asked together: ``oldest_from`` asks for one message only, the
    committed one of at least this priority that arrived first, and ``counts_expired`` asks how many committed ones
    have expired, counted up to so many. ``is_expired`` asks for ``limit`` messages that have expired, and for no other.
    ``reserved_by`` asks for those of a reservation that have these ``ordinals``, in their order, expired or not.
    """

    q_name: str
    now: int
    limit: int = 1
    unit_id: int = 0
    after: Cursor | None = None
    at: Cursor | None = None
    msg_id: bytes | None = None
    correl_id: bytes | None = None
    group_id: bytes | None = None
    msg_seq_number: int | None = None
    offset: int | None = None
    starts: Whole = Whole.NOTHING
    whole: Whole = Whole.NOTHING
    gathers: bool = False
    limit_bytes: int = 4 << 20
    oldest_from: int | None = None
    counts_expired: int = 0
    handle: int = 0
    own_persistent: bool = False
    is_expired: bool = False
    reserved_by: int = 0
    ordinals: Ordinals = (0, 0)

    @property
    def is_anything(self) -> bool:
        """Whether any message will do, the first there is."""
        return (
            self.after is None
            and self.at is None
            and self.starts is Whole.NOTHING
            and self.whole is Whole.NOTHING
            and _named(self) == _ANY
        )


_named = attrgetter("msg_id", "correl_id", "group_id", "msg_seq_number", "offset")
_ANY = (None,) * 5


def fits(selection: Selection, descriptor: MessageDescriptor) -> bool:
    """Whether a message is of those that a selection names by its fields, or by what starts with it."""
    named = _named(selection)
    if named != _ANY:
        fields = zip(named, _named(descriptor), strict=True)
        if any(wanted is not None and wanted != found for wanted, found in fields):
            return False
    if selection.starts is Whole.NOTHING:
        return True
    return not descriptor.offset and (selection.starts is Whole.MESSAGE or descriptor.msg_seq_number == 1)


def follows(segment: StoredMessage, other: StoredMessage) -> bool:
    """Whether the other is the next segment of the same logical message, both of one group."""
    said, found = segment.descriptor, other.descriptor
    if not said.msg_flags & SEGMENT or said.msg_flags & LAST_SEGMENT:
        return False
    return (found.msg_seq_number, found.offset) == (said.msg_seq_number, said.offset + len(segment.data))


class Found(msgspec.Struct, frozen=True):
    """The messages a selection found, and on the way expired ones, and damaged ones of which no more is known."""

    messages: tuple[StoredMessage, ...] = ()
    expired: tuple[StoredMessage, ...] = ()
    damaged: tuple[StoredMessage, ...] = ()
    expired_count: int = 0


class Wants(msgspec.Struct, frozen=True):
    """What a verb wants to know. A handle leads to its queue; ``dead_letter`` to the queue that DEADQ names.

    ``context`` is a handle whose saved context is passed on;
    ``q_mgr_name`` is where ``object_name`` is: at another queue manager than this, its transmission queue is meant.
    ``run_of`` is a run that is to be written, and ``line_of`` asks for the held runs from an initiation
    queue, the first ``limit`` of each line.
    ``reservation`` leads to its queue, and by that to what belongs to it.
    With a ``keep_count`` that is not negative, ended runs are asked for: the oldest beyond so many, and those that
    ended before ``ended_before_ms``. ``of_group`` asks for the members of the group, and what each has of its queues.
    """

    connection: int
    object_name: str = ""
    object_type: ObjectType | None = None
    handle: int = 0
    target: str = ""
    like: str = ""
    client_id: str = ""
    unit: int = 0
    run_id: str = ""
    everything: bool = False
    dead_letter: bool = False
    where: dict[str, object] | None = None
    before: str = ""
    limit: int = 0
    q_mgr_name: str = ""
    context: int = 0
    keep_count: int = -1
    ended_before_ms: int = 0
    run_of: Run | None = None
    line_of: str | None = None
    reservation: int = 0
    of_group: bool = False


BREAKER = "the breaker"
"""Who pauses a queue that is not drained: no user has such a name."""


class Paused(msgspec.Struct, frozen=True):
    """Starting is paused for a queue, a process or everything (``what``; that has no name): by whom, when and why."""

    what: str
    name: str
    by: str
    since_ms: int
    reason: str = ""

    @property
    def is_breaker(self) -> bool:
        """Whether no person did it: runs ended again and again without removing a message."""
        return self.by == BREAKER

    def __str__(self) -> str:
        """For a person: "queue ORDERS paused by alice since ...: the database is down"."""
        subject = f"{self.what} {self.name}".rstrip()
        if self.is_breaker:
            return f"{subject} held since {moment(self.since_ms)}: does not drain: {self.reason}"
        return f"{subject} paused by {self.by} since {moment(self.since_ms)}" + (f": {self.reason}" * bool(self.reason))

    def concerns(self, q_name: object, process_name: object) -> bool:
        """Whether it keeps runs for this queue, or of this process, from being started."""
        return self.what == "everything" or self.name == (q_name if self.what == "queue" else process_name)


class Serving(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run that is due or has a program, and what that has done on the queue it was started for.

    ``slot`` is what instances are counted by: the process, or the program where none is named. ``opens`` are its
    handles for input. Messages it got are ``taken``; then ``committed`` or ``backed_out``. ``put_aside`` were moved
    out of its way as poison. ``batches`` are reservations that it settled to their end, the last at ``settled_ms``.
    Times are 0 until it happened. ``is_over``: it has ended, and its connections have not. ``user`` is as whom it
    runs, "" where that is not known: no other user's connection is its program's. ``is_elsewhere``: some of its
    processes run on other machines of a Spark cluster, whose connections come over TCP and have no user.
    """

    run_id: str
    q_name: str
    slot: str
    monitor: str = ""
    first_open_ms: int = 0
    first_get_ms: int = 0
    opens: int = 0
    taken: int = 0
    committed: int = 0
    backed_out: int = 0
    put_aside: int = 0
    is_over: bool = False
    user: str = ""
    batches: int = 0
    settled_ms: int = 0
    is_elsewhere: bool = False


class Cause(msgspec.Struct, frozen=True):
    """How the last runs of a process for a queue ended.

    ``failed`` in a row, and ``fruitless`` in a row: ended without removing a message while some were left. The next
    is not started before ``until_ms``.
    """

    slot: str
    q_name: str
    failed: int = 0
    fruitless: int = 0
    until_ms: int = 0


class Line(msgspec.Struct, frozen=True):
    """The held runs of one process for one queue from one initiation queue: how many, and the first of them."""

    initiation_q: str
    slot: str
    q_name: str
    count: int
    run_ids: tuple[str, ...]
    queue: QueueFacts | None
    process: Process | None
    cause: Cause | None


class Neighbour(msgspec.Struct, frozen=True):
    """A queue with what its triggering looks at: its process and its initiation queue, where they exist.

    ``judged`` is how a shared queue stood when this member last judged it. ``under_way`` counts what stands for a
    message of an EVERY queue with RECOVER(ALL) already: runs that have taken none, and triggers of open units of work.
    """

    queue: QueueFacts
    process: Process | None
    initiation: QueueFacts | None
    judged: QueueFacts | None = None
    under_way: int = 0

    @property
    def recovers_all(self) -> bool:
        """Whether a monitor that comes finds a trigger message for each message that is due one."""
        return recovers_all(self.queue, self.process)


def recovers_all(queue: QueueFacts, process: Process | None) -> bool:
    """Whether RECOVER(ALL) holds for a queue: of type EVERY, and not shared, for no member knows the others' runs."""
    if process is None or process.recover is not Recover.ALL or queue.shared is not None:
        return False
    return queue.definition.trigger_type is TriggerType.EVERY


class World(msgspec.Struct, frozen=True):
    """Every object and every handle, for the verbs that list; ``held`` counts held runs by initiation queue."""

    queues: tuple[QueueFacts, ...]
    aliases: tuple[AliasQueue, ...]
    processes: tuple[Process, ...]
    handles: tuple[HandleFacts, ...]
    connections: tuple[ConnectionFacts, ...]
    units: tuple[UnitFacts, ...]
    remotes: tuple[RemoteQueue, ...] = ()
    models: tuple[ModelQueue, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    held: dict[str, int] = {}


class Facts(msgspec.Struct, frozen=True):
    """The neighbourhood of one call. ``deleted`` names the queues that are logically deleted.

    ``reservation`` is the one asked for, ``reservations`` are those of the queue.
    ``group`` is the queue-sharing group that the queue manager is in, if any; ``judged`` is how a shared queue stood
    when this member last judged it; ``is_ambiguous``: the name is that of a shared queue and of one of its own;
    ``of_group`` is the definition of this name and type that each member has a copy of; ``members`` is who is in it.
    ``cancelling`` are the runs that their monitors are to end, each with its monitor; ``outdated`` are runs that the
    ledger need not keep any longer. ``serving`` is the run that the connection's program is, ``serves`` are all that
    are due or have programs. With a run come its queue and process, its ``cause``, what it is ``itself`` doing, how
    many connections it has, how many runs of its line are ``held``, and with a new one the last of those, ``waiting``,
    and what held when its queue ``fired``. ``handles_of_user`` and its kin are the objects that the
    connection's user has open, its dynamic queues and open reservations, where there is a limit. ``unread`` are
    initiation queues of the listed ``runs`` that nobody reads. ``under_way`` is as :class:`Neighbour` says it.
    """

    q_mgr: QueueManagerDefinition
    connection: ConnectionFacts
    handle: HandleFacts | None = None
    queue: QueueFacts | None = None
    alias: AliasQueue | None = None
    process: Process | None = None
    initiation: QueueFacts | None = None
    unit: UnitFacts | None = None
    target_exists: bool = False
    remote: RemoteQueue | None = None
    model: ModelQueue | None = None
    transmission: Transmission | None = None
    deleted: tuple[str, ...] = ()
    target_q_name: str = ""
    named: AnyDefinition | None = None
    like: AnyDefinition | None = None
    served: tuple[Neighbour, ...] = ()
    outcome: int = 0
    run: Run | None = None
    runs: tuple[Run, ...] = ()
    world: World | None = None
    context: HandleFacts | None = None
    pauses: tuple[Paused, ...] = ()
    cancelling: tuple[tuple[str, str], ...] = ()
    outdated: tuple[str, ...] = ()
    serving: Serving | None = None
    serves: tuple[Serving, ...] = ()
    itself: Serving | None = None
    cause: Cause | None = None
    causes: tuple[Cause, ...] = ()
    connected: int = 0
    held: int = 0
    waiting: Run | None = None
    lines: tuple[Line, ...] = ()
    fired: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()
    reservation: Reservation | None = None
    reservations: tuple[Reservation, ...] = ()
    group: str = ""
    judged: QueueFacts | None = None
    is_ambiguous: bool = False
    of_group: AnyDefinition | None = None
    handles_of_user: int = 0
    dynamic_of_user: int = 0
    reservations_of_user: int = 0
    members: Group | None = None
    under_way: int = 0
