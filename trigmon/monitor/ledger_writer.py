"""Writes changes of run records into the ledger, and keeps them until the queue manager has accepted them.

Every change only overwrites fields of one record, so a change whose reply was lost is simply written again.
"""

from __future__ import annotations

import math
import threading
import time
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


class Change(NamedTuple):
    """Fields to be overwritten in one record, by ``at`` at the latest (time.monotonic())."""

    at: float
    fields: RunFields

    def with_later(self, later: Change) -> Change:
        """Returns this change and a later one of the same record as one."""
        return Change(min(self.at, later.at), self.fields | later.fields)


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
            before = self._pending.get(run_id)
            self._pending[run_id] = before.with_later(change) if before is not None else change

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

        A change that is refused is logged, since the program matters more than its record. Raises LinkDown.
        """
        writes = [ChangeRun(run_id=run_id, fields={**change.fields}) for run_id, change in changes.items()]
        try:
            replies = self._link.answers([*writes, *calls])
        except LinkDown:
            self._put_back(changes)
            raise
        except (MQError, TypeError, ValueError) as error:  # one of them cannot be sent
            if not writes:
                raise
            if len(writes) + len(calls) > 1:
                return self._send_each(changes, *calls)
            self._log_refused(writes[0], str(error))
            return []
        for write, reply in zip(writes, replies, strict=False):
            if isinstance(reply, Refused):
                self._log_refused(write, str(MQError.of(reply.reason, reply.about)))
        return replies[len(writes) :]

    def _send_each(self, changes: dict[str, Change], *calls: Call) -> list[Reply]:
        waiting = dict(changes)
        try:
            while waiting:
                run_id = next(iter(waiting))
                self._send({run_id: waiting.pop(run_id)})
        except LinkDown:
            self._put_back(waiting)
            raise
        return self._send({}, *calls) if calls else []

    def _put_back(self, changes: dict[str, Change]) -> None:
        with self._lock:
            for run_id, change in changes.items():
                later = self._pending.get(run_id)
                self._pending[run_id] = change.with_later(later) if later is not None else change

    @staticmethod
    def _log_refused(write: ChangeRun, error: str) -> None:
        log.error("the run ledger refused a change", run=write.run_id, error=error, fields=write.fields)

    def has_opened(self, run_id: str) -> bool:
        """Returns whether a run's program has opened its queue. Raises LinkDown."""
        reply = self._link.call(Runs(where={"run_id": run_id}, limit=1))
        return isinstance(reply, Listing) and any(read_run(row).work.first_open_ms for row in reply.rows)

    def close(self) -> None:
        """Ends the connection; logs what could not be written."""
        if self._pending:
            log.error("run records not written", runs=list(self._pending))
        self._link.close()
