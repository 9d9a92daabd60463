"""What operators ask of a monitor: which starts are paused, and which of its runs are to be ended.

The ledger decides whether a run may start; what is known of pauses here only spares it being asked in vain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

from trigmon.log import logger
from trigmon.monitor import ledger
from trigmon.mq.calls import Call, ChangeRun, Controls, Listing, Recorded, Reply, Runs, Values
from trigmon.mq.descriptors import TriggerMessage
from trigmon.rules.facts import Paused

log = logger()
_LOOK_S = 0.5


class Heeded:
    """What was last heard. The monitor's thread writes it whole, the reaper reads it. ``cancel``: the runs to end."""

    def __init__(self) -> None:
        self._pauses: tuple[Paused, ...] = ()
        self.cancel: frozenset[str] = frozenset()

    def heard(self, pauses: Collection[Paused], cancel: Collection[str]) -> None:
        """From the queue manager."""
        self._pauses, self.cancel = tuple(pauses), frozenset(cancel)

    def is_paused(self, trigger: TriggerMessage) -> bool:
        """Whether the ledger would hold a run of this."""
        return any(pause.concerns(trigger.q_name, trigger.process_name) for pause in self._pauses)


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
