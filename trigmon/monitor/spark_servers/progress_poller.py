"""Polls the progress of running Spark applications in a thread.

It is no part of a launch: its results are notes, which the reaper writes with its other changes. One application is
asked at a time, with a deadline; one that does not answer is asked less and less often, and one that needs long for
its answer is asked again after a long pause.
"""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, cast

import msgspec

from trigmon.launch.launch_plan import Lead
from trigmon.launch.spark import driver_status
from trigmon.log import logger
from trigmon.mq.run import RunFields

log = logger()
_DEADLINE_S: Final = 1.0
_SOON_S, _PERIOD_S, _SELDOM_S = 0.25, 1.0, 15.0
_GROWTH: Final = 1.3
# Of an application's time, and of this monitor's, no more than one part in so many goes into asking it.
_SHARE: Final = 20


class _Followed:
    """One run that is polled, and what is known of it."""

    def __init__(self, run_id: str, lead: Callable[[], Lead | None]) -> None:
        self.run_id = run_id
        self.lead = lead
        self.tally: driver_status.Tally | None = None
        self.tallies: dict[str, driver_status.Tally] = {}
        self.noted: RunFields = {}
        self.pause_s = _SOON_S
        self.is_over = False

    def new(self, seen: RunFields) -> RunFields:
        """Returns what of this was not noted yet."""
        new = {name: value for name, value in seen.items() if value and self.noted.get(name) != value}
        found = cast("RunFields", new)
        self.noted |= found
        return found


class ProgressPoller:
    """Polls the runs of one monitor. ``wake`` is called when there are notes."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._notes: deque[tuple[str, RunFields]] = deque()
        self._followed: dict[str, _Followed] = {}
        self._due: list[tuple[float, int, _Followed]] = []
        self._number = 0
        self._changed = threading.Condition()
        self._is_over = False
        self._thread: threading.Thread | None = None

    def follow(self, run_id: str, lead: Callable[[], Lead | None]) -> None:
        """Follows a run from now on; ``lead`` returns where its driver is, None when there is nothing to follow."""
        with self._changed:
            if run_id in self._followed or self._is_over:
                return
            self._followed[run_id] = followed = _Followed(run_id, lead)
            self._put(followed, _SOON_S)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="follower", daemon=True)
                self._thread.start()
            self._changed.notify()

    def forget(self, run_id: str) -> None:
        """Ends the polling of a run, which has ended."""
        with self._changed:
            if (followed := self._followed.pop(run_id, None)) is not None:
                followed.is_over = True

    def notes(self) -> list[tuple[str, RunFields]]:
        """Returns what has been seen since, oldest first."""
        found = []
        while self._notes:
            found.append(self._notes.popleft())
        return found

    def stop(self) -> None:
        """Ends the thread; a request that is under way is not waited for."""
        with self._changed:
            self._is_over = True
            self._changed.notify()

    def _put(self, followed: _Followed, pause_s: float) -> None:
        self._number += 1
        heapq.heappush(self._due, (time.monotonic() + pause_s, self._number, followed))

    def _run(self) -> None:
        while (followed := self._next()) is not None:
            try:
                goes_on = self._look(followed)
            except Exception:  # an answer of a job's own server must not end this thread
                log.exception("a run cannot be followed", run=followed.run_id)
                goes_on = False
            with self._changed:
                if goes_on and not followed.is_over:
                    self._put(followed, followed.pause_s)

    def _next(self) -> _Followed | None:
        """Waits for the next run that is due and returns it; None when the poller has stopped."""
        with self._changed:
            while not self._is_over:
                while self._due and self._due[0][2].is_over:
                    heapq.heappop(self._due)
                wait_s = self._due[0][0] - time.monotonic() if self._due else None
                if wait_s is not None and wait_s <= 0:
                    return heapq.heappop(self._due)[2]
                self._changed.wait(wait_s)
            return None

    def _look(self, followed: _Followed) -> bool:
        """Polls a run once; returns whether it is to be polled again, after its pause."""
        began = time.monotonic()
        is_there = False
        try:
            if followed.tally is None and not self._find(followed):
                return False
            is_there = followed.tally is not None and self._see(followed, followed.tally)
        except (OSError, ValueError) as error:
            log.debug("a driver does not answer", run=followed.run_id, error=str(error))
            followed.tally = None  # where it is is asked again
        least_s = _SHARE * (time.monotonic() - began)
        wanted_s = _PERIOD_S if is_there else min(_GROWTH * followed.pause_s, _SELDOM_S)
        followed.pause_s = max(wanted_s, least_s)
        return True

    def _find(self, followed: _Followed) -> bool:
        """Finds the driver of a run; returns False when there is nothing to follow."""
        lead = followed.lead()
        if lead is None:
            return False
        known: RunFields = {"driver_id": lead.driver_id, "application_id": lead.application_id, "ui": lead.url}
        self._note(followed, known)
        where = driver_status.application(lead.url, _DEADLINE_S, lead.tag, lead.page_key) if lead.url else None
        if where is not None:
            followed.tally = followed.tallies.setdefault(where.url + where.application_id, driver_status.Tally(where))
            # A server's application is not this run's: its jobs are.
            if not lead.tag:
                self._note(followed, {"application_id": where.application_id, "application_ms": where.began_ms})
        return True

    def _see(self, followed: _Followed, tally: driver_status.Tally) -> bool:
        """Asks the driver for its progress; returns True."""
        seen = tally.look(_DEADLINE_S)
        progress = {name: value for name, value in msgspec.structs.asdict(seen).items() if name != "first_rows_ms"}
        self._note(followed, {"progress": progress if seen.jobs else None, "first_rows_ms": seen.first_rows_ms})
        return True

    def _note(self, followed: _Followed, seen: RunFields) -> None:
        if new := followed.new(seen):
            self._notes.append((followed.run_id, new))
            self._wake()
