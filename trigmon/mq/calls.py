"""Calls: the values that travel unchanged from the client through the wire to the rules.

A call is what an application asks for; :mod:`trigmon.mq.replies` has what it gets. Both are tagged, positional
structs, so a frame is short and a field added at the end is ignored by those that do not know it. ``unit`` is the
number of the connection's unit of work, counted by the client from 1; 0 is outside any.
"""

from __future__ import annotations

from typing import Any

import msgspec

from trigmon.mq.descriptors import NO_ID, MessageDescriptor
from trigmon.mq.enums import GetOption
from trigmon.mq.run import RunJson

_WAIT = GetOption.WAIT.value


class Call(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """What an application asks for."""

    @property
    def wait_ms(self) -> int:
        """How long this call may wait: milliseconds, 0 for not at all, -1 for ever."""
        return 0


# -- what the MQI has ---------------------------------------------------------------------------------------


class Open(Call, frozen=True, array_like=True, kw_only=True, tag="open"):
    """MQOPEN: ``options`` are OpenOption; ``object_type`` is ObjectType's name or "queue". Answered by Opened.

    ``dynamic_q_name`` names the queue that opening a model queue makes; ``*`` at its end becomes what makes it unique.
    """

    object_name: str
    options: int
    object_type: str = "queue"
    dynamic_q_name: str = "AMQ.*"


class Close(Call, frozen=True, array_like=True, kw_only=True, tag="close"):
    """MQCLOSE: ``options`` are CloseOption. Answered by Done."""

    handle: int
    options: int = 0


class Put(Call, frozen=True, array_like=True, kw_only=True, tag="put"):
    """MQPUT through ``handle``, or MQPUT1 to ``q_name`` when the handle is 0. Answered by WasPut.

    ``context`` is the handle whose saved context is passed on (MQPMO.Context).
    """

    handle: int = 0
    q_name: str = ""
    descriptor: MessageDescriptor = MessageDescriptor()
    data: bytes = b""
    options: int = 0
    unit: int = 0
    context: int = 0


class PutMany(Call, frozen=True, array_like=True, kw_only=True, tag="put_many"):
    """Several MQPUTs in one frame, all of them or none. Answered by WerePut."""

    bodies: list[bytes]
    handle: int = 0
    q_name: str = ""
    descriptor: MessageDescriptor = MessageDescriptor()
    options: int = 0
    unit: int = 0


class Get(Call, frozen=True, array_like=True, kw_only=True, tag="get"):
    """MQGET: ``options`` GetOption, ``match`` MatchOption, ``wait_interval_ms`` -1 = unlimited. Answered by WasGot."""

    handle: int
    options: int = 0
    wait_interval_ms: int = 0
    max_length: int = -1
    match: int = 0
    msg_id: bytes = NO_ID
    correl_id: bytes = NO_ID
    unit: int = 0
    group_id: bytes = NO_ID
    msg_seq_number: int = 1
    offset: int = 0

    @property
    def wait_ms(self) -> int:
        """Of a get with MQGMO_WAIT."""
        return self.wait_interval_ms if self.options & _WAIT else 0


class Caps(msgspec.Struct, frozen=True, array_like=True):
    """How many programs may run at a time: of a process whose definition does not say, and of a monitor. 0: any."""

    instances: int = 0
    runs: int = 0


class NewRuns(msgspec.Struct, frozen=True, array_like=True):
    """How a trigger monitor's get records runs: by which monitor, on which host, with ids that sort behind ``after``.

    ``appl_types`` are the application types that the monitor can start.
    """

    monitor: str
    host: str
    after: str
    appl_types: list[int]
    caps: Caps = Caps()


class GetMany(Call, frozen=True, array_like=True, kw_only=True, tag="get_many"):
    """Up to ``count`` MQGETs in one frame; it waits, if asked to, for the first. Answered by WereGot.

    With ``fewer_if_backed_out`` messages that were backed out before come with few others, and alone before BOTHRESH:
    one that makes its unit of work fail takes ever fewer with it.

    With ``runs``, which is a monitor's, trigger messages of the queue manager's own become runs, as RecordRuns would
    record them, and ``unit`` is committed. Where any other message is among them, all are got as ever.
    """

    handle: int
    count: int
    options: int = 0
    wait_interval_ms: int = 0
    unit: int = 0
    fewer_if_backed_out: bool = False
    runs: NewRuns | None = None

    @property
    def wait_ms(self) -> int:
        """Of a get with MQGMO_WAIT."""
        return self.wait_interval_ms if self.options & _WAIT else 0


class BrowseMany(Call, frozen=True, array_like=True, kw_only=True, tag="browse_many"):
    """Up to ``count`` messages in get order, left where they are. Answered by WereBrowsed.

    It begins behind the place ``after`` (priority, number; none: at the first) and ends with the place ``until`` (none:
    with the last). Messages that were put after ``newest`` (0: any) do not belong to it. The handle's cursor does not
    move. 2033 where nothing is left of the range.
    """

    handle: int
    count: int = 1000
    after: list[int] = []
    until: list[int] = []
    newest: int = 0


class PlanBrowse(Call, frozen=True, array_like=True, kw_only=True, tag="plan_browse"):
    """Where a browse can be divided: the place ``skip`` messages behind ``after``. Answered by BrowsePlanned.

    It looks over 65 536 messages at most.
    """

    handle: int
    after: list[int] = []
    skip: int = 0


class Inquire(Call, frozen=True, array_like=True, kw_only=True, tag="inquire"):
    """MQINQ by long names, MQSC words or selectors; none means every attribute. Answered by Values.

    What only another type of queue has is -1, or asterisks for text, and the warning is 2068.
    """

    handle: int
    names: list[str | int] = []


class Set(Call, frozen=True, array_like=True, kw_only=True, tag="set"):
    """MQSET by long names, MQSC words or selectors; of one named twice the last counts. Answered by Done."""

    handle: int
    attributes: dict[str | int, Any]


class Commit(Call, frozen=True, array_like=True, kw_only=True, tag="commit"):
    """MQCMIT of one numbered unit of work. Answered by Done."""

    unit: int


class Backout(Call, frozen=True, array_like=True, kw_only=True, tag="backout"):
    """MQBACK of one numbered unit of work. Answered by Done."""

    unit: int


class Disconnect(Call, frozen=True, array_like=True, kw_only=True, tag="disconnect"):
    """MQDISC: commits, then closes in the order of opening. Answered by Done.

    ``unit`` is the client's unit of work, 0 where no call has named it: so one without effect has an outcome too.
    """

    unit: int = 0


class LostConnection(Call, frozen=True, array_like=True, kw_only=True, tag="lost_connection"):
    """A connection ended without MQDISC: backs out, then closes. Made by the daemon, never by a client."""


class Outcome(Call, frozen=True, array_like=True, kw_only=True, tag="outcome"):
    """What became of a client's unit of work. Answered by OutcomeWas."""

    client_id: str
    unit: int


# -- commands -----------------------------------------------------------------------------------------------


class Define(Call, frozen=True, array_like=True, kw_only=True, tag="define"):
    """DEFINE: ``object_type`` is ObjectType's name; ``like`` names the object defaults are taken from."""

    object_type: str
    name: str
    attributes: dict[str, Any] = {}
    replace: bool = False
    like: str = ""


class Alter(Call, frozen=True, array_like=True, kw_only=True, tag="alter"):
    """ALTER: only the named attributes change. Answered by Done."""

    object_type: str
    name: str
    attributes: dict[str, Any] = {}


class Delete(Call, frozen=True, array_like=True, kw_only=True, tag="delete"):
    """DELETE: refused while open (2042) and, without ``purge``, while messages wait (2055).

    ``qsg_disp`` is the disposition that it must have (``shared``, ``group``, ``private`` ...), blank: any.
    """

    object_type: str
    name: str
    purge: bool = False
    qsg_disp: str = ""


class Clear(Call, frozen=True, array_like=True, kw_only=True, tag="clear"):
    """CLEAR QLOCAL: refused while open (2042) or with uncommitted work (2055). Answered by Counted.

    ``qsg_disp`` as in :class:`Delete`.
    """

    q_name: str
    qsg_disp: str = ""


class Refresh(Call, frozen=True, array_like=True, kw_only=True, tag="refresh"):
    """REFRESH QMGR TYPE(EXPIRY): expired messages on the queues of a generic name are discarded, slice by slice.

    It goes on behind the answer, which is Counted: how many queues are looked through.
    """

    name: str = "*"


class Move(Call, frozen=True, array_like=True, kw_only=True, tag="move"):
    """Moves messages from queue to queue, oldest first, one unit a slice. Answered by Counted."""

    q_name: str
    to_q_name: str
    count: int = 256


class Sieve(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """Which dead letters are meant: all that match every field here; 0 and blank match all.

    ``since_ms`` and ``before_ms`` are about when a message came to the dead-letter queue by its MQDLH or, where it has
    none, about when it was put.
    """

    reason: int = 0
    dest_q_name: str = ""
    msg_id: bytes = b""
    since_ms: int = 0
    before_ms: int = 0


class DeadLetters(Call, frozen=True, array_like=True, kw_only=True, tag="dead_letters"):
    """Looks through a slice of the dead-letter queue, or of ``q_name``, in get order. Answered by Sifted.

    ``after`` is the last answer's: it goes on from there. ``with_data`` has each row hold the message's data too.
    """

    q_name: str = ""
    where: Sieve = Sieve()
    after: list[int] = []
    limit: int = 256
    with_data: bool = False


class RetryDeadLetters(Call, frozen=True, array_like=True, kw_only=True, tag="retry_dead_letters"):
    """Returns what fits in a slice to where it came from, or to ``to_q_name``, each in one step. Answered by Sifted.

    One that its queue does not take stays where it is.
    """

    q_name: str = ""
    where: Sieve = Sieve()
    after: list[int] = []
    limit: int = 256
    to_q_name: str = ""


class DiscardDeadLetters(Call, frozen=True, array_like=True, kw_only=True, tag="discard_dead_letters"):
    """Deletes what fits in a slice. Answered by Sifted."""

    q_name: str = ""
    where: Sieve = Sieve()
    after: list[int] = []
    limit: int = 256


class Display(Call, frozen=True, array_like=True, kw_only=True, tag="display"):
    """DISPLAY: objects of one type (ObjectType's name, or "queue" for all queues) by generic name.

    Answered by Listing, a row of long names an object. ``after`` pages on behind a name.
    """

    object_type: str
    name: str = "*"
    after: str = ""
    limit: int = 256


class DisplayHandles(Call, frozen=True, array_like=True, kw_only=True, tag="display_handles"):
    """DISPLAY QSTATUS TYPE(HANDLE): who has a queue open and how, the oldest first. Answered by Listing.

    ``after`` pages on behind a handle.
    """

    q_name: str = "*"
    after: int = 0
    limit: int = 256


class QueueStatus(Call, frozen=True, array_like=True, kw_only=True, tag="queue_status"):
    """DISPLAY QSTATUS of local queues by generic name, in the order of their names. Answered by Listing.

    A row has name, description, usage, definition_type, current_q_depth, max_q_depth, open_input_count,
    open_output_count, uncommitted_msgs; when the oldest message was put and how long ago (oldest_ms, oldest_age_s; 0:
    there is none); trigger_control, trigger_type, process_name, paused (a sentence; blank where it is not) and held
    (true where the breaker holds it); and what went through it, as counted by this queue manager since since_ms,
    since_s seconds ago: puts, gets, high_q_depth, last_put_ms, last_get_ms; and how long got messages had been there,
    in microseconds, of late and over a longer time (q_time_short_us, q_time_long_us; -1: none was got).
    """

    q_name: str = "*"
    after: str = ""
    limit: int = 256


class ResetQueueStatistics(Call, frozen=True, array_like=True, kw_only=True, tag="reset_queue_statistics"):
    """RESET QSTATS: the counters of queues by generic name begin again. Answered by Listing.

    Its rows are those of QueueStatus, as they were.
    """

    q_name: str = "*"
    after: str = ""
    limit: int = 256


class DisplayConnections(Call, frozen=True, array_like=True, kw_only=True, tag="display_connections"):
    """The connections, the oldest first. Answered by Listing.

    A row has connection, application, user, pid, run_id, since_ms, open (the names of open objects), in_unit.
    ``after`` pages on behind a connection.
    """

    after: int = 0
    limit: int = 256


class EndConnection(Call, frozen=True, array_like=True, kw_only=True, tag="end_connection"):
    """The connection of this number is cut, and its unit of work backed out. Answered by Done.

    2018 where there is none.
    """

    connection: int


class Status(Call, frozen=True, array_like=True, kw_only=True, tag="status"):
    """The queue manager at a glance. Answered by Values."""


class Statistics(Call, frozen=True, array_like=True, kw_only=True, tag="statistics"):
    """What this queue manager has counted since it started, for metrics. Answered by Values.

    Its values: started_ms; calls; turns and commits (histograms of seconds: bounds, counts, sum); events, triggers by
    occasion and refused_calls by reason; runs_in_progress by process, runs_ended (process, outcome, count),
    run_durations and put_to_start (histograms by process); room (bytes of the disk, none on a database).
    """


class DisplayGroup(Call, frozen=True, array_like=True, kw_only=True, tag="display_group"):
    """The queue-sharing group: its members, what was recovered, its queues and who has them. Answered by Values.

    Of a queue manager in no group only its name, and an empty ``group``.
    """


class Explain(Call, frozen=True, array_like=True, kw_only=True, tag="explain"):
    """What a put of a message of this priority (-1: the queue's) would meet now. Answered by Explained.

    ``why_not`` asks for the last verdicts too: what has come of it when something happened to the queue.
    """

    q_name: str
    priority: int = -1
    why_not: bool = False


class Rehearse(Call, frozen=True, array_like=True, kw_only=True, tag="rehearse"):
    """What a put would meet if the local queue had these attributes instead of its own. Answered by Explained.

    ``values["saving"]`` is the verdict on the change itself: fires, occasion, fails, conditions. Nothing changes.
    """

    q_name: str
    attributes: dict[str, Any]
    priority: int = -1


class SetAuthority(Call, frozen=True, array_like=True, kw_only=True, tag="set_authority"):
    """SET AUTHREC: adds rights to an authority record, which is made where it is not there, and removes rights.

    ``name`` is the record's (:mod:`trigmon.mq.rights`); rights are MQSC's words or the plain ones. Answered by Values:
    name, before and after (MQ's words with commas; before is blank where it was not there).
    """

    name: str
    add: list[str] = []
    remove: list[str] = []


class ExplainRights(Call, frozen=True, array_like=True, kw_only=True, tag="explain_rights"):
    """What a user may do with an object, and why. Answered by Values.

    Without ``user`` it is the user of the connection. Of another user the queue manager knows the groups of an account
    of TLS; ``groups`` are those besides, which the system of the caller knows. Its values: user, groups,
    is_administrator, is_monitor, is_setter, has_records, object_type, name, and rights, a list of right, has, why,
    remedy, and only (the parts of it that the user has, where it is not the whole).
    """

    name: str
    object_type: str = "queue"
    user: str = ""
    groups: list[str] = []


class Pause(Call, frozen=True, array_like=True, kw_only=True, tag="pause"):
    """Starting is paused: of runs for a queue, of runs of a process, or of all. Triggering goes on as ever.

    ``what`` is "queue", "process", "schedule", "watch" or "everything", which has no name. Runs that are due are held
    until Resume; a schedule or a watch does not act. Answered by Done; 3008 when it is paused already.
    """

    what: str
    name: str = ""
    reason: str = ""


class RunSchedule(Call, frozen=True, array_like=True, kw_only=True, tag="run_schedule"):
    """A schedule starts its program now, besides its moments. Answered by Done; 3008 where that cannot be."""

    name: str
    q_name: str = ""


class Resume(Call, frozen=True, array_like=True, kw_only=True, tag="resume"):
    """What Pause paused may be started again. Answered by Done; 3008 when it is not paused."""

    what: str
    name: str = ""


class Pauses(Call, frozen=True, array_like=True, kw_only=True, tag="pauses"):
    """What is paused, by whom, since when and why. Answered by Listing: what, name, by, since_ms, reason, paused."""


class BeginBackup(Call, frozen=True, array_like=True, kw_only=True, tag="begin_backup"):
    """Holds the store's file as it is now, so that this connection can read it. Answered by BackupBegun.

    All that was answered before is in it. Until the backup ends, changes lie in the write-ahead log alone. 2042 while
    another connection makes a backup; 2298 where the store is no file; 2192 where the disk has no room for the log.
    """


class ReadBackup(Call, frozen=True, array_like=True, kw_only=True, tag="read_backup"):
    """Bytes of the held file from ``offset`` on, ``count`` at most (4 MiB). Answered by BackupPart.

    2003 when the backup has ended: it was not read for a minute, or the disk was nearly full.
    """

    offset: int
    count: int = 256 * 1024


class EndBackup(Call, frozen=True, array_like=True, kw_only=True, tag="end_backup"):
    """Ends this connection's backup; the end of the connection does so, too. Answered by Done."""


class Ping(Call, frozen=True, array_like=True, kw_only=True, tag="ping"):
    """Nothing but an answer. Answered by Done."""


# -- the run ledger -----------------------------------------------------------------------------------------


class RecordRun(Call, frozen=True, array_like=True, kw_only=True, tag="record_run"):
    """Writes a new run and, when ``unit`` is not 0, commits that unit in the same turn. Answered by Recorded.

    ``record`` is the run as :mod:`trigmon.mq.run` describes it; ``run_id`` is its key. One that is to be ``due`` and
    may not start now becomes ``held`` instead, so a monitor asks here before it starts a program.
    """

    run_id: str
    record: RunJson
    unit: int = 0
    caps: Caps = Caps()


class RecordRuns(Call, frozen=True, array_like=True, kw_only=True, tag="record_runs"):
    """Writes several new runs, all or none, and commits ``unit`` with them. Answered by WereRecorded.

    ``records`` are as in RecordRun, each with its ``run_id``.
    """

    records: list[RunJson]
    unit: int = 0
    caps: Caps = Caps()


class StartRuns(Call, frozen=True, array_like=True, kw_only=True, tag="start_runs"):
    """The first of the held runs from an initiation queue that may start become due, and this monitor's.

    Answered by ToStart.
    """

    initiation_q: str
    monitor: str
    caps: Caps = Caps()
    limit: int = 16


class ChangeRun(Call, frozen=True, array_like=True, kw_only=True, tag="change_run"):
    """Overwrites the named fields of a run's record. Answered by Recorded; 2085 when there is no such run.

    ``due`` is answered as in RecordRun, and what has ended stays ended. The end of a run that an operator had
    cancelled is written down as ``cancelled``.
    """

    run_id: str
    fields: RunJson


class Runs(Call, frozen=True, array_like=True, kw_only=True, tag="runs"):
    """Runs, newest first: all, or those whose record holds every ``where`` value. Answered by Listing.

    ``before`` pages on: runs recorded before that run. ``where`` compares texts and numbers.
    """

    where: dict[str, Any] = {}
    limit: int = 256
    before: str = ""


class RunHistory(Call, frozen=True, array_like=True, kw_only=True, tag="run_history"):
    """How many runs ended from ``since_ms`` to before ``until_ms`` (0: until now). Answered by Values.

    ``by`` names what the counts are split by: hour or day, queue, process, outcome. Each of ``rows`` has since_ms (the
    begin of the hour or the day, UTC), q_name, process_name and outcome, as far as asked for, then runs, took_ms (of
    all together) and last_ms (the end of the last). outcome is one of trigmon.mq.run.Ending.
    While ``more``, ask again with ``next_ms`` as since_ms: it counts other runs, so the rows are added up.
    """

    since_ms: int = 0
    until_ms: int = 0
    by: list[str] = []


class CancelRun(Call, frozen=True, array_like=True, kw_only=True, tag="cancel_run"):
    """Ends a held run at once, and asks the monitor of one that is due or started to end it. Answered by Recorded.

    3008 when it has ended, or is being cancelled already.
    """

    run_id: str
    reason: str = ""


class RetryRun(Call, frozen=True, array_like=True, kw_only=True, tag="retry_run"):
    """The trigger message of a run that ended is put on its initiation queue once more. Answered by Done.

    The run that comes of it names in ``repeats`` the one it repeats. 3008 while that has not ended.
    """

    run_id: str


class LostServer(msgspec.Struct, frozen=True, array_like=True):
    """A Spark Connect server of a monitor that ended by itself, or could not start: ``times`` since ``since_ms``.

    ``why`` and ``last_line`` are of the last time.
    """

    master: str
    times: int
    since_ms: int
    why: str = ""
    last_line: str = ""


class BridgeState(msgspec.Struct, frozen=True, array_like=True):
    """How a monitor stands to an initiation queue elsewhere, QUEUE@QM, that a bridge of its settings names.

    ``problem`` is why it is not served, blank where it is; ``since_ms``: for how long it is so.
    """

    bridge: str
    initiation_q: str
    problem: str = ""
    since_ms: int = 0


class Controls(Call, frozen=True, array_like=True, kw_only=True, tag="controls"):
    """What a monitor must act on. Answered by Values: ``pauses``, ``cancel`` (its runs to end) and ``number``.

    ``number`` rises whenever any of it changes. From this call on, a get that waits on the same connection ends at
    once (2033) when it does. ``lost_servers`` and ``bridges`` are what the monitor reports in turn: as long as it is
    connected, the queue manager's status shows it.
    """

    monitor: str
    lost_servers: list[LostServer] = []
    bridges: list[BridgeState] = []


# -- watches -----------------------------------------------------------------------------------------------


class WatchState(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """How a watch is, as the process says that serves it. Times are milliseconds since 1970, 0 for never.

    ``files_waiting``: matching files in the directory at its last look. ``files_taken``: those moved, or to be moved,
    whose message is not yet put. ``files_failed``: those in the directory FAILED. ``messages_put``: since this process
    began. ``problem`` is what hinders it, blank where nothing does.
    """

    name: str
    files_waiting: int = 0
    files_taken: int = 0
    files_failed: int = 0
    messages_put: int = 0
    last_file: str = ""
    last_put_ms: int = 0
    problem: str = ""
    problem_since_ms: int = 0


class ReportWatches(Call, frozen=True, array_like=True, kw_only=True, tag="report_watches"):
    """How the watches are that the caller serves. Answered by Done.

    DISPLAY shows it as long as the connection lasts.
    """

    watches: list[WatchState]


# -- copies of queues elsewhere ----------------------------------------------------------------------------


class CopyState(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """How the copy of a queue elsewhere is, as the process says that copies it. Times are milliseconds since 1970.

    ``name`` is QUEUE@QM, ``q_name`` the queue here. ``copied`` and ``put_aside`` count messages since the copy began,
    ``batches`` the units of work that put some; ``rate`` is messages a second. ``left``: messages that are still there,
    -1 where that is not known. ``lag_ms``: how long after its put there the last message was put here; it grows with
    the clock while the copy is hindered. ``problem`` is what hinders it, blank where nothing does.
    """

    name: str
    q_name: str
    copied: int = 0
    put_aside: int = 0
    rate: float = 0.0
    left: int = -1
    lag_ms: int = 0
    last_copy_ms: int = 0
    problem: str = ""
    problem_since_ms: int = 0
    batches: int = 0


class ReportCopy(Call, frozen=True, array_like=True, kw_only=True, tag="report_copy"):
    """How the copy is that the caller does on this connection. Answered by Done.

    The status shows it as long as the connection lasts.
    """

    state: CopyState


# -- reservations -------------------------------------------------------------------------------------------


class Reserve(Call, frozen=True, array_like=True, kw_only=True, tag="reserve"):
    """A fixed batch for ``consumer``: ``max_messages`` of ``max_bytes`` in all at most, in get order.

    Answered by Reserved. The handle is open for input. A consumer has one reservation of a queue at most: while
    anything of it is left, it is that which is answered, with the ``token`` it was made with, whatever is asked for
    here. While the answer says ``more`` it is still being made, slice by slice, and the call is made again. With
    ``whole_groups`` there are only whole groups in it, each in its order; a first one that is too large comes all the
    same, as a first message does. 2033 when there is nothing; 2042 while another connection of the same user holds the
    consumer's: each user has consumer names of its own. 2102 for one more than server.max_reservations_per_user.
    """

    handle: int
    consumer: str
    max_messages: int = 10_000
    max_bytes: int = 1 << 30
    whole_groups: bool = False
    token: str = ""


class ReadReserved(Call, frozen=True, array_like=True, kw_only=True, tag="read_reserved"):
    """Messages of a reservation from ``ordinal`` on, ``count`` of the ordinals at most. Answered by WereReserved.

    Any connection may ask, any number of times, and gets the same; from then on it stands behind the reservation.
    ``packed`` asks for ReservedRows in place of WereReserved.
    """

    reservation: int
    ordinal: int = 0
    count: int = 1000
    packed: bool = False


class Settle(Call, frozen=True, array_like=True, kw_only=True, tag="settle"):
    """What is left of ``count`` ordinals from ``ordinal`` on (-1: all) is done with, at once. Answered by Settled.

    A second time is as good as the first. The connection that holds it may ask, one of the same user, and an
    administrator. 2003 when the reservation was given back.
    """

    reservation: int
    ordinal: int = 0
    count: int = -1


class Release(Call, frozen=True, array_like=True, kw_only=True, tag="release"):
    """What is left of these ordinals goes back to the queue, each to its place. Answered by Settled.

    ``counts``: backout counts rise by one, beside what they rise by for each time the reservation was offered anew.
    The connection that holds it may ask, or any when none does, and an administrator.
    """

    reservation: int
    ordinal: int = 0
    count: int = -1
    counts: bool = True


class Attempt(Call, frozen=True, array_like=True, kw_only=True, tag="attempt"):
    """From now on the holder works on ``count`` ordinals from ``ordinal`` on alone (0: on none). Answered by Done.

    It lasts. If the holder is gone before it has settled them, given them back or taken this back, the next holder of
    the reservation learns of it (``deaths``): so that one message in a batch which kills its readers can be found.
    """

    reservation: int
    ordinal: int = 0
    count: int = 0


class Reject(Call, frozen=True, array_like=True, kw_only=True, tag="reject"):
    """One message of a reservation goes onto BOQNAME, else onto the dead-letter queue. Answered by Settled.

    The same may ask as may settle it. ``why`` stands before the data (:mod:`trigmon.mq.rejection`) and in the log.
    3008 where neither takes it: then it stays in the reservation.
    """

    reservation: int
    ordinal: int
    why: str = ""


class IssueTicket(Call, frozen=True, array_like=True, kw_only=True, tag="issue_ticket"):
    """A ticket by which a task on another machine reads this reservation over TLS. Answered by TicketIssued.

    The same may ask as may read it. 2298 where the queue manager has no TLS listener.
    """

    reservation: int


class Reservations(Call, frozen=True, array_like=True, kw_only=True, tag="reservations"):
    """The reservations of which anything is left, of queues of a generic name, by number. Answered by Listing.

    ``after`` pages on behind a number.
    """

    q_name: str = "*"
    after: int = 0
    limit: int = 256


AnyCall = (
    Open
    | Close
    | Put
    | PutMany
    | Get
    | GetMany
    | BrowseMany
    | PlanBrowse
    | Inquire
    | Set
    | Commit
    | Backout
    | Disconnect
    | Outcome
    | Define
    | Alter
    | Delete
    | Clear
    | Move
    | DeadLetters
    | RetryDeadLetters
    | DiscardDeadLetters
    | Refresh
    | Display
    | DisplayHandles
    | DisplayGroup
    | QueueStatus
    | ResetQueueStatistics
    | DisplayConnections
    | EndConnection
    | Status
    | Statistics
    | Explain
    | Rehearse
    | SetAuthority
    | ExplainRights
    | Pause
    | Resume
    | RunSchedule
    | Pauses
    | BeginBackup
    | ReadBackup
    | EndBackup
    | Ping
    | RecordRun
    | RecordRuns
    | StartRuns
    | ChangeRun
    | Runs
    | RunHistory
    | CancelRun
    | RetryRun
    | Controls
    | ReportWatches
    | ReportCopy
    | Reserve
    | ReadReserved
    | Settle
    | Release
    | Attempt
    | Reject
    | IssueTicket
    | Reservations
)

AnySift = DeadLetters | RetryDeadLetters | DiscardDeadLetters
