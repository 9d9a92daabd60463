"""Writes changes of run records into the ledger, and keeps them until the queue manager has accepted them.

Every change only overwrites fields of one record, so a change whose reply was lost is simply written again.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from itertools import islice
from typing import Final, NamedTuple

from trigmon.client.link import Link, LinkDown
from trigmon.log import logger
from trigmon.mq.calls import Call, Caps, ChangeRun, Runs, StartRuns
from trigmon.mq.errors import MQError
from trigmon.mq.replies import Listing, Refused, Reply, ToStart
from trigmon.mq.run import RunFields, read_run

log = logger()
_AT_ONCE: Final = 64
_CANNOT_BE_SENT: Final = (MQError, TypeError, ValueError)


class Change(NamedTuple):
    """Fields to be overwritten in one record, by ``at`` at the latest (time.monotonic())."""

    at: float
    fields: RunFields

    def with_later(self, later: Change) -> Change:
        """Returns this change and a later one of the same record as one."""
        return Change(min(self.at, later.at), self.fields | later.fields)


_NONE: Final = Change(math.inf, {})


class LedgerWriter:
    """Changes of run records that wait for the queue manager; those of one run in their order."""

    def __init__(self, link: Link, initiation_q: str, monitor: str) -> None:
        self._link = link
        self._monitor = monitor
        self._initiation_q = initiation_q
        # The monitor's own thread adds changes too, while the reaper thread writes.
        self._lock = threading.Lock()
        self._pending: dict[str, Change] = {}

    @property
    def behind(self) -> bool:
        """Whether something is still to be written."""
        return bool(self._pending)

    def is_pending(self, run_id: str) -> bool:
        """Returns whether a change of this run is still to be written."""
        return run_id in self._pending

    def note(self, run_id: str, fields: RunFields, within_s: float = 0.0) -> None:
        """Queues a change to be written within ``within_s`` seconds; waiting changes of one run become one."""
        change = Change(time.monotonic() + within_s, fields)
        with self._lock:
            self._pending[run_id] = self._pending.get(run_id, _NONE).with_later(change)

    @property
    def pause_s(self) -> float:
        """Seconds until the next attempt is due."""
        return self._link.pause_s

    @property
    def writes_in_s(self) -> float:
        """Seconds until something that is pending is to be written and the queue manager may be there."""
        with self._lock:
            at = min((change.at for change in self._pending.values()), default=0.0)
        return max(0.0, at - time.monotonic(), self._link.pause_s)

    def write(self, *, all_of_it: bool = False) -> bool:
        """Writes what is due, or all that is pending. Returns False when the queue manager is away."""
        try:
            while some := self._taken(all_of_it=all_of_it):
                self._send(some)
        except LinkDown:
            return False
        return True

    def start_runs(self, caps: Caps) -> ToStart:
        """Asks which held runs are to be started, in the turn that writes what is due. Raises LinkDown, MQError."""
        while len(some := self._taken()) >= _AT_ONCE:
            self._send(some)
        (reply,) = self._send(some, StartRuns(initiation_q=self._initiation_q, monitor=self._monitor, caps=caps))
        if isinstance(reply, Refused):
            raise MQError.of(reply.reason, reply.about)
        assert isinstance(reply, ToStart)
        return reply

    def _taken(self, *, all_of_it: bool = False) -> dict[str, Change]:
        """Returns the next changes to write; a later change of the same run is another one."""
        now = math.inf if all_of_it else time.monotonic()
        with self._lock:
            due = (run_id for run_id, change in self._pending.items() if change.at <= now)
            return {run_id: self._pending.pop(run_id) for run_id in list(islice(due, _AT_ONCE))}

    def _send(self, changes: dict[str, Change], *calls: Call) -> list[Reply]:
        """Writes changes, and returns the replies of the calls behind them, which are of the same turn.

        A change that is refused or cannot be sent is logged, since the program matters more than its record, and costs
        no other. Raises LinkDown; MQError, TypeError or ValueError where one of the calls cannot be sent.
        """
        try:
            try:
                return self._answers(changes, calls)
            except _CANNOT_BE_SENT:
                if not changes:
                    raise
            for run_id, change in list(changes.items()):
                try:
                    self._answers({run_id: change})
                except _CANNOT_BE_SENT as error:
                    self._log_refused(run_id, change, error)
                del changes[run_id]
            return self._answers({}, calls) if calls else []
        except LinkDown:
            self._put_back(changes)
            raise

    def _answers(self, changes: dict[str, Change], calls: Sequence[Call] = ()) -> list[Reply]:
        """Sends all of it at once. Raises LinkDown; MQError, TypeError or ValueError where one cannot be sent."""
        writes = [ChangeRun(run_id=run_id, fields={**change.fields}) for run_id, change in changes.items()]
        replies = self._link.answers([*writes, *calls])
        for (run_id, change), reply in zip(changes.items(), replies, strict=False):
            if isinstance(reply, Refused):
                self._log_refused(run_id, change, MQError.of(reply.reason, reply.about))
        return replies[len(writes) :]

    def _put_back(self, changes: dict[str, Change]) -> None:
        with self._lock:
            for run_id, change in changes.items():
                self._pending[run_id] = change.with_later(self._pending.get(run_id, _NONE))

    @staticmethod
    def _log_refused(run_id: str, change: Change, error: Exception) -> None:
        log.error("the run ledger refused a change", run=run_id, error=str(error), fields=change.fields)

    def has_opened(self, run_id: str) -> bool:
        """Returns whether a run's program has opened its queue. Raises LinkDown."""
        reply = self._link.call(Runs(where={"run_id": run_id}, limit=1))
        return isinstance(reply, Listing) and any(read_run(row).work.first_open_ms for row in reply.rows)

    def close(self) -> None:
        """Ends the connection; logs what could not be written."""
        if self._pending:
            log.error("run records not written", runs=list(self._pending))
        self._link.close()
