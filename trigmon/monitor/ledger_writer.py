"""Writes changes of run records into the ledger, and keeps them until the queue manager has accepted them.

Every change only overwrites fields of one record, so a change whose reply was lost is simply written again.
"""

from __future__ import annotations

import threading
import time
from itertools import islice
from typing import Final

from trigmon.client.link import Link, LinkDown
from trigmon.log import logger
from trigmon.mq.calls import Caps, ChangeRun, Runs, StartRuns
from trigmon.mq.errors import MQError
from trigmon.mq.replies import Listing, ToStart
from trigmon.mq.run import RunFields, read_run

log = logger()
_AT_ONCE: Final = 64


class LedgerWriter:
    """Changes of run records that wait for the queue manager, in their order."""

    def __init__(self, link: Link, initiation_q: str, monitor: str) -> None:
        self._link = link
        self._monitor = monitor
        self._initiation_q = initiation_q
        # The monitor's own thread adds changes too, while the reaper thread writes.
        self._lock = threading.Lock()
        self._pending: dict[str, RunFields] = {}
        self._write_at: float | None = None

    @property
    def behind(self) -> bool:
        """Whether something is still to be written."""
        return bool(self._pending)

    def is_pending(self, run_id: str) -> bool:
        """Returns whether a change of this run is still to be written."""
        return run_id in self._pending

    @property
    def pause_s(self) -> float:
        """Seconds until the next attempt is due."""
        return self._link.pause_s

    def note(self, run_id: str, fields: RunFields, within_s: float = 0.0) -> None:
        """Queues a change to be written within ``within_s`` seconds; waiting changes of one run become one."""
        at = time.monotonic() + within_s
        with self._lock:
            self._pending[run_id] = self._pending.get(run_id, {}) | fields
            self._write_at = at if self._write_at is None else min(at, self._write_at)

    @property
    def writes_in_s(self) -> float:
        """Seconds until what is pending is to be written and the queue manager may be there."""
        in_s = 0.0 if self._write_at is None else self._write_at - time.monotonic()
        return max(0.0, in_s, self._link.pause_s)

    def write(self, *, all_of_it: bool = False) -> bool:
        """Writes what is pending, unless it may wait. Returns False when the queue manager is away."""
        if not all_of_it and self._write_at is not None and self._write_at > time.monotonic():
            return True
        while some := self._taken():
            try:
                self._change(some)
            except LinkDown:
                self._put_back(some)
                return False
        return True

    def _taken(self) -> dict[str, RunFields]:
        """Returns the next changes to write; a later change of the same run is another one."""
        with self._lock:
            some = dict(islice(self._pending.items(), _AT_ONCE))
            for run_id in some:
                del self._pending[run_id]
            if not some:
                self._write_at = None
            return some

    def _put_back(self, some: dict[str, RunFields]) -> None:
        with self._lock:
            later = self._pending
            self._pending = {run_id: fields | later.pop(run_id, {}) for run_id, fields in some.items()} | later

    def _change(self, some: dict[str, RunFields]) -> None:
        try:
            self._link.pipeline([ChangeRun(run_id=run_id, fields={**fields}) for run_id, fields in some.items()])
        except MQError:  # one was refused, and which of the others were done is not known: each again
            for run_id, fields in some.items():
                self._change_one(run_id, fields)

    def _change_one(self, run_id: str, fields: RunFields) -> None:
        """Writes one change; a refusal is logged, since the program matters more than its record."""
        try:
            self._link.call(ChangeRun(run_id=run_id, fields={**fields}))
        except MQError as error:
            log.error("the run ledger refused a change", run=run_id, error=str(error), fields=fields)

    def start_runs(self, caps: Caps) -> ToStart:
        """Asks which held runs are to be started now. Raises LinkDown."""
        reply = self._link.call(StartRuns(initiation_q=self._initiation_q, monitor=self._monitor, caps=caps))
        assert isinstance(reply, ToStart)
        return reply

    def has_opened(self, run_id: str) -> bool:
        """Returns whether a run's program has opened its queue. Raises LinkDown."""
        reply = self._link.call(Runs(where={"run_id": run_id}, limit=1))
        return isinstance(reply, Listing) and any(read_run(row).work.first_open_ms for row in reply.rows)

    def close(self) -> None:
        """Ends the connection; logs what could not be written."""
        if self._pending:
            log.error("run records not written", runs=list(self._pending))
        self._link.close()
