"""The reporting of events: behind each call, and in the same turn, its decisions' events are put on their queues.

An event message is written with what it reports, or with neither. A failure to report is counted and logged, and undoes
nothing: the call and its reply are the same whether events are reported or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from trigmon.mq.attributes import QueueManagerDefinition
from trigmon.mq.calls import Disconnect
from trigmon.mq.event_kinds import EVENT_QUEUE, EVENT_QUEUES
from trigmon.mq.replies import Values
from trigmon.pcf.performance_event import QueueFigures
from trigmon.qmgr.follow_ups import Notes
from trigmon.qmgr.queue_history import Activity
from trigmon.qmgr.sessions import ITSELF, Session
from trigmon.rules.event_messages.decided_events import WhyDead, dead_in_unit, happened_by
from trigmon.rules.event_messages.event_put import json_event
from trigmon.rules.event_messages.queue_events import FULL, due_events, has_events, is_full_due
from trigmon.rules.model.changes import AddMessage, DropDefinition, EndUnit, RemoveMessage, TakeMessage
from trigmon.rules.model.decision import Decision
from trigmon.rules.model.events import EventMessageDropped
from trigmon.rules.model.internal_calls import Forget, LookAround, PutEvent, ReportQueueEvent
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.reservation_changes import ReserveMessages
from trigmon.store.port import NotEntered, Store, StoreBroken

if TYPE_CHECKING:
    from trigmon.qmgr.manager import Answer, QueueManager


Reports = list[PutEvent | ReportQueueEvent]
"""The internal calls that report what happened."""


class _Period(msgspec.Struct):
    """What went through a queue since its last event, RESET QSTATS, or since events are reported.

    ``timer_ms`` is when the service interval began; None is off.
    """

    since_ms: int
    puts: int = 0
    gets: int = 0
    high: int = 0
    timer_ms: int | None = None


class EventMessages:
    """The event messages of one queue manager. ``store`` and ``notes`` are the manager's own.

    ``are_on`` is whether any are put: while it is off, a call pays one look at it. ``lost_members`` are to be reported.
    """

    def __init__(self, manager: QueueManager, store: Store, notes: Notes, activity: Activity) -> None:
        self._manager = manager
        self._store = store
        self._notes = notes
        self._q_mgr = QueueManagerDefinition(name="")
        self._periods: dict[str, _Period] = {}
        self._in_units: dict[int, WhyDead] = {}
        self._unread: tuple[str, ...] = ()
        self._gone: tuple[str, ...] = ()
        self._were_puts_allowed = True
        self.are_on = False
        self.lost_members: list[tuple[str, str]] = []
        activity.on_reset = self._reset

    def switch(self, q_mgr: QueueManagerDefinition) -> None:
        """Turns events on or off, as the queue manager's attributes say from now on."""
        self._q_mgr, self.are_on = q_mgr, q_mgr.reports_events
        if not self.are_on:
            self._periods.clear()
        if not q_mgr.trigmon_event:
            self._in_units.clear()

    def report(self, decisions: Sequence[Decision], now: int) -> None:
        """Reports what these performed decisions are to report."""
        try:
            calls = self._calls(decisions, now)
        except Exception as error:  # a bug here must not undo what is reported
            self._drop(EVENT_QUEUE, "", f"{type(error).__name__}: {error}")
            return
        self._perform(calls, now)

    def _calls(self, decisions: Sequence[Decision], now: int) -> Reports:
        """Returns the internal calls that report these decisions."""
        calls: Reports = []
        if self._q_mgr.trigmon_event:
            dead_letter_q_name = self._q_mgr.dead_letter_q_name
            for decision in decisions:
                self._in_units.update(dead_in_unit(decision, dead_letter_q_name))
                happened = happened_by(decision, dead_letter_q_name, self._in_units)
                calls += [json_event(each, self._q_mgr.name, now) for each in happened]
                for ended in (change for change in decision.changes if isinstance(change, EndUnit)):
                    self._in_units.pop(ended.unit.unit_id, None)
        for q_name, (puts, gets) in self._moved(decisions).items():
            calls += self._of_queue(q_name, puts, gets, now)
        return calls

    def report_full(self, queue: QueueFacts | None, now: int) -> None:
        """Reports that a put was refused, since its queue is full. The call is over: this is one of its own."""
        if queue is None or not is_full_due(queue) or (q_name := queue.definition.name) in EVENT_QUEUES:
            return
        session = self._manager.connect(ITSELF)
        figures = self._end_period(queue, now)
        self._manager.answer(session, ReportQueueEvent(q_name=q_name, event=FULL, figures=figures), now)
        self._manager.answer(session, Disconnect(), now)

    def look_around(self) -> list[Answer]:
        """Reports what no call changes, where it is not as it was at the last look."""
        lost = tuple(self.lost_members)
        del self.lost_members[: len(lost)]
        if not self._q_mgr.trigmon_event:
            return []
        allowed, disk = self._manager.are_puts_allowed(), self._manager.disk()
        call = LookAround(
            unread=self._unread,
            gone=self._gone,
            are_puts_allowed=allowed,
            were_puts_allowed=self._were_puts_allowed,
            disk=(disk.free_bytes, disk.reserve_bytes) if disk is not None else (0, 0),
            lost=lost,
        )
        session = self._manager.connect(ITSELF)
        answers = self._manager.turn([(session, 1, call), (session, 0, Disconnect())])
        for answer in answers:
            if answer.session is session and isinstance(answer.reply, Values):
                self._unread, self._gone = tuple(answer.reply.values["unread"]), tuple(answer.reply.values["gone"])
                self._were_puts_allowed = allowed
        return [answer for answer in answers if answer.session is not session]

    def _moved(self, decisions: Iterable[Decision]) -> dict[str, tuple[int, int]]:
        """Returns the queues that these decisions put to and got from, each with how many messages."""
        moved: dict[str, tuple[int, int]] = {}
        for decision in decisions:
            for change in decision.changes:
                if isinstance(change, AddMessage):
                    puts, gets = moved.get(change.q_name, (0, 0))
                    moved[change.q_name] = puts + 1, gets
                elif isinstance(change, TakeMessage | RemoveMessage):
                    puts, gets = moved.get(change.message.q_name, (0, 0))
                    moved[change.message.q_name] = puts, gets + 1
                elif isinstance(change, ReserveMessages):
                    puts, gets = moved.get(change.columns.q_name, (0, 0))
                    moved[change.columns.q_name] = puts, gets + len(change.columns)
                elif isinstance(change, DropDefinition):
                    self._periods.pop(change.name, None)
        return moved

    def _of_queue(self, q_name: str, puts: int, gets: int, now: int) -> Reports:
        """Returns the events of a queue after so many puts and gets."""
        queue = self._store.local_queue(q_name)
        if queue is None or queue.shared is not None or q_name in EVENT_QUEUES:
            return []
        period = self._periods.get(q_name)
        if period is None:
            period = self._periods[q_name] = _Period(now)
            if queue.depth + gets > puts:
                period.timer_ms = self._manager.started_ms
        waited_ms = None if period.timer_ms is None else now - period.timer_ms
        if gets or period.timer_ms is None:
            period.timer_ms = now if queue.depth else None
        period.puts, period.gets, period.high = period.puts + puts, period.gets + gets, max(period.high, queue.depth)
        if not has_events(queue.definition):
            return []
        due = list(due_events(queue, was_put=puts > 0, was_got=gets > 0, waited_ms=waited_ms))
        figures = self._end_period(queue, now) if due else QueueFigures()
        return [ReportQueueEvent(q_name=q_name, event=event, figures=figures) for event in due]

    def _end_period(self, queue: QueueFacts, now: int) -> QueueFigures:
        """Returns what went through a queue in its period, which ends."""
        name = queue.definition.name
        period = self._periods.setdefault(name, _Period(now, high=queue.depth))
        self._reset(name, queue.depth, now)
        high = max(period.high, queue.depth)
        return QueueFigures((now - period.since_ms) // 1000, high, period.puts, period.gets)

    def _reset(self, q_name: str, depth: int, now: int) -> None:
        """Counts anew from now on; the service timer goes on."""
        if (period := self._periods.get(q_name)) is not None:
            self._periods[q_name] = _Period(now, high=depth, timer_ms=period.timer_ms)

    def _perform(self, calls: Reports, now: int) -> None:
        if not calls:
            return
        session = self._manager.connect(ITSELF)
        try:
            for call in calls:
                self._try(call, session, now)
            self._manager.perform(Forget(), session, now)
        finally:
            self._manager.forget_session(session)

    def _try(self, call: PutEvent | ReportQueueEvent, session: Session, now: int) -> None:
        """Performs what reports an event. Whatever goes wrong, the call that it reports goes on."""
        try:
            if not self._manager.are_puts_allowed():
                self._drop(call.q_name, call.event, "puts are refused: the disk is nearly full")
                return
            self._manager.perform(call, session, now)
        except (NotEntered, StoreBroken):
            raise
        except Exception as error:  # a bug here must not undo what is reported
            self._drop(call.q_name, call.event, f"{type(error).__name__}: {error}")

    def _drop(self, q_name: str, event: str, why: str) -> None:
        self._notes.events.append(EventMessageDropped(q_name, event, why))
