"""Plans the start of runs: what is executed, or the dead letter of a run that can never start.

The ledger decides which held run may start; it is asked when a program has ended, when a control came, when a pause
is over, and once a second while runs wait, since other monitors' programs end too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping

from trigmon.launch.launch_plan import Launcher, LaunchError, LaunchPlan, Order
from trigmon.log import logger
from trigmon.monitor import run_changes
from trigmon.monitor.child_process import Limits, RawTrigger, WriteOff
from trigmon.monitor.ledger_writer import LedgerWriter
from trigmon.monitor.reconnection import LinkDown
from trigmon.monitor.trigger_plan import DeadLetter, process_for, startable
from trigmon.monitor.undeliverable import AS_WRITTEN
from trigmon.mq.calls import Caps
from trigmon.mq.descriptors import pack_tm
from trigmon.mq.enums import Feedback
from trigmon.mq.errors import MQError
from trigmon.mq.run import Run, read_run, whole_trigger

log = logger()
_LOOK_AGAIN_S = 1.0


class Starter:
    """Plans the runs of one monitor. ``address`` is what started programs connect to ("": the queue manager's name)."""

    def __init__(
        self, ledger: LedgerWriter, launchers: Mapping[int, Launcher], limits: Limits, q_mgr_name: str, address: str
    ) -> None:
        self.caps = Caps(limits.instances, limits.runs)
        self.waiting = 0
        self._ledger = ledger
        self._launchers = launchers
        self._q_mgr_name = q_mgr_name
        self._address = address
        self._write_offs: dict[str, WriteOff] = {}
        self._lock = threading.Lock()
        self._ask_at: float | None = 0.0

    # -- which ----------------------------------------------------------------------------------------------

    def look_again(self) -> None:
        """Asks the ledger at the next turn: something has changed that a held run may wait for."""
        self._ask_at = 0.0

    def held(self, count: int) -> None:
        """Counts so many more held runs."""
        self.waiting += count
        if self._ask_at is None:
            self._ask_at = time.monotonic() + _LOOK_AGAIN_S

    def asks_at(self) -> list[float]:
        """Returns when the ledger is to be asked again by time.monotonic(), if at all."""
        at = self._ask_at
        return [] if at is None else [at]

    def due(self) -> Iterator[tuple[Order, LaunchPlan, RawTrigger]]:
        """Yields what is to be started now, due in the ledger from here on; nothing while the queue manager is away."""
        now = time.monotonic()
        if not any(at <= now for at in self.asks_at()):
            return
        self._ask_at = None
        try:
            reply = self._ledger.start_runs(self.caps)
        except LinkDown:
            self._ask_at = now
            return
        self.waiting = reply.waiting
        if reply.waiting:
            pauses = [_LOOK_AGAIN_S] + [(reply.again_ms - reply.now_ms) / 1000] * bool(reply.again_ms)
            self._ask_at = now if reply.records else now + min(pauses)
        for run in map(read_run, reply.records):
            if not self.can_read(run):
                continue
            raw_trigger = AS_WRITTEN, pack_tm(run.trigger)
            if (planned := self.planned(run, raw_trigger)) is not None:
                yield *planned, raw_trigger

    def put_back(self, order: Order, why: str) -> None:
        """Holds a due run again that cannot be started now."""
        self._ledger.note(order.run_id, run_changes.held_again(why))
        self.waiting += 1
        self._ask_at = time.monotonic() + _LOOK_AGAIN_S

    # -- what -----------------------------------------------------------------------------------------------

    def can_read(self, run: Run) -> bool:
        """Returns whether a run could be started from its record; one from which it could not has failed."""
        try:
            is_whole = whole_trigger(run.json) is not None and bool(pack_tm(run.trigger))
        except (TypeError, ValueError, MQError):
            is_whole = False
        if not is_whole:  # an administrator may have written it
            why = "its record does not hold what it was to be started by"
            self._ledger.note(run.run_id, run_changes.failed(why, time.time_ns() // 1_000_000))
        return is_whole

    def order_of(self, run: Run) -> Order:
        """Returns what a run's record says is to be started."""
        return Order(
            run_id=run.run_id,
            q_mgr_name=self._q_mgr_name,
            trigger=run.trigger,
            process=process_for(run.trigger, run.origin.process or None),
            address=self._address,
            occasion=run.origin.occasion,
        )

    def planned(self, run: Run, raw_trigger: RawTrigger) -> tuple[Order, LaunchPlan] | None:
        """Returns the order and the launch plan of a run; None where it cannot start.

        Then its dead letter is put, or it is held again where it may start later. A process that was deleted meanwhile
        may have set the user and the limits of its program, so without it nothing is started in its name.
        """
        order = self.order_of(run)
        never = startable(order.trigger, self._launchers)
        if never is not None:
            self._begin(order, never, raw_trigger)
            return None
        if order.trigger.process_name and run.origin.process is None:
            self.begin_write_off(order, f"process {order.trigger.process_name} is not defined any more", raw_trigger)
            return None
        try:
            return order, self._launchers[order.trigger.appl_type].plan(order)
        except LaunchError as error:
            self.begin_write_off(order, str(error), raw_trigger)
        except OSError as error:  # no room, no right, too many files: nothing that the job has caused
            log.error("a run cannot be planned now", run=order.run_id, error=str(error))
            self.put_back(order, f"what it needs could not be checked: {error}")
        return None

    # -- never ----------------------------------------------------------------------------------------------

    @property
    def is_writing_off(self) -> bool:
        """Whether dead letters are still to be put."""
        return bool(self._write_offs)

    def writes_off(self, run_id: str) -> bool:
        """Returns whether a run's dead letter is still to be put."""
        return run_id in self._write_offs

    def begin_write_off(self, order: Order, why: str, raw_trigger: RawTrigger | None) -> None:
        """Notes a run that can never start; its trigger message goes to the dead-letter queue."""
        verdict = DeadLetter(Feedback.APPL_CANNOT_BE_STARTED, why)
        self._begin(order, verdict, raw_trigger or (AS_WRITTEN, pack_tm(order.trigger)))

    def _begin(self, order: Order, verdict: DeadLetter, raw_trigger: RawTrigger) -> None:
        with self._lock:
            self._write_offs[order.run_id] = WriteOff(verdict, raw_trigger)

    def write_off(self) -> None:
        """Puts the dead letters of runs that never became programs, while the queue manager is there."""
        while self._write_offs and not self._ledger.behind:
            run_id, it = next(iter(self._write_offs.items()))
            try:
                self._ledger.dead_letter(run_id, it.verdict, *it.raw_trigger)
            except LinkDown:
                return
            self._ledger.write(all_of_it=True)
            with self._lock:
                del self._write_offs[run_id]
            self.look_again()
