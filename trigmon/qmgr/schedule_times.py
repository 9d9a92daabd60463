"""The times of schedules: when each has its next moment, and the calls that are due.

Moments go by the wall clock, which people set; the times between two looks by the queue manager's own.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice
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
from trigmon.rules.objects.schedule_moments import MOST_MISSED, moments_due
from trigmon.schedules.moments import last_moments, next_moment
from trigmon.store.port import Store

if TYPE_CHECKING:
    from trigmon.qmgr.manager import Answer, QueueManager

AGAIN_MS = 1000
"""A schedule whose moment waits for a monitor is looked at again so much later."""
MOST_ON_TIME = 100
"""More than the moments of a minute, in which a moment is on time."""


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
        self._not_before: dict[str, int] = {}  # by the queue manager's own time, while no monitor listens
        self._found: dict[str, list[int]] = {}  # moments that have come, lest each look finds them anew
        self._new: dict[str, None] = {}  # those of which it is not on record from when on moments are theirs
        self.is_behind = False
        """Whether moments that have come are still to be judged: :meth:`reach` is to go on."""

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
            was = self._schedules.pop(name, None)
            for table in (self._settled, self._next, self._new):
                table.pop(name, None)
            if schedule is None or was is None or schedule.timed_ms != was.timed_ms:
                self._found.pop(name, None)
            if schedule is None:
                self._not_before.pop(name, None)
                continue
            if not schedule.from_ms:
                self._new[name] = None
            self._schedules[name], self._settled[name] = schedule, self._settled_ms(schedule)
            if (moment := next_moment(schedule, self._settled[name])) is not None:
                self._next[name] = moment

    def _settled_ms(self, schedule: Schedule) -> int:
        """Returns the wall clock's time up to which no moment is the schedule's any more."""
        from_ms = schedule.from_ms or max(schedule.timed_ms, schedule.created_ms) + self._ahead_ms()
        return max(schedule.last_moment_ms, from_ms)

    def _ahead_ms(self) -> int:
        """Returns by how much the wall clock is ahead of the queue manager's own time."""
        return self._manager.clock.wall() - self._manager.clock.now()

    def due_ms(self) -> int | None:
        """Returns when the next moment comes, by the queue manager's own time; None: there is none."""
        self._take_changes()
        ahead_ms = self._ahead_ms()
        times = (max(moment - ahead_ms, self._not_before.get(name, 0)) for name, moment in self._next.items())
        return min(times, default=None)

    def reach(self) -> list[Answer]:
        """Judges a slice of the moments that have come, in a turn; schedules take turns, each with its earliest."""
        due = self._due()
        now, wall_ms = self._manager.clock.now(), self._manager.clock.wall()
        calls = [self._begins(name) for name in islice(self._new, SLICE)]
        share = max(1, SLICE // max(1, len(due)))
        for name in due[:SLICE]:
            # Where no monitor listened, one call asks whether one has come.
            most = 1 if name in self._not_before else share
            calls += moments_due(self._schedules[name], self._come(name, wall_ms), wall_ms)[:most]
        answers = self._reached(calls, now) if calls else []
        self.is_behind = bool(due) and bool(self._due())
        return answers

    def _due(self) -> list[str]:
        """Returns the schedules of which moments have come and do not wait; those judged last are the last."""
        self._take_changes()
        now, wall_ms = self._manager.clock.now(), self._manager.clock.wall()
        return [n for n, moment in self._next.items() if moment <= wall_ms and self._not_before.get(n, 0) <= now]

    def _begins(self, name: str) -> ReachMoment:
        """Returns the call that writes from when on moments are the schedule's: no clock that is set changes it."""
        return ReachMoment(name=name, q_name=self._schedules[name].q_name, moment_ms=self._settled[name], is_begin=True)

    def _come(self, name: str, wall_ms: int) -> list[int]:
        """Returns the moments that have come, in order: of missed ones no more than are started for."""
        schedule, settled_ms, found = self._schedules[name], self._settled[name], self._found.get(name, [])
        most = MOST_ON_TIME + (MOST_MISSED if schedule.missed is Missed.ALL else 1)
        found = found[bisect_right(found, settled_ms) : bisect_right(found, wall_ms)]
        found += last_moments(schedule, found[-1] if found else settled_ms, wall_ms, most)
        self._found[name] = found = found[-most:]
        return found

    def _reached(self, calls: list[ReachMoment], now: int) -> list[Answer]:
        session = self._manager.connect(ITSELF)
        requests: list[tuple[Session, int, Call]] = [(session, number, call) for number, call in enumerate(calls, 1)]
        answers = self._manager.turn([*requests, (session, 0, Disconnect())])
        waits = {
            calls[answer.sequence - 1].name
            for answer in answers
            if answer.session is session and not (isinstance(answer.reply, Counted) and answer.reply.count)
        }
        for name in {call.name for call in calls}:
            if name in waits:
                self._not_before[name] = now + AGAIN_MS
            else:
                self._not_before.pop(name, None)
        return [answer for answer in answers if answer.session is not session]
