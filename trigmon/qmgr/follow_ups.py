"""The consequences of performed decisions: gets to wake, events to report, queues that depend on time.

The manager notes each decision that was performed and not undone, and acts on the notes: it wakes the gets within the
turn, and reports the events when the turn is durable. Nothing here performs a call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from trigmon.mq.attributes import LocalQueue, QueueManagerDefinition, Schedule
from trigmon.mq.compatibility import COMMAND_INPUT_Q
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.enums import ObjectType, UnitOutcome
from trigmon.mq.replies import WasGot, WereGot
from trigmon.qmgr.counters import Counters
from trigmon.qmgr.expiry_scan import Scan
from trigmon.qmgr.manager_events import Event, MessageDamaged, TriggerMessageAvailable
from trigmon.qmgr.queue_history import Activity, Looks
from trigmon.qmgr.sessions import Session
from trigmon.qmgr.waiters import ANY, MOST_IDS, Came, Waiters, note_coming
from trigmon.qmgr.waiting_commands import WaitingCommands
from trigmon.rules.model import changes as c
from trigmon.rules.model import handle_changes
from trigmon.rules.model import reservation_changes as r
from trigmon.rules.model.alike_puts import WithAlikePuts
from trigmon.rules.model.decision import Decision
from trigmon.rules.model.events import CommandPut, ScanDue, SweepDue
from trigmon.rules.model.stored_messages import StoredMessage
from trigmon.rules.triggers.extensions import watches_the_clock

_GOT = frozenset({WasGot, WereGot})
"""Looked up by class: for a class that does not match, isinstance takes ten times as long."""
_OF_GOT = c.RemoveMessage, c.TakeMessage


class Notes:
    """The notes of one queue manager. ``sessions`` to ``counters`` are the manager's own.

    ``events``: to be reported once the turn is durable. ``woken``: by queue the messages that came, as msg_id and
    correl_id; ANY where something else changed, or too many came. ``tended``: the queues with attributes that depend on
    time. ``schedules``: those that have changed, None for one that is deleted. ``has_watches``: a watch is, or was,
    defined. ``news``: how often there was news for monitors; ``rings``: whether monitors are still to be woken for it.
    ``suit`` is called with the queue manager's new attributes. ``commands``: those for the command server.
    """

    def __init__(
        self,
        q_mgr_name: str,
        sessions: dict[int, Session],
        waiters: Waiters,
        scan: Scan,
        looks: Looks,
        activity: Activity,
        counters: Counters,
    ) -> None:
        self._q_mgr_name = q_mgr_name
        self._sessions = sessions
        self._waiters = waiters
        self._scan = scan
        self._looks = looks
        self._activity = activity
        self._counters = counters
        # The same as woken by unit of work, until that is committed.
        self._coming: dict[int, dict[str, Came]] = {}
        self.events: list[Event] = []
        self.woken: dict[str, Came] = {}
        self.tended: set[str] = set()
        self.schedules: dict[str, Schedule | None] = {}
        self.has_watches = False
        self.commands = WaitingCommands(lambda event: self.events.append(event))
        self.suit: Callable[[QueueManagerDefinition], None] = lambda _: None
        self.news = 0
        self.rings = False

    def note(self, decision: Decision, now: int) -> None:
        """Notes what follows from a performed decision."""
        for event in decision.events:
            if isinstance(event, ScanDue | SweepDue):
                self._scan.add(event)
            elif isinstance(event, CommandPut):
                self.commands.note(event)
            else:
                self.events.append(event)
        alike = decision.changes if isinstance(decision.changes, WithAlikePuts) else None
        for change in alike.before if alike is not None else decision.changes:
            note = _NOTES.get(type(change))
            if note is not None:
                note(self, change, now)
            for q_name in change.wakes:
                self.woken[q_name] = ANY
            if change.is_news:
                self.news += 1
                self.rings = True
        if alike is not None:
            self._note_alike(alike.puts, now)
        if type(decision.reply) in _GOT:
            for change in decision.changes:
                if isinstance(change, _OF_GOT):
                    self._activity.got(change.message.q_name, change.message.descriptor.put_ms, now)

    def _note_message(self, change: c.AddMessage, now: int) -> None:
        self._activity.put(change.q_name, now)
        descriptor = change.descriptor
        came = self._coming.setdefault(change.unit_id, {}) if change.unit_id else self.woken
        note_coming(came, change.q_name, [(descriptor.msg_id, descriptor.correl_id)])
        if not change.unit_id and change.trigger is not None:
            self._tell_available(change.q_name, change.trigger)

    def _note_alike(self, puts: Sequence[c.AddMessage], now: int) -> None:
        """Notes puts that are alike, as each of them."""
        q_name, unit_id = puts[0].q_name, puts[0].unit_id
        self._activity.put(q_name, now, len(puts))
        came = self._coming.setdefault(unit_id, {}) if unit_id else self.woken
        ids = [(put.descriptor.msg_id, put.descriptor.correl_id) for put in puts[: MOST_IDS + 1]]
        note_coming(came, q_name, ids)

    def _note_taken(self, change: c.TakeMessage, now: int) -> None:
        if change.message.q_name == COMMAND_INPUT_Q:
            self.commands.took(change.message.number)

    def _note_removed(self, change: c.RemoveMessage, now: int) -> None:
        self._activity.removed(change.message.q_name, now)
        self._note_left(change.message)

    def _note_left(self, message: StoredMessage) -> None:
        """Tells the command server that a message has left its queue."""
        if message.q_name == COMMAND_INPUT_Q:
            self.commands.left((message.number,))

    def _note_reserved(self, change: r.ReserveMessages, now: int) -> None:
        columns = change.columns
        if columns.q_name == COMMAND_INPUT_Q:
            self.commands.left(columns.numbers)
        self._activity.got_many(columns.q_name, columns.put_ms, now)

    def _note_unit(self, change: c.EndUnit, now: int) -> None:
        came = self._coming.pop(change.unit.unit_id, {})
        if COMMAND_INPUT_Q in came:
            self.commands.unit_ended(change.unit.unit_id, is_committed=change.outcome is UnitOutcome.COMMITTED)
        if change.outcome is UnitOutcome.COMMITTED:
            for q_name, ids in came.items():
                note_coming(self.woken, q_name, ids)
            if COMMAND_INPUT_Q in came:
                self.commands.is_due = True
        for held in change.released:
            if held.message is not None and held.q_name not in change.deleted:
                self._tell_available(held.q_name, held.message)

    def _note_definition(self, change: c.SetDefinition, now: int) -> None:
        if isinstance(change.definition, QueueManagerDefinition):
            self.suit(change.definition)
        if isinstance(change.definition, LocalQueue):
            self.tended.discard(change.definition.name)
            if watches_the_clock(change.definition):
                self.tended.add(change.definition.name)
        if isinstance(change.definition, Schedule):
            self.schedules[change.definition.name] = change.definition
        self.has_watches = self.has_watches or change.object_type is ObjectType.WATCH
        if change.object_type is ObjectType.QALIAS:
            for session in self._waiters.all():
                if session.parked is not None:
                    self.woken[session.parked.q_name] = ANY

    def _note_dropped(self, change: c.DropDefinition, now: int) -> None:
        if change.object_type is ObjectType.SCHEDULE:
            self.schedules[change.name] = None
        if change.object_type is ObjectType.QLOCAL:
            self.tended.discard(change.name)
            if change.name == COMMAND_INPUT_Q:
                self.commands.queue_deleted()
            self._looks.forget(change.name)
            self._activity.forget(change.name)

    def _note_run(self, change: c.WriteRun, now: int) -> None:
        self._counters.written(change)

    def _note_returned(self, change: r.ReturnReserved, now: int) -> None:
        self._activity.returned()

    def _note_damaged(self, change: c.SetAside, now: int) -> None:
        self.events.append(MessageDamaged(change.message.q_name, change.message.number))
        self._note_left(change.message)

    def _note_gone(self, change: handle_changes.DropConnection, now: int) -> None:
        session = self._sessions.pop(change.connection, None)
        if session is not None:
            session.is_gone = True

    def _tell_available(self, initiation_q: str, message: TriggerMessage) -> None:
        self.events.append(TriggerMessageAvailable(self._q_mgr_name, initiation_q, message))


_NOTES: dict[type[c.AnyChange], Callable[[Notes, Any, int], None]] = {
    c.AddMessage: Notes._note_message,
    c.TakeMessage: Notes._note_taken,
    c.RemoveMessage: Notes._note_removed,
    r.ReserveMessages: Notes._note_reserved,
    c.EndUnit: Notes._note_unit,
    c.SetDefinition: Notes._note_definition,
    c.DropDefinition: Notes._note_dropped,
    c.WriteRun: Notes._note_run,
    r.ReturnReserved: Notes._note_returned,
    c.SetAside: Notes._note_damaged,
    handle_changes.DropConnection: Notes._note_gone,
}
