"""The loop of a trigger monitor: gets trigger messages from an initiation queue and has their programs started.

Trigger messages are got under syncpoint, and the runs they become are recorded in the same turn that commits the gets:
so a launch is recorded before it happens, and a monitor that dies loses none. The loop never waits for a program.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from trigmon.client.link import Link, LinkDown
from trigmon.log import Seldom, logger
from trigmon.monitor import run_changes
from trigmon.monitor.adoption import resume
from trigmon.monitor.child_process import now_ms
from trigmon.monitor.control_channel import ControlChannel
from trigmon.monitor.defined_objects import defined
from trigmon.monitor.own_intake import WAIT_MS, OwnIntake
from trigmon.monitor.programs import Programs
from trigmon.monitor.registration import Registration
from trigmon.monitor.trigger_plan import (
    DeadLetter,
    believed,
    checked,
    read_trigger,
    warm_masters,
    warm_programs,
)
from trigmon.mq.calls import BridgeState, Display, NewRuns, RecordRuns
from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.enums import ObjectType
from trigmon.mq.errors import MQError, NoMsgAvailable, NotAuthorized
from trigmon.mq.paging import all_rows
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import WasGot, WereGot, WereRecorded
from trigmon.mq.run import Run, RunFields, RunState, read_run
from trigmon.rules.model.run_program import is_the_queue_managers
from trigmon.rules.runs.new_run_record import as_recorded, new_run_id, recorded
from trigmon.rules.runs.run_ledger import cause_of

log = logger()

# So many runs are held before the rest stays on the initiation queue. Behind that bound every queue waits for the one
# that brought it there, so it is far off: a held run is a row, no more.
MOST_HELD: Final = 100_000
_PAUSE_S: Final = 1.0
# How often other monitors are checked for their end, and how often one failure is logged.
_LOOK_ROUND_S: Final = 2.0
_EXPECT_S: Final = 30.0
_SAY_AGAIN_S: Final = 60.0


class Watcher:
    """Serves one initiation queue for one monitor.

    ``registration`` holds its name in the ledger, ``ready`` is called whenever the initiation queue has been opened,
    ``alive`` in each turn of its loop; ``bridges`` returns how it stands to initiation queues elsewhere.
    """

    def __init__(
        self,
        link: Link,
        programs: Programs,
        *,
        initiation_q: str,
        registration: Registration,
        ready: Callable[[], None] = lambda: None,
        alive: Callable[[], None] = lambda: None,
        bridges: Callable[[], list[BridgeState]] = list,
    ) -> None:
        self._link = link
        self._programs = programs
        self._initiation_q = initiation_q
        self._intake = OwnIntake(link, initiation_q)
        self._registration = registration
        self._name = registration.name
        self._look_round_at = 0.0
        self._expect_at = 0.0
        self._last_id = "0"
        self._seldom = Seldom(log, interval_s=_SAY_AGAIN_S)
        self._ready = ready
        self._alive = alive
        self._bridges = bridges

    def serve(self, stop: threading.Event) -> None:
        """Serves the initiation queue until ``stop``, through any absence of the queue manager.

        Raises MQError where waiting would not help: no such queue, no authority.
        """
        while not stop.is_set():
            self._alive()
            try:
                self._serve_connection(stop)
            except LinkDown as down:
                if not down.may_pass:
                    raise down.error from None
                log.warning("queue manager not reachable", error=str(down), again_in_s=round(self._link.pause_s, 1))
                stop.wait(self._link.pause_s)

    def _serve_connection(self, stop: threading.Event) -> None:
        if not self._link.connection().monitor:
            raise NotAuthorized("this user may not write the ledger of runs: name it in server.monitors")
        self._intake.open()
        resume(self._link, self._programs, self._name)
        log.info("monitor serves", initiation_q=self._initiation_q, monitor=self._name)
        self._ready()
        controls = ControlChannel(self._link.call, self._name, self._programs.warm.lost_servers.found, self._bridges)
        while not stop.is_set():
            self._programs.check()
            self._alive()
            self._look_round()
            if (cancel := controls.poll()) is not None:
                self._programs.apply_controls(cancel)
            if self._programs.waiting >= MOST_HELD:
                self._seldom.warning("trigger messages stay on the initiation queue", runs_held=self._programs.waiting)
                stop.wait(WAIT_MS / 1000)
                continue
            unit = self._link.connection().unit
            try:
                self._take(self._intake.get(self._new_runs()), unit)
            except NoMsgAvailable:
                controls.ask_now()
            except MQError as error:
                if not self._may_go_on(error):
                    raise
                stop.wait(_PAUSE_S)

    def _look_round(self) -> None:
        """Takes over the runs of monitors that have ended, every few seconds."""
        if time.monotonic() < self._look_round_at:
            return
        for gone in self._registration.gone():
            log.info("another monitor is gone, and its runs are taken over", monitor=gone)
            resume(self._link, self._programs, self._name, of=gone)
        self._look_round_at = time.monotonic() + _LOOK_ROUND_S
        if time.monotonic() >= self._expect_at:
            self._expect()
            self._expect_at = time.monotonic() + _EXPECT_S

    def _expect(self) -> None:
        """Announces what the queues served here will need, and what takes time to become warm.

        These are Spark Connect servers and warm interpreters.
        """
        processes = list(self._rows(ObjectType.PROCESS.name))
        masters, programs = warm_masters(processes), warm_programs(processes)
        started = set()
        if masters or programs:
            queues = self._rows(ObjectType.QLOCAL.name)
            started = {row["process_name"] for row in queues if row["initiation_q_name"] == self._initiation_q}
        self._programs.warm.expect([master for name, master in masters.items() if name in started])
        self._programs.expect([process for name, process in programs.items() if name in started])

    def _rows(self, object_type: str) -> Iterator[dict[str, Any]]:
        return all_rows(self._link.call, Display(object_type=object_type))

    def _may_go_on(self, error: MQError) -> bool:
        """Returns whether the loop goes on after a refused call: its messages are backed out and tried again later."""
        if error.reason in (Reason.Q_DELETED, Reason.OBJECT_CHANGED, Reason.HOBJ_ERROR):
            return False
        self._seldom.warning("no trigger message can be taken", error=str(error))
        if error.reason != Reason.GET_INHIBITED:
            self._intake.give_back()
        return True

    # -- trigger messages -----------------------------------------------------------------------------------

    def _new_runs(self) -> NewRuns:
        """Returns how the get records the queue manager's own trigger messages as runs."""
        types = [int(each) for each in self._programs.launchers]
        return NewRuns(self._name, socket.gethostname(), self._last_id, types, self._programs.caps)

    def _take(self, got: WereGot, unit: int) -> None:
        """Starts what may start; records before what the queue manager left to the monitor to record."""
        runs = [read_run(record) for record in got.runs] or self._recorded_by_us(got.messages, unit)
        held = 0
        for run in runs:
            self._last_id = max(self._last_id, run.run_id)
            if run.state == RunState.DUE:
                self._programs.start(run)
            else:
                held += run.is_held
                log.info(f"run {run.state}", run=run.run_id, queue=run.trigger.q_name, why=run.why)
        if held:
            self._programs.held(held)

    def _recorded_by_us(self, messages: list[WasGot], unit: int) -> list[Run]:
        """Records what the messages become, with the commit of their gets; returns the runs that were to be due."""
        runs = [self._record(got) for got in messages]
        reply = self._link.call(RecordRuns(records=[run.json for run in runs], unit=unit, caps=self._programs.caps))
        assert isinstance(reply, WereRecorded)
        return [
            as_recorded(run, stands) for run, stands in zip(runs, reply.runs, strict=True) if run.state == RunState.DUE
        ]

    def _record(self, got: WasGot) -> Run:
        """Returns the run of a trigger message: one that is to start, or a failed one, dead-lettered in the unit."""
        run_id = self._last_id = new_run_id(now_ms(), got.descriptor.msg_id, self._last_id)
        trigger = read_trigger(got.descriptor, got.data)
        if isinstance(trigger, DeadLetter):
            return self._refused(got, run_id, TriggerMessage(q_name=""), trigger)
        plan: TriggerMessage | DeadLetter = trigger
        if not is_the_queue_managers(got.descriptor):
            process = defined(self._link.call, ObjectType.PROCESS, trigger.process_name)
            queue = defined(self._link.call, ObjectType.QLOCAL, trigger.q_name)
            plan = believed(got.descriptor, trigger, process, queue)
        plan = checked(plan, self._programs.launchers)
        if isinstance(plan, DeadLetter):
            return self._refused(got, run_id, trigger, plan)
        return self._recorded(got, run_id, plan, {"state": RunState.DUE})

    def _recorded(self, got: WasGot, run_id: str, trigger: TriggerMessage, known: RunFields) -> Run:
        known |= {"monitor": self._name, "host": socket.gethostname(), "initiation_q": self._initiation_q}
        return recorded(run_id, trigger, now_ms=now_ms(), **(known | cause_of(got.descriptor)))

    def _refused(self, got: WasGot, run_id: str, trigger: TriggerMessage, verdict: DeadLetter) -> Run:
        where = self._intake.dead_letter(got, int(verdict.reason), now_ms())
        log.error("program not started", run=run_id, reason=int(verdict.reason), why=verdict.why, trigger_message=where)
        return self._recorded(got, run_id, trigger, run_changes.failed(f"{verdict.why}; {where}", now_ms()))
