"""What operators ask of a monitor: which starts are paused, and which of its runs are to be ended.

The ledger decides whether a run may start; what is known of pauses here only spares it being asked in vain. A run is
ended by SIGTERM to its whole process group, and by SIGKILL when it has not ended in time. What the program's first
process leaves behind of its group when it ends is killed then: a run that was cancelled leaves nobody running.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Any

from trigmon.log import logger
from trigmon.monitor import ledger
from trigmon.mq.calls import Call, ChangeRun, Controls, Listing, Recorded, Reply, Runs, Values
from trigmon.mq.descriptors import TriggerMessage
from trigmon.rules.facts import Paused

log = logger()
_LOOK_S = 0.5


class Heeded:
    """What was last heard. The monitor's thread writes it whole, the reaper reads it."""

    def __init__(self, grace_s: float) -> None:
        self._grace_s = grace_s
        self._pauses: tuple[Paused, ...] = ()
        self._cancel: frozenset[str] = frozenset()
        self._ending: dict[str, float | None] = {}  # by run when its grace is over, None when it has been killed

    def heard(self, pauses: Collection[Paused], cancel: Collection[str]) -> None:
        """From the queue manager."""
        self._pauses, self._cancel = tuple(pauses), frozenset(cancel)

    def is_paused(self, trigger: TriggerMessage) -> bool:
        """Whether the ledger would hold a run of this."""
        return any(pause.concerns(trigger.q_name, trigger.process_name) for pause in self._pauses)

    # -- for the reaper -------------------------------------------------------------------------------------

    @property
    def ends_any(self) -> bool:
        """Whether there is something to end."""
        return bool(self._cancel or self._ending)

    def see_to(self, run_id: str, pid: int, pidfd: int) -> None:
        """Ends a running program if that was asked for, and as far as it is time."""
        now = time.monotonic()
        if run_id not in self._ending:
            if run_id in self._cancel:
                self._ending[run_id] = now + self._grace_s
                _signal(pid, pidfd, signal.SIGTERM)
                log.info("program asked to end", run=run_id, pid=pid, grace_s=self._grace_s)
        elif (until := self._ending[run_id]) is not None and now >= until:
            self._ending[run_id] = None
            _signal(pid, pidfd, signal.SIGKILL)
            log.warning("program killed", run=run_id, pid=pid, after_s=self._grace_s)

    def next_s(self) -> float | None:
        """Seconds until the first grace is over; None when there is none."""
        ends = [until for until in self._ending.values() if until is not None]
        return max(0.0, min(ends) - time.monotonic()) if ends else None

    def over(self, run_id: str, pid: int) -> bool:
        """A program has ended, and nobody has waited for it yet: whether it was cancelled. The rest of it is killed."""
        if run_id not in self._ending:
            return False
        del self._ending[run_id]
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        return True


def _signal(pid: int, pidfd: int, number: signal.Signals) -> None:
    """To the whole group, as long as the process that leads it is the one we know."""
    with suppress(ProcessLookupError, PermissionError):
        signal.pidfd_send_signal(pidfd, 0)
        os.killpg(pid, number)


class News:
    """Asks the queue manager, twice a second and whenever it rings, what operators want of this monitor."""

    def __init__(self, call: Callable[[Call], Reply], monitor: str) -> None:
        self._call = call
        self._monitor = monitor
        self._number: int | None = None
        self._again_at = 0.0

    def rang(self) -> None:
        """A wait ended with nothing: there may be news."""
        self._again_at = 0.0

    def come(self) -> tuple[list[Paused], list[str]] | None:
        """Pauses and runs to end where any of it has changed, else None. Raises what ``call`` raises."""
        if time.monotonic() < self._again_at:
            return None
        reply = self._call(Controls(monitor=self._monitor))
        assert isinstance(reply, Values)
        self._again_at = time.monotonic() + _LOOK_S
        if reply.values["number"] == self._number and not reply.values["cancel"]:
            return None
        self._number = reply.values["number"]
        return [_pause(row) for row in reply.values["pauses"]], reply.values["cancel"]

    def no_longer_held(self, run_ids: Collection[str]) -> Iterator[str]:
        """Those of the runs held here that have been cancelled. Raises what ``call`` raises."""
        for run_id in run_ids:
            reply = self._call(Runs(where={"run_id": run_id}, limit=1))
            assert isinstance(reply, Listing)
            state = reply.rows[0]["state"] if reply.rows else ledger.CANCELLED
            if state == ledger.DUE and reply.rows[0].get("cancelled_by"):
                # It was due and never started: the question whether it may be is what ends it.
                answer = self._call(ChangeRun(run_id=run_id, fields={"state": ledger.DUE}))
                assert isinstance(answer, Recorded)
                state = answer.state
            if state == ledger.CANCELLED:
                yield run_id


def _pause(row: dict[str, Any]) -> Paused:
    return Paused(row["what"], row["name"], row["by"], row["since_ms"], row["reason"])
