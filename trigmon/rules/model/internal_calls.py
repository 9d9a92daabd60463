"""Internal calls: calls that only rules make, performed like an application's after the call that asks for them."""

from __future__ import annotations

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.calls import Call, Caps, Get, GetMany
from trigmon.mq.descriptors import MessageDescriptor, TriggerMessage
from trigmon.mq.enums import Feedback
from trigmon.mq.explanation import SEEN_IN_GROUP
from trigmon.mq.reasons import Reason
from trigmon.mq.run import RunState
from trigmon.pcf.performance_event import QueueFigures
from trigmon.rules.model.handle_changes import SetPlace
from trigmon.rules.model.shared_view import Moved
from trigmon.rules.model.stored_messages import StoredMessage


class Deliver(Call, frozen=True, kw_only=True):
    """A put of a message with its context as it is: moved by an operator, or the queue manager's own."""

    q_name: str
    descriptor: MessageDescriptor
    data: bytes
    expires_ms: int = 0
    unit_id: int = 0


class Report(Call, frozen=True, kw_only=True):
    """A report, to the queue and the queue manager (blank: this one) that its sender named."""

    q_name: str
    q_mgr_name: str
    descriptor: MessageDescriptor
    data: bytes
    expires_ms: int = 0
    unit_id: int = 0


class Undelivered(Call, frozen=True, kw_only=True):
    """A report that did not reach its queue goes to the dead-letter queue, or is discarded if it asks for that."""

    report: Report
    reason: int


class LookThrough(Call, frozen=True, kw_only=True):
    """Every queue is to be scanned for expired messages; ``shared``: those of the group as well.

    Answered by Counted.
    """

    shared: bool = True


class Expire(Call, frozen=True, kw_only=True):
    """A scan of a queue for at most ``limit`` expired messages. Answered by Counted."""

    q_name: str
    limit: int


class DeadLetter(Call, frozen=True, kw_only=True):
    """A trigger message with its descriptor for the dead-letter queue, else dropped.

    Its initiation queue did not take it, or (``reason`` is a feedback code) no program could be started for it.
    """

    q_name: str
    initiation_q: str
    reason: Reason | Feedback
    message: TriggerMessage
    descriptor: MessageDescriptor
    unit_id: int = 0
    on_backout: bool = False


class PutAside(Call, frozen=True, kw_only=True):
    """Messages backed out too often, move to another queue, all or none; blank: to the dead-letter queue.

    ``messages`` are what the ``get`` met: one, or the segments of one. ``leaves`` is the place of its handle when they
    have gone, and ``why`` the reason for which the attempt before this one failed.
    """

    messages: tuple[StoredMessage, ...]
    get: Get | GetMany
    to_q_name: str
    leaves: SetPlace | None = None
    why: str = ""


class PutPart(Call, frozen=True, kw_only=True):
    """One of several messages that move together, to the queue that was found to have room for all."""

    message: StoredMessage
    to_q_name: str
    why: str


class HandOut(Call, frozen=True, kw_only=True):
    """A get whose message could not be put aside: it is returned as by MQ. ``number`` is the message's."""

    get: Get | GetMany
    number: int


class SendBack(Call, frozen=True, kw_only=True):
    """A dead letter, as it was before it became one, to a queue. Answered by Done, or Refused where it stays."""

    message: StoredMessage
    to_q_name: str
    descriptor: MessageDescriptor
    data: bytes


class MakeQueue(Call, frozen=True, kw_only=True):
    """The dynamic queue that opening a model queue makes, and the open of it. Answered by Opened."""

    definition: LocalQueue
    options: int


class JudgeMoved(Call, frozen=True, kw_only=True, tag=SEEN_IN_GROUP):
    """Something has moved in the group: this member copies what it is to have, and judges each shared queue.

    ``acted``: this member moved it itself, just now.
    """

    moved: Moved
    acted: bool = False


class TakeCopy(Call, frozen=True, kw_only=True):
    """A definition of the group is new, altered or gone: so is this member's copy of it."""

    object_type: str
    name: str


class JudgeShared(Call, frozen=True, kw_only=True):
    """What happened to one shared queue since this member judged it last, as a queue and as an initiation queue."""

    q_name: str
    acted: bool = False


class RecordJudged(Call, frozen=True, kw_only=True):
    """All that happened to these shared queues has been judged, which is put on record."""

    q_names: tuple[str, ...]


class Reap(Call, frozen=True, kw_only=True):
    """A unit of work has ended: a logically deleted queue is removed when it is no longer in use."""

    q_name: str


class Abandon(Call, frozen=True, kw_only=True):
    """A connection was lost: its unit of work is backed out, a marked message with it (seed 002, note 1)."""

    unit: int


class Awake(Call, frozen=True, kw_only=True):
    """The queue manager has started. Answered by Listing: the queues to be checked from time to time, by name."""


class Rearmed(Call, frozen=True, kw_only=True):
    """A DEPTH queue that switched its control off is armed again, whether enough messages wait or not."""

    q_name: str


class NewestMessage(Call, frozen=True, array_like=True, kw_only=True, tag="newest_message"):
    """When the newest message came to a queue of dead letters, and why. Answered by Values: at_ms (0: none), error."""

    q_name: str


class Tend(Call, frozen=True, kw_only=True):
    """Time has passed for a queue with BACKSTOP, MAXWAIT or REARM(AUTO)."""

    q_name: str


class ReachMoment(Call, frozen=True, kw_only=True, tag="schedule"):
    """A moment of a schedule has come; ``why`` is not blank where nothing is to be started for it.

    ``q_name`` is the schedule's queue, blank for none. Answered by Counted: 0 where no monitor listens; then the moment
    has not been judged, and is to be reached again. ``is_begin``: it is no moment, but the time from which on moments
    are the schedule's.
    """

    name: str
    q_name: str
    moment_ms: int
    why: str = ""
    is_begin: bool = False


class Attend(Call, frozen=True, kw_only=True):
    """The program of a run has opened the queue it was started for, or closed it with nothing left."""

    run_id: str
    state: RunState


class StartRun(Call, frozen=True, kw_only=True):
    """A held run becomes due, where nothing hinders it. Answered by ToStart."""

    run_id: str
    monitor: str
    caps: Caps


class JudgeRun(Call, frozen=True, kw_only=True):
    """A run has ended, and its last connection."""

    run_id: str


class Prune(Call, frozen=True, kw_only=True):
    """A slice of the oldest ended runs leaves the ledger: those beyond ``keep_count``, and those that ended before.

    Answered by Counted.
    """

    keep_count: int
    ended_before_ms: int


class TakeIn(Call, frozen=True, kw_only=True):
    """What a reservation is extended by: these messages or, of a group, all of it; nothing once it has ``until``."""

    reservation: int
    messages: tuple[StoredMessage, ...]
    handle: int
    until: int


class Seal(Call, frozen=True, kw_only=True):
    """A slice of a reservation is made. Answered by Reserved. ``is_all``: there was no more to look at."""

    reservation: int
    is_all: bool
    until: int


class PutOff(Call, frozen=True, kw_only=True):
    """A message moves to the backout queue, else to the dead-letter queue (blank), else ``otherwise`` is called.

    One with an ordinal is of this reservation, and leaves it. ``why`` is the reason for which the attempt before this
    one failed, or the application's own reason.
    """

    message: StoredMessage
    to_q_name: str
    otherwise: Call | None = None
    reservation: int = 0
    why: str = ""


class Sweep(Call, frozen=True, kw_only=True):
    """Removes a slice of the rows that a reservation is done with. Answered by Counted."""

    reservation: int


class LeaveReservation(Call, frozen=True, kw_only=True):
    """The connection is no longer behind a reservation."""

    reservation: int


class Forget(Call, frozen=True, kw_only=True):
    """The last internal call of a connection's end: the connection is removed."""


class PutEvent(Call, frozen=True, kw_only=True):
    """An event message, which is dropped where its queue does not take it. ``event`` is its name."""

    q_name: str
    event: str
    format: str
    data: bytes


class ReportQueueEvent(Call, frozen=True, kw_only=True):
    """A depth or service interval event of a queue: it is reported, and enables and disables others of that queue."""

    q_name: str
    event: str
    figures: QueueFigures


class LookAround(Call, frozen=True, kw_only=True):
    """Time has passed: what no call changes is reported, where it is not as it was.

    ``unread`` are the initiation queues without a monitor at the last look, ``gone`` those of which that was reported,
    ``were_puts_allowed`` whether puts were allowed then, ``disk`` the free bytes and the reserve, ``lost`` members of
    the group that have died since, each with the group. Answered by Values: unread, gone.
    """

    unread: tuple[str, ...]
    gone: tuple[str, ...]
    are_puts_allowed: bool
    were_puts_allowed: bool
    disk: tuple[int, int]
    lost: tuple[tuple[str, str], ...]
