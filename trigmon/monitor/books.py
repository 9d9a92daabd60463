"""What the reaper writes into the run ledger, kept until the queue manager has taken it.

Every change only overwrites fields of one record, so a change whose reply was lost is simply written again.
"""

from __future__ import annotations

import time

from trigmon.log import logger
from trigmon.monitor import ledger
from trigmon.monitor.dead_letters import put_dead_letter
from trigmon.monitor.link import Link, LinkDown
from trigmon.monitor.plan import DeadLetter
from trigmon.monitor.reading import running_elsewhere
from trigmon.mq.calls import ChangeRun, Recorded
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.errors import MQError

log = logger()


class Books:
    """Changes of run records on their way to the queue manager, in the order they came up."""

    def __init__(self, link: Link, initiation_q: str, monitor: str) -> None:
        self._link = link
        self._monitor = monitor
        self._initiation_q = initiation_q
        self._pending: dict[str, ledger.Fields] = {}

    @property
    def behind(self) -> bool:
        """Whether something is still to be written."""
        return bool(self._pending)

    @property
    def pause_s(self) -> float:
        """Seconds until trying makes sense."""
        return self._link.pause_s

    def note(self, run_id: str, fields: ledger.Fields) -> None:
        """Will be written; changes of one run that wait together become one."""
        self._pending[run_id] = self._pending.get(run_id, {}) | fields

    def write(self) -> bool:
        """Writes what is pending. False: the queue manager is away, and some of it still is."""
        while self._pending:
            run_id, fields = next(iter(self._pending.items()))
            try:
                self.change(run_id, fields)
            except LinkDown:
                return False
            del self._pending[run_id]
        return True

    def change(self, run_id: str, fields: ledger.Fields) -> str:
        """Writes one change now, and returns the state that now stands. Raises LinkDown.

        A refusal is logged, and the state is the one that was to be: the program matters more than its record.
        """
        try:
            reply = self._link.call(ChangeRun(run_id=run_id, fields=fields))
        except MQError as error:
            log.error("the run ledger refused a change", run=run_id, error=str(error), fields=fields)
        else:
            if isinstance(reply, Recorded):
                return reply.state
        return str(fields.get("state", ""))

    def running_elsewhere(self, process_name: str) -> int:
        """How many runs of a process other monitors have due or started. Raises LinkDown."""
        return len(running_elsewhere(self._link.call, process_name, self._monitor))

    def dead_letter(self, run_id: str, verdict: DeadLetter, descriptor: MessageDescriptor, data: bytes) -> None:
        """A run that can never start: its trigger message goes to the dead-letter queue. Raises LinkDown."""
        now_ms = time.time_ns() // 1_000_000
        where = put_dead_letter(
            self._link.call,
            verdict,
            descriptor,
            data,
            initiation_q=self._initiation_q,
            q_mgr_name=self._link.connection().q_mgr_name,
            now_ms=now_ms,
        )
        log.error("program not started", run=run_id, reason=int(verdict.reason), why=verdict.why, trigger_message=where)
        self.note(run_id, ledger.failed(f"{verdict.why}; {where}", now_ms))

    def close(self) -> None:
        """Ends the connection; says what could not be written."""
        if self._pending:
            log.error("run records not written", runs=list(self._pending))
        self._link.close()
