"""Records what became of programs: that they started, how they ended, and what their output tells."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Any, cast

import msgspec

from trigmon.keeper import credentials, protocol
from trigmon.launch import unix
from trigmon.launch.launch_plan import STDERR, Launcher
from trigmon.log import logger
from trigmon.monitor import run_changes
from trigmon.monitor.child_process import Child, now_ms
from trigmon.monitor.child_table import ChildTable
from trigmon.monitor.launch_requests import LaunchRequests
from trigmon.monitor.ledger_writer import LedgerWriter
from trigmon.monitor.remote_looks import RemoteLooks
from trigmon.monitor.run_resumption import RunResumption
from trigmon.monitor.run_starter import Starter
from trigmon.monitor.run_traces import RunTraces
from trigmon.monitor.spark_servers.progress_poller import ProgressPoller
from trigmon.monitor.spark_servers.session_admission import SessionAdmission
from trigmon.mq.enums import ApplType
from trigmon.mq.run import RunFields
from trigmon.rules.model.bridged_queue import is_unopened_there

log = logger()
# That a program has started may be written a little later: its first instructions matter more than its record,
# and of one that ends at once both is written together.
_MAY_WAIT_S = 0.02
# How far an application is may be written together with something else.
_PROGRESS_MAY_WAIT_S = 0.2


class RunResults:
    """Writes starts and ends of programs into the ledger."""

    def __init__(
        self,
        children: ChildTable,
        ledger: LedgerWriter,
        starter: Starter,
        admission: SessionAdmission,
        requests: LaunchRequests,
        resumption: RunResumption,
        poller: ProgressPoller,
        launchers: Mapping[int, Launcher],
        traces: RunTraces,
        looks: RemoteLooks,
    ) -> None:
        self._children = children
        self._ledger = ledger
        self._starter = starter
        self._admission = admission
        self._requests = requests
        self._resumption = resumption
        self._poller = poller
        self._launchers = launchers
        self._traces = traces
        self._looks = looks

    def record_progress(self) -> None:
        """Records how far the applications of programs are."""
        for run_id, seen in self._poller.notes():
            if run_id in self._children:
                self._ledger.note(run_id, seen, _PROGRESS_MAY_WAIT_S)

    def record_looks(self, *, at_once: bool) -> None:
        """Records ends of programs whose queue is elsewhere, with what was seen of it; ``at_once``: without waiting."""
        for wanted, seen in self._looks.answers(at_once=at_once):
            if wanted.end is not None:
                after = None if seen is None else msgspec.to_builtins(seen)
                self._finish(wanted.child, {**wanted.end, "remote_after": after})
            elif seen is None:  # it may be away, and then no program can open it: the time begins again
                wanted.child.opens_by = time.monotonic() + wanted.child.order.process.open_wait_s
            elif is_unopened_there(seen):
                wanted.child.is_unopened_there = True
                wanted.child.opens_by = time.monotonic()

    def looks_due_at(self) -> list[float]:
        """Returns when looks at queues elsewhere have taken too long, by time.monotonic()."""
        return self._looks.due_at()

    def record_start(self, child: Child, message: Mapping[str, Any]) -> None:
        """Records that a program has started, as its keeper reports it."""
        argv = child.plan.argv if child.plan else []
        self.record_process(child, message["pid"], message["start_ms"], argv)
        if child.directory == child.base:
            self._traces.started(child.order, message["start_ms"])
        program = argv[0] if argv else ""
        log.info("program started", run=child.run_id, pid=child.pid, queue=child.order.shown_q_name, program=program)

    def record_process(self, child: Child, pid: int, start_ms: int, argv: list[str]) -> None:
        """Records that a run has a process; from here on it is to open its queue in time."""
        child.pid = pid
        launcher = self._launchers.get(child.trigger.appl_type)
        if launcher is not None and child.trigger.appl_type == ApplType.SPARK:
            self._poller.follow(child.run_id, lambda: launcher.lead(child.order, child.base, child.pid))
        if child.directory != child.base:  # it began with its first process
            self._ledger.note(child.run_id, {"pid": pid}, _MAY_WAIT_S)
            return
        if child.order.process.open_wait_s and child.trigger.q_name:
            child.opens_by = time.monotonic() + child.order.process.open_wait_s
        known: RunFields = {"argv": argv, "directory": str(child.base)}
        known["user"] = child.order.process.run_as or own_user()
        self._ledger.note(child.run_id, run_changes.started(pid, start_ms, **known), _MAY_WAIT_S)

    def record_exit(self, child: Child, exit_fields: Mapping[str, Any]) -> None:
        """Records how a program ended, or failed to start: its exit (:mod:`trigmon.keeper.run_directory`)."""
        (self.record_end if "status" in exit_fields else self.record_failure)(child, exit_fields)

    def record_end(self, child: Child, message: Mapping[str, Any]) -> None:
        """Records how a program ended, unless another process goes on with its run."""
        if int(message["status"]) < 0 and self._resumption.resume(child, message, ends=bool(message["why"])):
            return
        message = {**message, **(child.ended_as or {})}
        tail = unix.tail(child.directory, self._error_files(child))
        by = str(message["why"])
        begun: RunFields = (
            {} if child.pid else run_changes.started(message["pid"], message["start_ms"], directory=str(child.base))
        )
        if begun:
            self._traces.started(child.order, message["start_ms"])
        child.pid = message["pid"]
        was_stopped = by in (protocol.STOPPED, protocol.KEEPER_ENDED, protocol.CANCELLED)
        reported, unknown, _ = self._launcher_fields(child)
        ended_by = self._ended_by(child, by, message)
        fields = run_changes.exited(int(message["status"]), tail, message["end_ms"], ended_by, was_stopped=was_stopped)
        if unknown:
            fields |= run_changes.unknown(f"{fields['why']}; {unknown}", tail, message["end_ms"])
        self._close(child, begun | reported | fields)
        has_failed = message["status"] != 0 and not was_stopped
        # Without what the program wrote, as ``why`` has it: that may be data of its messages.
        error = run_changes.how_it_ended(int(message["status"])) if has_failed else ""
        self._traces.ended(child.order, message["start_ms"], message["end_ms"], error)
        if (launcher := self._launchers.get(child.trigger.appl_type)) is not None:
            launcher.tend()

    def _ended_by(self, child: Child, by: str, message: Mapping[str, Any]) -> str:
        """Returns what ended a program, for people; ``by`` is the keeper protocol's word."""
        limit_s = message.get("limit_s", 0) if child.directory == child.base else self._requests.time_limit_s(child)
        lost = self._admission.server_loss(child.run_id)
        return {
            protocol.TIME_LIMIT: f"its time limit of {limit_s:g} s",
            protocol.NOT_OPENED: "its monitor, since it had not opened its queue in "
            f"{child.order.process.open_wait_s} s",
            protocol.STOPPED: "its monitor's stop",
            protocol.SERVER_LOST: f"the loss of its Spark Connect server{lost and f': {lost}'}",
            protocol.KEEPER_ENDED: "its keeper's stop",
            protocol.CANCELLED: "",  # the ledger holds the user that cancelled it
        }.get(by, by)

    def record_failure(self, child: Child, message: Mapping[str, Any]) -> None:
        """Notes that no program could be started: the queue manager judges whether that is tried again."""
        why = message["error"]
        if child.directory != child.base:  # one had run before
            self.record_unknown_end(child, f"no process could be started for what it left elsewhere ({why})")
            return
        if message["errno"] and child.plan is not None:
            why = unix.why_not(message["errno"], child.plan.argv[0], child.plan.working_directory)
        self._starter.record_failure(child.run_id, why)
        self._children.remove(child.run_id)
        self._admission.ended(child.run_id)

    def record_unknown_end(self, child: Child, why: str, end_ms: int = 0) -> None:
        """Records the end of a program that no keeper saw, unless another process goes on with its run."""
        with suppress(OSError):  # no keeper was there to do it
            credentials.remove(child.directory)
        if self._resumption.resume(child, {}, ends=bool(child.kill_at)):
            return
        tail = unix.tail(child.directory, self._error_files(child))
        reported, unknown, status = self._launcher_fields(child)
        if status:  # the run went on elsewhere, and its end there is known
            self._close(child, reported | run_changes.exited(int(status), tail, end_ms or now_ms()))
            return
        reason = f"{why}: {unknown or 'how it ended is not known'}"
        self._close(child, reported | run_changes.unknown(reason, tail, end_ms))

    def _launcher_fields(self, child: Child) -> tuple[RunFields, str, str]:
        """Returns what its launcher read from its output: record fields, why its end is not known, its status."""
        launcher = self._launchers.get(child.trigger.appl_type)
        fields = dict(launcher.record_fields(child.order, child.base)) if launcher is not None else {}
        unknown, status = fields.pop("unknown", ""), fields.pop("status", "")
        return cast("RunFields", fields), unknown, status

    def _error_files(self, child: Child) -> tuple[str, ...]:
        """Returns the output files that show why such a program failed."""
        launcher = self._launchers.get(child.trigger.appl_type)
        return launcher.errors if launcher else (STDERR,)

    def _close(self, child: Child, fields: RunFields) -> None:
        log.info("program ended", run=child.run_id, pid=child.pid, how=fields["why"])
        if child.order.bridge:
            child.ended_as = child.ended_as or {}  # nothing ends it any more
            self._looks.ask(child, fields)
            return
        self._finish(child, fields)

    def _finish(self, child: Child, fields: RunFields) -> None:
        self._poller.forget(child.run_id)
        self._ledger.note(child.run_id, fields)
        self._starter.look_again()
        self._children.remove(child.run_id)
        self._admission.ended(child.run_id)


@cache
def own_user() -> str:
    """Returns the user of programs whose definition names none."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
