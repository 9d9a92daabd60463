"""Plans the start of runs: what is executed, or why a run cannot start.

The ledger decides which held run may start; it is asked when a program has ended, when a control came, when a pause
is over, and once a second while runs wait, since other monitors' programs end too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from trigmon.client.link import LinkDown
from trigmon.launch.launch_plan import Launcher, LaunchError, LaunchPlan, Order
from trigmon.log import logger
from trigmon.monitor import run_changes
from trigmon.monitor.child_process import Limits, now_ms
from trigmon.monitor.ledger_writer import LedgerWriter
from trigmon.monitor.run_traces import RunTraces
from trigmon.monitor.trigger_plan import process_for, startable
from trigmon.mq.attributes import Process
from trigmon.mq.calls import Caps
from trigmon.mq.descriptors import TriggerMessage, pack_tm
from trigmon.mq.errors import MQError
from trigmon.mq.run import Run, read_run, whole_trigger

log = logger()
_LOOK_AGAIN_S = 1.0


class Starter:
    """Plans the runs of one monitor. ``address`` is what started programs connect to ("": the queue manager's name).

    ``bridges`` has the variables of programs whose queue is elsewhere, by bridge.
    """

    def __init__(
        self,
        ledger: LedgerWriter,
        launchers: Mapping[int, Launcher],
        limits: Limits,
        q_mgr_name: str,
        address: str,
        traces: RunTraces,
        bridges: Mapping[str, dict[str, str]] | None = None,
    ) -> None:
        self.caps = Caps(limits.instances, limits.runs)
        self.waiting = 0
        self._ledger = ledger
        self._launchers = launchers
        self._q_mgr_name = q_mgr_name
        self._address = address
        self._traces = traces
        self._bridges = bridges or {}
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

    @property
    def asks_now(self) -> bool:
        """Whether the ledger is to be asked now."""
        return self._ask_at is not None and self._ask_at <= time.monotonic()

    def due(self) -> Iterator[tuple[Order, LaunchPlan]]:
        """Yields what is to be started now, due in the ledger from here on; nothing while the queue manager is away.

        What the ledger is to learn by now is written where it is asked.
        """
        if not self.asks_now:
            return
        now = time.monotonic()
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
            if self.can_read(run) and (planned := self.planned(run)) is not None:
                yield planned

    def put_back(self, order: Order, why: str) -> None:
        """Holds a due run again that cannot be started now."""
        self._ledger.note(order.run_id, run_changes.held_again(why))
        self.waiting += 1
        self._ask_at = time.monotonic() + _LOOK_AGAIN_S

    # -- what -----------------------------------------------------------------------------------------------

    def can_read(self, run: Run) -> bool:
        """Returns whether a run could be started from its record; one from which it could not has failed."""
        try:
            is_whole = whole_trigger(run.json) is not None and bool(pack_tm(run.program_trigger))
        except (TypeError, ValueError, MQError):
            is_whole = False
        if not is_whole:  # an administrator may have written it
            self.record_failure(run.run_id, "its record does not hold what it was to be started by")
        return is_whole

    def order_of(self, run: Run) -> Order:
        """Returns what a run's record says is to be started."""
        elsewhere = run.bridged.remote_q_mgr
        return Order(
            run_id=run.run_id,
            q_mgr_name=elsewhere or self._q_mgr_name,
            trigger=run.program_trigger,
            process=process_for(run.trigger, run.origin.process or None),
            address="" if elsewhere else self._address,
            bridge=run.bridged.bridge,
            variables=self._bridges.get(run.bridged.bridge, {}) if elsewhere else {},
            occasion=run.origin.occasion,
            triggered_ms=run.origin.triggered_ms,
            put_traceparent=run.origin.traceparent,
            traceparent=self._traces.of_program(run),
        )

    def expected(self, process: Process) -> LaunchPlan:
        """Returns the plan of any run of this process. Raises LaunchError, OSError."""
        trigger = TriggerMessage(
            q_name="",
            process_name=process.name,
            appl_type=process.appl_type,
            appl_id=process.appl_id,
            env_data=process.env_data,
            user_data=process.user_data,
        )
        order = Order(run_id="", q_mgr_name=self._q_mgr_name, trigger=trigger, process=process, address=self._address)
        return self._launchers[process.appl_type].plan(order)

    def check_plan(self, run: Run, process: Process | None) -> None:
        """Plans a run as this process says, and starts nothing. Raises LaunchError, OSError."""
        order = self.order_of(run)
        self._launchers[order.trigger.appl_type].plan(order if process is None else replace(order, process=process))

    def planned(self, run: Run) -> tuple[Order, LaunchPlan] | None:
        """Returns the order and the launch plan of a run; None where it cannot start.

        Then it has failed, or is held again where it may start later. A process that was deleted meanwhile may have set
        the user and the limits of its program, so without it nothing is started in its name.
        """
        order = self.order_of(run)
        never = startable(order.trigger, self._launchers)
        if never is not None:
            self.record_failure(run.run_id, never.why)
            return None
        if order.trigger.process_name and run.origin.process is None:
            self.record_failure(run.run_id, f"process {order.trigger.process_name} is not defined any more")
            return None
        try:
            return order, self._launchers[order.trigger.appl_type].plan(order)
        except LaunchError as error:
            self.record_failure(run.run_id, str(error))
        except OSError as error:  # no room, no right, too many files: nothing that the job has caused
            log.error("a run cannot be planned now", run=order.run_id, error=str(error))
            self.put_back(order, f"what it needs could not be checked: {error}")
        return None

    def record_failure(self, run_id: str, why: str) -> None:
        """Records that a run could not start. The queue manager judges it as any other failure."""
        log.error("program not started", run=run_id, why=why)
        self._ledger.note(run_id, run_changes.failed(why, now_ms()))
        self.look_again()
