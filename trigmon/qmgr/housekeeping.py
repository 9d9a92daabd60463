"""The queue manager's own work: timed triggers, expired messages, deferred rows, old runs and outcomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from trigmon.mq.attributes import QueueManagerDefinition
from trigmon.mq.calls import Alter, Call, Disconnect, Display
from trigmon.mq.compatibility import COMMAND_INPUT_Q
from trigmon.mq.enums import ObjectType
from trigmon.mq.names import RECORD_QUEUE
from trigmon.mq.replies import Counted, Listing
from trigmon.qmgr.expiry_scan import Scan
from trigmon.qmgr.follow_ups import Notes
from trigmon.qmgr.schedule_times import ScheduleTimes
from trigmon.qmgr.sessions import ITSELF
from trigmon.qmgr.startup import system_objects
from trigmon.qmgr.waiting_commands import WaitingCommands
from trigmon.rules.model.facts import Wants
from trigmon.rules.model.internal_calls import Awake, LookThrough, Prune, Tend
from trigmon.rules.model.stored_messages import SLICE
from trigmon.store.port import Store

if TYPE_CHECKING:
    from trigmon.qmgr.manager import Answer, QueueManager

FOR_EVER = 2**62
OUTCOMES_KEPT_MS = 7 * 86_400_000
"""The time in which the outcomes of a client that is gone can be asked for."""
SLICES_AT_ONCE = 4
"""Slices of old runs deleted at a time: about a thousand runs a second, and no call waits long."""


class Retention(NamedTuple):
    """The number of ended runs that the ledger keeps, and the time in milliseconds. None: no limit."""

    keep_count: int | None = None
    keep_ms: int | None = None


KEEPS_ALL = Retention()


class Housekeeping:
    """The work that no call asks for. ``store``, ``notes`` and ``scan`` are the manager's own.

    ``max_msg_length``: the longest message, in bytes, that the queue manager takes now.
    """

    def __init__(self, manager: QueueManager, store: Store, notes: Notes, scan: Scan, retention: Retention) -> None:
        self._manager = manager
        self._store = store
        self._notes = notes
        self._scan = scan
        self.retention = retention
        self.schedules = ScheduleTimes(manager, store, notes)
        self.max_msg_length = 0
        self._serves = False  # whether the last slice was of commands
        notes.suit = self._suit

    def idle(self) -> list[Answer]:
        """Lets the store tidy up, while no call is performed."""
        self._store.idle()
        return []

    def look_after_backups(self) -> list[Answer]:
        """Ends a backup whose client is gone or does not read it."""
        self._manager.backups.look_after()
        return []

    @property
    def watches_the_clock(self) -> bool:
        """Whether anything depends on time: a queue's attributes, or the scan for expired messages."""
        return bool(self._notes.tended) or self._scan.interval_ms > 0

    @property
    def has_watches(self) -> bool:
        """Whether a watch is or was defined since the start, or files of one were on their way at the start."""
        return self._notes.has_watches

    def tend(self) -> list[Answer]:
        """Judges the queues that have BACKSTOP, MAXWAIT or REARM(AUTO), a slice of them in a turn."""
        answers: list[Answer] = []
        names = sorted(self._notes.tended)
        for start in range(0, len(names), SLICE):
            session = self._manager.connect(ITSELF)
            looks: list[Call] = [Tend(q_name=name) for name in names[start : start + SLICE]]
            answers += self._manager.turn([(session, 0, call) for call in (*looks, Disconnect())])
        return answers

    def reach_moments(self) -> list[Answer]:
        """Judges the moments of schedules that have come, a slice of them; :meth:`scan` goes on."""
        return self.schedules.reach()

    @property
    def is_scanning(self) -> bool:
        """Whether queues are still to be scanned, rows to be written, moments judged or commands performed.

        Then :meth:`scan` goes on.
        """
        return self._has_work or self._notes.commands.are_waiting

    @property
    def _has_work(self) -> bool:
        return self._scan.is_under_way or self._store.has_leftovers or self.schedules.is_behind

    def scan(self) -> list[Answer]:
        """Performs a slice of what is left: of the commands, or of the other work; while both wait, in turns."""
        commands = self._notes.commands
        self._serves = commands.are_waiting and not (self._serves and self._has_work)
        if self._serves and commands.serve is not None:
            return commands.serve()
        return self._work_on()

    def _work_on(self) -> list[Answer]:
        """Performs a slice of moments that have come, deferred rows, expired messages.

        In this order the scan meets every expired message, also those that a large unit has just made available.
        """
        if self.schedules.is_behind:
            return self.schedules.reach()
        if self._store.has_leftovers:
            # In a turn of the manager: what the look at the group finds is judged in it.
            return self._manager.turn([], self._store.remove_leftovers)
        return self._scan.go_on(self._manager, self._manager.connect(ITSELF)) if self._scan.is_under_way else []

    @property
    def commands(self) -> WaitingCommands:
        """What is known of the commands on the command queue."""
        return self._notes.commands

    def look_for_commands(self) -> list[Answer]:
        """Calls the command server for what came to its queue in another way than by a put."""
        queue = self._store.local_queue(COMMAND_INPUT_Q)
        if queue is not None and queue.depth and queue.shared is None:
            self._notes.commands.is_due = True
        return []

    def expire(self) -> list[Answer]:
        """Begins a scan for expired messages when EXPRYINT has passed since the last began."""
        if not self._scan.is_due(self._manager.clock.now()):
            return []
        session = self._manager.connect(ITSELF)
        return self._manager.turn([(session, 0, self._look_through()), (session, 0, Disconnect())])

    def _look_through(self) -> LookThrough:
        """Returns the call that scans all queues; shared queues too, if this member holds the role for that."""
        now = self._manager.clock.now()
        return LookThrough(shared=self._store.takes_role("EXPIRY", now, now + 2 * self._scan.interval_ms))

    def report_changes(self) -> list[Answer]:
        """Reports what no call changes: monitors that are gone or back, the disk, lost members."""
        return self._manager.event_messages.look_around()

    def forget_outcomes(self) -> list[Answer]:
        """Forgets outcomes of units of work whose clients have been gone for a week, a slice of them."""
        before_ms = self._manager.clock.now() - OUTCOMES_KEPT_MS
        return self._manager.turn([], lambda: self._store.forget_outcomes(before_ms))

    def prune(self) -> list[Answer]:
        """Deletes runs that are older or more than the retention allows, a few slices, each in a turn of its own."""
        keep_count, keep_ms = self.retention
        if keep_count is None and keep_ms is None:
            return []
        before = 0 if keep_ms is None else self._manager.clock.now() - keep_ms
        call = Prune(keep_count=FOR_EVER if keep_count is None else keep_count, ended_before_ms=before)
        answers: list[Answer] = []
        session, more = self._manager.connect(ITSELF), True
        for _ in range(SLICES_AT_ONCE):
            done = self._manager.turn([(session, 1, call)]) if more else []
            more = any(isinstance(answer.reply, Counted) and answer.reply.more for answer in done)
            answers += [answer for answer in done if answer.session is not session]
        return answers + self._manager.turn([(session, 0, Disconnect())])

    def define_system_objects(self) -> None:
        """Defines the system objects that are missing at a start; objects that an operator changed stay."""
        turn, session = self._manager.turn, self._manager.connect(ITSELF)
        turn([(session, number, call) for number, call in enumerate(system_objects(), 1)])
        if not self._store.facts(Wants(session.connection), False).q_mgr.created_ms:
            turn([(session, 1, Alter(object_type=ObjectType.QMGR.name, name="", attributes={}))])
        facts = self._store.facts(Wants(session.connection), False)
        watches = turn([(session, 1, Display(object_type=ObjectType.WATCH.name, limit=1))])
        listed = any(isinstance(answer.reply, Listing) and answer.reply.rows for answer in watches)
        records = self._store.local_queue(RECORD_QUEUE)
        self._notes.has_watches = listed or (records is not None and records.depth > 0)
        self._suit(facts.q_mgr)
        # Every start scans for expired messages, whatever EXPRYINT is; the scan goes on while calls are answered.
        awake = turn([(session, 1, Awake()), (session, 0, self._look_through()), (session, 0, Disconnect())])
        self._scan.began(self._manager.started_ms)
        self.schedules.begin()
        for answer in awake:
            if isinstance(answer.reply, Listing):
                self._notes.tended = {str(row["name"]) for row in answer.reply.rows}

    def _suit(self, q_mgr: QueueManagerDefinition) -> None:
        """Works as the queue manager's attributes say from now on."""
        self._scan.interval_ms = q_mgr.expiry_interval * 1000
        self._manager.event_messages.switch(q_mgr)
        self._notes.commands.switch(q_mgr)
        self.max_msg_length = q_mgr.max_msg_length
