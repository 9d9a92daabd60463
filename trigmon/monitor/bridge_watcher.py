"""Serves one initiation queue of a queue manager elsewhere, in a thread with connections of its own.

Two queue managers cannot commit together. So the run is recorded first, under an id that follows from the queue manager
and the MsgId of its trigger message, and the get is committed behind that. A trigger message that comes again, since
the monitor or a connection ended in between, has its run already, and starts nothing.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from trigmon.bridge.connection import BridgeError, RemoteError
from trigmon.bridge.intake import RemoteIntake
from trigmon.client.link import Link, LinkDown
from trigmon.launch.launch_plan import LaunchError
from trigmon.log import Seldom, logger
from trigmon.monitor import run_changes
from trigmon.monitor.adoption import resume
from trigmon.monitor.child_process import now_ms
from trigmon.monitor.defined_objects import defined
from trigmon.monitor.programs import Programs
from trigmon.monitor.trigger_plan import DeadLetter, as_defined_now, checked, process_of, read_trigger
from trigmon.mq.calls import BridgeState, RecordRuns, Runs
from trigmon.mq.descriptors import MessageDescriptor, TriggerMessage
from trigmon.mq.enums import Feedback, ObjectType
from trigmon.mq.errors import MQError, NotAuthorized, ObjectAlreadyExists
from trigmon.mq.names import is_object_name
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Listing, WasGot, WereRecorded
from trigmon.mq.run import Run, RunFields, RunState, read_run
from trigmon.mq.run_parts import QueueThere
from trigmon.rules.runs.new_run_record import as_recorded, bridged_run_id, recorded

log = logger()
MOST_HELD: Final = 100_000
_PAUSE_S: Final = 1.0
_LONG_PAUSE_S: Final = 30.0
_SAY_AGAIN_S: Final = 60.0
_MOST_IDS: Final = 64


class _Taken(msgspec.Struct, frozen=True):
    """A trigger message and the run that it becomes."""

    got: WasGot
    run: Run


class BridgeWatcher:
    """Serves one initiation queue of one bridge. ``link`` leads to the ledger, and is this object's alone.

    ``state`` is how it is; another thread may read it at any time.
    """

    def __init__(
        self,
        bridge: str,
        intake: RemoteIntake,
        link: Link,
        programs: Programs,
        *,
        initiation_q: str,
        monitor: str,
    ) -> None:
        self._bridge = bridge
        self._intake = intake
        self._link = link
        self._programs = programs
        self._initiation_q = initiation_q
        self._monitor = monitor
        self._seldom = Seldom(log, interval_s=_SAY_AGAIN_S)
        there = f"{intake.initiation_q}@{intake.q_mgr_name}"
        self.state = BridgeState(bridge, there, "it is not connected yet", now_ms())

    def serve(self, stop: threading.Event) -> None:
        """Serves the initiation queue until ``stop``, through any absence of either queue manager."""
        try:
            while not stop.is_set():
                pause_s = self._served(stop)
                self._intake.give_back()
                stop.wait(pause_s)
        finally:
            self._intake.close()
            self._link.close()

    def _served(self, stop: threading.Event) -> float:
        """Serves until something fails or ``stop`` is set. Returns how long to wait before the next try, in seconds."""
        known = {"bridge": self._bridge, "initiation_q": self._intake.initiation_q}
        try:
            self._serve_connection(stop)
        except BridgeError as error:
            self._note(str(error))
            self._seldom.warning("a bridge cannot be used", error=str(error), **known)
            return _LONG_PAUSE_S
        except RemoteError as error:
            self._note(str(error))
            self._seldom.warning("a bridge is not served", error=str(error), **known)
            return max(self._intake.connection.pause_s, _PAUSE_S if not error.may_pass else 0.0)
        except LinkDown as down:
            self._seldom.warning("queue manager not reachable", error=str(down), **known)
            return max(self._link.pause_s, 0.1)
        except MQError as error:
            self._note(str(error))
            self._seldom.warning("a bridge is not served", error=str(error), **known)
            return _PAUSE_S
        return 0.0

    def _note(self, problem: str = "") -> None:
        """Notes why it is not served, "" where it is."""
        if problem and self.state.problem:
            self.state = replace(self.state, problem=problem)
        elif problem != self.state.problem:
            self.state = replace(self.state, problem=problem, since_ms=now_ms())

    def _serve_connection(self, stop: threading.Event) -> None:
        if not self._link.connection().monitor:
            raise NotAuthorized("this user may not write the ledger of runs: name it in server.monitors")
        self._intake.open()
        self._note()
        log.info(
            "a bridge is served",
            bridge=self._bridge,
            qmgr_there=self._intake.q_mgr_name,
            initiation_q=self._intake.initiation_q,
            monitor=self._monitor,
        )
        while not stop.is_set():
            if self._programs.waiting >= MOST_HELD:
                self._seldom.warning("trigger messages stay on the initiation queue", runs_held=self._programs.waiting)
                stop.wait(_PAUSE_S)
            elif taken := self._intake.take():
                self._start(taken)
                self._intake.accept()

    # -- what becomes of trigger messages -------------------------------------------------------------------

    def _start(self, messages: list[WasGot]) -> None:
        """Records the runs of these messages, and starts those that may start."""
        seen: dict[str, QueueThere | None] = {}
        taken = [_Taken(got, self._run_of(got, seen)) for got in messages]
        held = 0
        # A run that is due and not started yet must not be looked for by another thread.
        with self._programs.start_lock:
            runs, known = self._recorded(taken)
            for run in runs:
                if run.state == RunState.DUE:
                    self._programs.start(run)
                else:
                    held += run.is_held
                    log.info(f"run {run.state}", run=run.run_id, queue=run.trigger.q_name, why=run.why)
        if held:
            self._programs.held(held)
        if known:
            # The monitor that recorded them may have died behind that, or this link: then they are started now.
            log.info("trigger messages came again, and have their runs", bridge=self._bridge, runs=known)
            resume(self._link, self._programs, self._monitor)

    def _run_of(self, got: WasGot, seen: dict[str, QueueThere | None]) -> Run:
        """Returns the run of a message: one that is to start, or a failed one, dead-lettered in the unit of work."""
        trigger = read_trigger(got.descriptor, got.data)
        if isinstance(trigger, DeadLetter):
            return self._refused(got, TriggerMessage(q_name=""), trigger)
        definition = defined(self._link.call, ObjectType.PROCESS, trigger.process_name)
        plan = checked(self._planned(trigger, definition), self._programs.launchers)
        if isinstance(plan, DeadLetter):
            return self._refused(got, trigger, plan)
        if plan.q_name not in seen:
            seen[plan.q_name] = self._intake.look(plan.q_name)
        queue = seen[plan.q_name]
        looked: RunFields = {"remote_before": None if queue is None else msgspec.to_builtins(queue)}
        run = self._record(got, plan, {"state": RunState.DUE} | looked)
        why = self._why_not_started(run, definition)
        return self._refused(got, trigger, DeadLetter(Feedback.APPL_CANNOT_BE_STARTED, why)) if why else run

    def _planned(self, trigger: TriggerMessage, definition: Mapping[str, Any] | None) -> TriggerMessage | DeadLetter:
        """Returns what is to be started: what the process of that name says here, never what the message says.

        But for a bridge whose setting allows that.
        """
        if not is_object_name(trigger.q_name):
            return DeadLetter(Feedback.TM_ERROR, f"it names no queue: {trigger.q_name!r}")
        if definition is not None:
            return as_defined_now(trigger, definition)
        if self._intake.connection.settings.applicid_of_message:
            return replace(trigger, process_name="")
        named = f"process {trigger.process_name} is not defined here" if trigger.process_name else "it names no process"
        return DeadLetter(Feedback.TM_ERROR, f"it came from {self._intake.q_mgr_name}, and {named}")

    def _why_not_started(self, run: Run, definition: Mapping[str, Any] | None) -> str:
        """Returns why no program can be started for a run; "" where one can, or where only its start tells."""
        try:
            self._programs.check_plan(run, None if definition is None else process_of(definition))
        except LaunchError as error:
            return str(error)
        except OSError:  # no room, no right: nothing that the program has caused
            return ""
        return ""

    def _refused(self, got: WasGot, trigger: TriggerMessage, verdict: DeadLetter) -> Run:
        # Where its dead-letter queue takes nothing, all of the unit of work is given back: those ahead of it too.
        self._intake.one_at_a_time = True
        where = self._intake.dead_letter(got, int(verdict.reason), now_ms())
        self._intake.one_at_a_time = False
        run = self._record(got, trigger, run_changes.failed(f"{verdict.why}; {where}", now_ms()))
        log.error(
            "program not started",
            run=run.run_id,
            bridge=self._bridge,
            reason=int(verdict.reason),
            why=verdict.why,
            trigger_message=where,
        )
        return run

    def _record(self, got: WasGot, trigger: TriggerMessage, known: RunFields) -> Run:
        there, descriptor = self._intake.q_mgr_name, got.descriptor
        fields: RunFields = {
            "monitor": self._monitor,
            "host": socket.gethostname(),
            "initiation_q": self._initiation_q,
            "bridge": self._bridge,
            "remote_q_mgr": there,
            "remote_initiation_q": self._intake.initiation_q,
            "remote_msg_id": descriptor.msg_id.hex(),
            "triggered_ms": descriptor.put_ms,
        }
        shown = replace(trigger, q_name=f"{trigger.q_name}@{there}" if trigger.q_name else "")
        return recorded(self._run_id(descriptor), shown, now_ms=now_ms(), **(fields | known))

    def _run_id(self, descriptor: MessageDescriptor, more: int = 0) -> str:
        return bridged_run_id(descriptor.put_ms, self._intake.q_mgr_name, descriptor.msg_id, more)

    # -- the ledger -----------------------------------------------------------------------------------------

    def _recorded(self, taken: list[_Taken]) -> tuple[list[Run], list[str]]:
        """Records the runs. Returns the new ones that were to be due, and the ids of those that were there before."""
        try:
            were = self._record_runs([each.run for each in taken])
        except (ObjectAlreadyExists, NotAuthorized):
            return self._recorded_each(taken)
        return [run for run, each in zip(were, taken, strict=True) if each.run.state == RunState.DUE], []

    def _recorded_each(self, taken: list[_Taken]) -> tuple[list[Run], list[str]]:
        """Records one run after another: one of them has its record already, or may not be recorded."""
        new: list[Run] = []
        known: list[str] = []
        for each in taken:
            run, is_new = self._recorded_once(each)
            if not is_new:
                known.append(run.run_id)
            elif each.run.state == RunState.DUE and run.state != RunState.FAILED:
                new.append(run)
        return new, known

    def _recorded_once(self, each: _Taken) -> tuple[Run, bool]:
        """Returns the run as it stands in the ledger, and whether it was recorded now."""
        run = each.run
        for more in range(_MOST_IDS):
            run = run.changed(run_id=self._run_id(each.got.descriptor, more))
            try:
                return self._record_runs([run])[0], True
            except NotAuthorized as error:
                run = self._refused(each.got, each.run.program_trigger, DeadLetter(Reason.NOT_AUTHORIZED, str(error)))
                each = _Taken(each.got, run)
                continue
            except ObjectAlreadyExists:
                stands = self._of(run.run_id)
                if stands is not None and _message_of(stands) == _message_of(run):
                    return stands, False
        raise ObjectAlreadyExists(f"run {run.run_id}: the ledger has {_MOST_IDS} ids like it for other messages")

    def _record_runs(self, runs: list[Run]) -> list[Run]:
        reply = self._link.call(RecordRuns(records=[run.json for run in runs], caps=self._programs.caps))
        assert isinstance(reply, WereRecorded)
        return [as_recorded(run, stands) for run, stands in zip(runs, reply.runs, strict=True)]

    def _of(self, run_id: str) -> Run | None:
        reply = self._link.call(Runs(where={"run_id": run_id}, limit=1))
        return read_run(reply.rows[0]) if isinstance(reply, Listing) and reply.rows else None


def _message_of(run: Run) -> tuple[str, str]:
    return run.bridged.remote_q_mgr, run.bridged.remote_msg_id
