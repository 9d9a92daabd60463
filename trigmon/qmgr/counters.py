"""What the queue manager's process counts for metrics: triggers, events, refusals, runs, turns.

The counters begin at zero with the process. A turn pays three readings of a timer and an append for them; what it
appended is counted some dozens of turns at a time. A run pays when it starts and when it ends.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from trigmon.mq.names import is_object_name
from trigmon.mq.reasons import Reason
from trigmon.mq.run import Run
from trigmon.qmgr.manager_events import Event
from trigmon.rules.model.changes import WriteRun
from trigmon.rules.model.events import TriggerFired

TURN_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
RUN_S = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 14_400.0)
START_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
RECENT = 64
"""Turns that are counted together."""
MOST_PROCESSES = 1000
"""Runs of further processes are counted together, under a blank name: a trigger message may name any process."""


class Histogram:
    """Counts values by the bounds that they do not exceed. ``counts`` has one more: of those above all bounds."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Counts a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def figures(self) -> dict[str, Any]:
        """Returns bounds, counts and the sum of the values."""
        return {"bounds": self.bounds, "counts": self.counts, "sum": round(self.total, 9)}


class Counters:
    """The counters of one queue manager.

    ``timer`` returns seconds of a steady clock, ``room`` what is known of the disk in bytes: the daemon hands both in.
    ``recent`` are turns that are durable and not yet counted: calls, then the timer at the begin, before the store's
    commit and behind it, and the events.
    """

    def __init__(self) -> None:
        self.timer: Callable[[], float] = lambda: 0.0
        self.room: Callable[[], dict[str, int]] = dict
        self.recent: list[tuple[int, float, float, float, list[Event]]] = []
        self._calls = 0
        self._turns = Histogram(TURN_S)
        self._commits = Histogram(TURN_S)
        self._events: dict[str, int] = {}
        self._triggers: dict[str, int] = {}
        self._refused: dict[int, int] = {}
        self._ended: dict[tuple[str, str], int] = {}
        self._lasted: dict[str, Histogram] = {}
        self._started: dict[str, Histogram] = {}
        self._processes: set[str] = set()

    def fold(self) -> None:
        """Counts the recent turns."""
        recent, self.recent = self.recent, []
        for calls, began_s, committing_s, ended_s, events in recent:
            self._calls += calls
            self._turns.observe(ended_s - began_s)
            self._commits.observe(ended_s - committing_s)
            for event in events:
                self._events[event.name] = self._events.get(event.name, 0) + 1
                if isinstance(event, TriggerFired):
                    occasion = str(event.verdict.occasion)
                    self._triggers[occasion] = self._triggers.get(occasion, 0) + 1

    def refused(self, reason: int) -> None:
        """Counts a call that was refused."""
        self._refused[reason] = self._refused.get(reason, 0) + 1

    def written(self, change: WriteRun) -> None:
        """Counts a run that has started, or ended, with this change of its record."""
        before, run = change.before, change.run
        if run.json.get("start_ms") and not (before and before.json.get("start_ms")):
            self._note_start(run)
        if run.is_ended and not (before and before.is_ended):
            self._note_end(run)

    def _note_start(self, run: Run) -> None:
        origin = run.origin
        # A further try, and a repeated run, did not begin with a put.
        if origin.triggered_ms and not origin.retries and not origin.repeats:
            after_ms = run.program.start_ms - origin.triggered_ms
            self._of(self._started, run, START_S).observe(max(0, after_ms) / 1000)

    def _note_end(self, run: Run) -> None:
        key = self._process(run), str(run.ending)
        self._ended[key] = self._ended.get(key, 0) + 1
        if run.program.start_ms and run.outcome.end_ms:
            lasted_ms = run.outcome.end_ms - run.program.start_ms
            self._of(self._lasted, run, RUN_S).observe(max(0, lasted_ms) / 1000)

    def _of(self, histograms: dict[str, Histogram], run: Run, bounds: tuple[float, ...]) -> Histogram:
        process = self._process(run)
        found = histograms.get(process)
        if found is None:
            found = histograms[process] = Histogram(bounds)
        return found

    def _process(self, run: Run) -> str:
        name = run.trigger.process_name
        if name in self._processes:
            return name
        if not is_object_name(name) or len(self._processes) >= MOST_PROCESSES:
            return ""
        self._processes.add(name)
        return name

    def figures(self) -> dict[str, Any]:
        """Returns all of it, as one JSON object."""
        self.fold()
        return {
            "calls": self._calls,
            "turns": self._turns.figures(),
            "commits": self._commits.figures(),
            "events": self._events,
            "triggers": self._triggers,
            "refused_calls": {_named(reason): count for reason, count in self._refused.items()},
            "runs_ended": [[*key, count] for key, count in self._ended.items()],
            "run_durations": {process: each.figures() for process, each in self._lasted.items()},
            "put_to_start": {process: each.figures() for process, each in self._started.items()},
            "room": self.room(),
        }


def _named(reason: int) -> str:
    try:
        return Reason(reason).mq_name
    except ValueError:
        return str(reason)
