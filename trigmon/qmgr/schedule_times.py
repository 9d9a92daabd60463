"""The times of schedules: when each has its next moment, and the calls that are due.

Moments go by the wall clock, which people set; the times between two looks by the queue manager's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trigmon.mq.attributes import Schedule
from trigmon.mq.calls import Call, Disconnect
from trigmon.mq.replies import Counted
from trigmon.mq.timed_enums import Missed
from trigmon.qmgr.follow_ups import Notes
from trigmon.qmgr.sessions import ITSELF, Session
from trigmon.rules.model.facts import WorldFacts, WorldWants
from trigmon.rules.model.internal_calls import ReachMoment
from trigmon.rules.model.stored_messages import SLICE
from trigmon.rules.objects.schedule_moments import LATE_MS, MOST_MISSED, moments_due
from trigmon.schedules.moments import last_moments, next_moment
from trigmon.store.port import Store

if TYPE_CHECKING:
    from trigmon.qmgr.manager import Answer, QueueManager

AGAIN_MS = 1000
"""A schedule whose moment waits for a monitor is looked at again so much later."""
MOST_ON_TIME = 100
"""More than the moments of LATE_MS."""


class ScheduleTimes:
    """The next moments of a queue manager's schedules. ``store`` and ``notes`` are the manager's own."""

    def __init__(self, manager: QueueManager, store: Store, notes: Notes) -> None:
        self._manager = manager
        self._store = store
        self._notes = notes
        self._schedules: dict[str, Schedule] = {}
        # The wall clock's times up to which moments are judged, or none of the schedule's; and the first after them.
        self._settled: dict[str, int] = {}
        self._next: dict[str, int] = {}
        self._not_before: dict[str, int] = {}  # by the queue manager's own time

    def begin(self) -> None:
        """Takes the schedules that there are, at a start."""
        session = self._manager.connect(ITSELF)
        facts = self._store.facts(WorldWants(session.connection), True)
        assert isinstance(facts, WorldFacts)
        self._notes.schedules = {schedule.name: schedule for schedule in facts.world.schedules}
        self._manager.turn([(session, 0, Disconnect())])

    def _take_changes(self) -> None:
        """Works out the next moments of schedules that are new, altered, judged or deleted."""
        changed, self._notes.schedules = self._notes.schedules, {}
        for name, schedule in changed.items():
            for table in (self._schedules, self._settled, self._next):
                table.pop(name, None)
            if schedule is None:
                self._not_before.pop(name, None)
                continue
            self._schedules[name], self._settled[name] = schedule, self._settled_ms(schedule)
            if (moment := next_moment(schedule, self._settled[name])) is not None:
                self._next[name] = moment

    def _settled_ms(self, schedule: Schedule) -> int:
        """Returns the wall clock's time up to which no moment is the schedule's any more."""
        ahead_ms = self._manager.clock.wall() - self._manager.clock.now()
        return max(schedule.last_moment_ms, max(schedule.timed_ms, schedule.created_ms) + ahead_ms)

    def due_ms(self) -> int | None:
        """Returns when the next moment comes, by the queue manager's own time; None: there is none."""
        self._take_changes()
        ahead_ms = self._manager.clock.wall() - self._manager.clock.now()
        times = (max(moment - ahead_ms, self._not_before.get(name, 0)) for name, moment in self._next.items())
        return min(times, default=None)

    def reach(self) -> list[Answer]:
        """Judges the moments that have come, a slice of them in a turn."""
        self._take_changes()
        now, wall_ms = self._manager.clock.now(), self._manager.clock.wall()
        due = [n for n, moment in self._next.items() if moment <= wall_ms and self._not_before.get(n, 0) <= now]
        answers: list[Answer] = []
        calls: list[ReachMoment] = []
        for name in due:
            schedule, settled_ms = self._schedules[name], self._settled[name]
            # While no monitor listens, this is asked once a second: of missed moments no more than are started for.
            missed_ms, most = wall_ms - LATE_MS - 1, MOST_MISSED if schedule.missed is Missed.ALL else 1
            moments = last_moments(schedule, settled_ms, missed_ms, most)
            moments += last_moments(schedule, max(settled_ms, missed_ms), wall_ms, MOST_ON_TIME)
            calls += moments_due(schedule, moments, wall_ms)
        for start in range(0, len(calls), SLICE):
            answers += self._reached(calls[start : start + SLICE], now)
        return answers

    def _reached(self, calls: list[ReachMoment], now: int) -> list[Answer]:
        session = self._manager.connect(ITSELF)
        requests: list[tuple[Session, int, Call]] = [(session, number, call) for number, call in enumerate(calls, 1)]
        answers = self._manager.turn([*requests, (session, 0, Disconnect())])
        for answer in answers:
            if answer.session is session and not (isinstance(answer.reply, Counted) and answer.reply.count):
                self._not_before[calls[answer.sequence - 1].name] = now + AGAIN_MS
        return [answer for answer in answers if answer.session is not session]
