"""What a rule may know: frozen values that a store hands in, read once a call.

Priorities are the *counted* ones (a FIFO queue's messages all count at DEFPRTY); depths count every message put,
committed or not, less those got, committed or not, which is how a private queue is counted for triggering
(seed 001, condition 3, note a). Times are milliseconds since 1970.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from trigmon.mq.attributes import (
    AliasQueue,
    AnyDefinition,
    AuthorityRecord,
    ModelQueue,
    Namelist,
    Process,
    QueueManagerDefinition,
    RemoteQueue,
    Schedule,
    Watch,
)
from trigmon.mq.enums import ObjectType, Recover, TriggerType
from trigmon.mq.run import Run
from trigmon.rules.model.authority import AuthorityRecords
from trigmon.rules.model.group_members import Group
from trigmon.rules.model.handles import ConnectionFacts, HandleFacts, Transmission, UnitFacts
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.reservation import Reservation
from trigmon.rules.model.run_facts import Cause, EndedRun, Line, Paused, Serving


class Wants(msgspec.Struct, frozen=True):
    """What a verb wants to know. A handle leads to its queue, a reservation to its queue and what belongs to that."""

    connection: int
    object_name: str = ""
    object_type: ObjectType | None = None
    handle: int = 0
    target: str = ""
    like: str = ""
    client_id: str = ""
    unit: int = 0
    dead_letter: bool = False  # the queue that DEADQ names
    q_mgr_name: str = ""  # where object_name is: at another queue manager than this, its transmission queue is meant
    context: int = 0  # a handle whose saved context is passed on
    reservation: int = 0


class WorldWants(Wants, frozen=True):
    """Asks for every object: :class:`WorldFacts`."""

    of_group: bool = False  # the members of the group too, and what each has of its queues
    of_failures: bool = False  # of each queue whose runs failed the last, and of each that is not read, too


class RunWants(Wants, frozen=True):
    """Asks for one run: :class:`RunFacts`."""

    run_id: str = ""
    run_of: Run | None = None  # a run that is to be written


class LedgerWants(Wants, frozen=True):
    """Asks for recorded runs: :class:`LedgerFacts`."""

    where: dict[str, object] | None = None
    before: str = ""
    limit: int = 0
    of_queue: bool = False  # those of the queue that object_name leads to
    line_of: str | None = None  # the held runs from an initiation queue, the first of each line up to limit
    keep_count: int = -1  # not negative: ended runs, the oldest beyond so many
    ended_before_ms: int = 0  # and those that ended before
    history: tuple[int, int] | None = None  # those that ended from the first time to before the second


class Meant(NamedTuple):
    """What a name leads to; ``name`` is that behind an alias."""

    name: str
    queue: QueueFacts | None
    alias: AliasQueue | None = None
    remote: RemoteQueue | None = None
    model: ModelQueue | None = None
    transmission: Transmission | None = None
    target_exists: bool = False


class Neighbour(msgspec.Struct, frozen=True):
    """A queue with what its triggering looks at: its process and its initiation queue, where they exist."""

    queue: QueueFacts
    process: Process | None
    initiation: QueueFacts | None
    judged: QueueFacts | None = None  # how a shared queue stood when this member last judged it
    # What stands for a message already, of an EVERY queue with RECOVER(ALL): runs that took none, open triggers.
    under_way: int = 0

    @property
    def recovers_all(self) -> bool:
        """Whether a monitor that comes finds a trigger message for each message that is due one."""
        return recovers_all(self.queue, self.process)


def recovers_all(queue: QueueFacts, process: Process | None) -> bool:
    """Returns whether RECOVER(ALL) holds for a queue: of type EVERY, and private: members know only their own runs."""
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
    held_queues: frozenset[str] = frozenset()  # those for which runs are held
    schedules: tuple[Schedule, ...] = ()
    watches: tuple[Watch, ...] = ()
    authority: tuple[AuthorityRecord, ...] = ()
    namelists: tuple[Namelist, ...] = ()


class Common(NamedTuple):
    """What is the same for every call until a definition changes."""

    group: str  # the queue-sharing group, if any
    records: AuthorityRecords | None  # None where there is no authority record


COMMON = Common("", None)


class Facts(msgspec.Struct, frozen=True):
    """The neighbourhood of one call: what every verb gets."""

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
    deleted: tuple[str, ...] = ()  # the queues that are logically deleted
    context: HandleFacts | None = None
    serving: Serving | None = None  # the run that the connection's program is
    connected: int = 0  # how many connections that run has; in RunFacts, the run asked for
    reservation: Reservation | None = None  # the one asked for
    common: Common = COMMON
    judged: QueueFacts | None = None  # how a shared queue stood when this member last judged it
    is_ambiguous: bool = False  # the name is that of a shared queue and of one of its own

    @property
    def group(self) -> str:
        """The queue-sharing group; blank where the queue manager is in none."""
        return self.common.group

    @property
    def records(self) -> AuthorityRecords | None:
        """The authority records, None where there is none."""
        return self.common.records


class WideFacts(Facts, frozen=True):
    """What commands, opens and changes of attributes get besides: of the verbs with ``is_wide``."""

    target_q_name: str = ""
    named: AnyDefinition | None = None
    like: AnyDefinition | None = None
    of_group: AnyDefinition | None = None  # the definition of this name and type that each member has a copy of
    served: tuple[Neighbour, ...] = ()
    under_way: int = 0  # as of a Neighbour
    outcome: int = 0  # of a unit of work
    pauses: tuple[Paused, ...] = ()
    cancelling: tuple[tuple[str, str], ...] = ()  # the runs that their monitors are to end, each with its monitor
    serves: tuple[Serving, ...] = ()  # all that are due or have programs
    causes: tuple[Cause, ...] = ()
    reservations: tuple[Reservation, ...] = ()  # those of the queue
    handles_of_user: int = 0  # open by the connection's user, where there is a limit
    dynamic_of_user: int = 0  # that user's dynamic queues, where there is a limit
    reservations_of_user: int = 0  # that user's open reservations, where there is a limit


class WorldFacts(WideFacts, frozen=True, kw_only=True):
    """What a verb gets that concerns all objects (:class:`WorldWants`)."""

    world: World
    members: Group | None = None  # the members of the group
    last_runs: dict[str, tuple[Run, ...]] = {}  # the last that failed, or removed nothing, by queue, the newest first
    idle_runs: dict[str, Run] = {}  # by queue with messages that nobody reads the last run, where it took none


class RunFacts(WideFacts, frozen=True):
    """What a verb gets that concerns one run (:class:`RunWants`), with the queue and process of that run."""

    run: Run | None = None  # None where none of this id is recorded
    itself: Serving | None = None  # what the run is doing
    cause: Cause | None = None
    held: int = 0  # how many runs of its line are held
    waiting: Run | None = None  # with a new run the last of those
    fired: tuple[str, ...] = ()  # what held when a new run's queue fired
    dead_letter: Facts | None = None  # of a run that could not start what a put on the dead-letter queue needs


class LedgerFacts(WideFacts, frozen=True):
    """What a verb gets that concerns many recorded runs (:class:`LedgerWants`)."""

    runs: tuple[Run, ...] = ()
    lines: tuple[Line, ...] = ()
    lying: dict[str, int] = {}  # messages on the queues of the listed runs with programs, reserved ones among them
    unread: tuple[str, ...] = ()  # initiation queues of the listed runs that no monitor reads
    outdated: tuple[str, ...] = ()  # runs that the ledger need not keep any longer
    ended: tuple[EndedRun, ...] = ()  # the oldest end first, all of each millisecond
    more_from_ms: int = 0  # when the next of them ended; 0: there is none


WIDE: dict[type[Wants], type[WideFacts]] = {
    Wants: WideFacts,
    WorldWants: WorldFacts,
    RunWants: RunFacts,
    LedgerWants: LedgerFacts,
}
"""The facts that a wide verb gets, by what it wants."""
