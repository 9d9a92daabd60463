"""A keeper: starts programs for monitors and records how they end, whatever becomes of the monitors.

A program that has ended is waited for (waitpid) only when its exit is written: until then it is left to the parent and
the next keeper. The monitors get the event at once.

One wait for all children instead of a pidfd for each: as their subreaper (prctl(2)) the keeper becomes the parent of
what its programs leave behind too, and a descriptor a run would bound how many may run. What a program left behind is
ended when the program has ended (:mod:`trigmon.keeper.orphan_processes`). While the program runs, the keeper does
not touch the processes that it makes.

A unit of systemd's is no child of the keeper (:mod:`trigmon.keeper.systemd_units`): the keeper reports and records the
states that systemd sends.

Standard library only, and little of it: it is started while a launch waits.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trigmon.keeper import protocol, run_directory
from trigmon.keeper.keeper_log import report
from trigmon.keeper.monitor_connections import MonitorConnections
from trigmon.keeper.orphan_processes import OrphanProcesses
from trigmon.keeper.process import ProgramProcess
from trigmon.keeper.runs import Runs
from trigmon.keeper.starts import Starts
from trigmon.keeper.subreaper import Known, Parent, children, status_of, used_s
from trigmon.keeper.termination import Run
from trigmon.keeper.unwritten_exits import UnwrittenExits

if TYPE_CHECKING:
    from trigmon.keeper.systemd_units import Unit, Units

LINGER_S = 5.0
"""How long a keeper with nothing to keep waits for the next monitor."""


class Keeper:
    """The loop of one keeper: orders of monitors, ends of programs, and time."""

    def __init__(
        self,
        name: str,
        listener: socket.socket,
        linger_s: float = LINGER_S,
        parent: Parent | None = None,
        known: Known | None = None,
    ) -> None:
        """Takes over ``known``, the runs of an earlier keeper that ``parent`` has."""
        self._name = name
        self._listener = listener
        self._linger_s = linger_s
        self._parent = parent
        self._selector = selectors.DefaultSelector()
        self._monitors = MonitorConnections(self._selector)
        self._runs = Runs()
        self._units: Units | None = None
        self._starts = Starts(name, self._runs, self.units, self._monitors, self._tell_parent, self._selector)
        self._exits = UnwrittenExits(self._exit_is_written)
        self._orphans = OrphanProcesses(parent.pid if parent is not None else 0, self._runs.ended_run_of)
        self._is_orphan = False
        self._ends = False
        self._made_at = time.monotonic()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        if parent is not None:
            self._selector.register(parent.link, selectors.EVENT_READ, self._receive_from_parent)
        for left in (known or {}).values():
            self._take_over(ProgramProcess(left, is_left=True), left)

    def _take_over(self, run: ProgramProcess, left: protocol.Message) -> None:
        if "ended" in left:
            self._exits.exits[run.run_id] = run, left["ended"]
            return
        self._runs.add_process(run)
        self._runs.lease(left)

    def adopt_units(self, runs_directory: Path) -> None:
        """Finds the units of an earlier keeper of this name. The exits of those that have ended are written."""
        try:
            self._runs.by_id |= {run.run_id: run for run in self.units().adopt(runs_directory, self._name)}
            self.units().look_at_all()
        except OSError:
            report()

    def serve(self, signals: int) -> bool:
        """Works until there is nothing more to do. ``signals`` is readable when a signal has come.

        Returns False when its parent has gone, and it is to be the parent of the next keeper.
        """
        self._selector.register(signals, selectors.EVENT_READ, lambda: self._take_signals(os.read(signals, 4096)))
        while not (self._is_orphan or self._is_over()):
            for key, _ in self._selector.select(self._pause_s()):
                key.data()
            self._carry_out_orders()
            self._reap()
            self._keep_time()
        return not self._is_orphan

    def close(self) -> Known:
        """Closes everything but its runs, which are returned. The next keeper finds the exits that are not written."""
        self._monitors.close()
        self._starts.close()
        if self._units is not None:
            self._units.close()
        self._selector.close()
        if self._parent is not None:
            self._parent.link.close()
        known = {run.pid: run.known for run in self._runs.leaders.values() if not run.is_left}
        for run, fields in self._exits.exits.values():
            if isinstance(run, ProgramProcess):
                known[run.pid] = run.known | ({"ended": fields} if run.is_left else {})
        return known

    # -- its parent -----------------------------------------------------------------------------------------

    def _receive_from_parent(self) -> None:
        messages = self._parent.receive() if self._parent is not None else None
        if messages is None:
            self._is_orphan = True
            return
        for message in messages:
            if run := self._runs.leaders.get(int(message["pid"])):
                self._process_ended(run, int(message["status"]), float(message["cpu_s"]))

    def _tell_parent(self, say: str, **fields: Any) -> None:
        if self._parent is not None:
            self._parent.send(say, **fields)

    # -- monitors -------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        # A monitor that died may have sent orders that are unread: the next one's hello is an answer to those too.
        self._monitors.receive_all()
        self._carry_out_orders()
        try:
            link, _ = self._listener.accept()
        except OSError:
            return
        monitor = self._monitors.add(link)
        self._monitors.send(
            protocol.line("hello", pid=os.getpid(), runs=[*self._runs.by_id, *self._exits.exits]), monitor
        )
        for _, fields in self._exits.exits.values():
            self._monitors.send(protocol.line("ended", **fields), monitor)

    def _carry_out_orders(self) -> None:
        """Starts all that is to be started, with one sync for all; then does the rest in its order."""
        orders = self._monitors.take_orders()
        if not orders:
            return
        starts = [order for order in orders if order.get("say") == "start"]
        if self._ends:
            for order in starts:
                self._starts.fail(order, OSError("the keeper is ending: it got SIGTERM"))
        else:
            self._starts.start_all(starts)
        for order in orders:
            self._carry_out(order)
        if any(order.get("say") == "bye" for order in orders):
            self._linger_s = 0.0 if len(self._monitors) <= 1 else self._linger_s

    def _carry_out(self, order: protocol.Message) -> None:
        match order.get("say"):
            case "stop" if run := self._runs.by_id.get(order["run"]):
                run.end(order["why"], float(order["grace_s"]))
            case "keep":
                self._runs.lease(order)
            case "warm":
                self._starts.warm(order)
            case "cool":
                self._starts.cool()

    # -- systemd's units (see trigmon.keeper.systemd_units.UnitEvents) ----------------------------------------

    def units(self) -> Units:
        """Returns the runs that systemd keeps. Most keepers have none, and do not import what speaks to systemd."""
        if self._units is None:
            from trigmon.keeper.systemd_units import Units

            self._units = Units(self, self._selector)
        return self._units

    def unit_started(self, run: Unit) -> None:
        """Reports a unit whose program runs, or has ended already."""
        self._monitors.send(protocol.line("started", run=run.run_id, pid=run.pid, start_ms=run.start_ms))
        with suppress(OSError):
            run_directory.note_start(run.directory, run.pid, run.start_ms, run.argv)

    def unit_failed(self, run: Unit, why: str) -> None:
        """Reports that no program came of a unit."""
        self._runs.remove(run.run_id)
        self._starts.fail({"run": run.run_id, "directory": run.directory}, OSError(why))

    def unit_ended(self, run: Unit) -> None:
        """Reports and records how the program of a unit ended."""
        self._run_ended(run, run.ended())

    def unit_lost(self, run: Unit) -> None:
        """Reports a unit that systemd does not know any more: a monitor that looks for its process finds none."""
        self._runs.remove(run.run_id)
        self._monitors.send(protocol.line("taken", run=run.run_id))

    # -- ends -----------------------------------------------------------------------------------------------

    def _take_signals(self, numbers: bytes) -> None:
        if signal.SIGTERM in numbers:
            self._ends = True
            for run in self._runs.processes():  # units go on: the next keeper finds them
                run.end(protocol.KEEPER_ENDED, run.grace_s)

    def _reap(self) -> None:
        """Records every child that has ended: programs, the fork server, and orphans."""
        has_ended = False
        for found in self._ended_children():
            has_ended = True
            run, forks = self._runs.leaders.get(found.si_pid), self._starts.forks
            if run is not None:
                self._process_ended(run, status_of(found), used_s(run.pid) if run.cpu_limit_s else 0.0)
            elif not (forks and forks.ended(found.si_pid)):
                os.waitpid(found.si_pid, os.WNOHANG)
                self._orphans.was_reaped(found.si_pid)
        if has_ended:
            self._end_orphans()

    def _ended_children(self) -> Iterator[Any]:
        """Yields each child that is to be waited for, but not those whose exit is still to be written."""
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        with suppress(ChildProcessError):
            while not self._exits.exits and (found := os.waitid(os.P_ALL, 0, how)):
                yield found
        if self._exits.exits:
            unwaited = self._exits.pids
            for pid in [pid for pid in children() if pid not in unwaited]:
                if found := os.waitid(os.P_PID, pid, how):
                    yield found

    def _process_ended(self, run: ProgramProcess, status: int, cpu_s: float) -> None:
        """Records the end of a program, whose process is still to be waited for."""
        self._runs.leaders.pop(run.pid, None)
        self._orphans.program_ended(run)
        if run.is_left and run.directory.exists() and not run_directory.has_begun(run.directory):
            self._runs.remove(run.run_id)  # a fork whose keeper died before it let it begin
            self._release(run)
            self._monitors.send(protocol.line("taken", run=run.run_id))
        else:
            self._run_ended(run, run.ended(status, cpu_s))
        if run.is_left:
            self._end_orphans()

    def _run_ended(self, run: Run, fields: run_directory.Fields) -> None:
        self._runs.remove(run.run_id)
        self._exits.write(run, fields)
        self._monitors.send(protocol.line("ended", **fields))

    def _exit_is_written(self, run: Run) -> None:
        self._release(run)
        if self._units is not None:
            self._units.remove(run.run_id)

    def _release(self, run: Run) -> None:
        """Waits for the process of a run whose end is written; where it is the parent's child, the parent does."""
        if isinstance(run, ProgramProcess):
            with suppress(ChildProcessError):
                os.waitpid(run.pid, os.WNOHANG)
            self._tell_parent("reap", pid=run.pid)
            if run.is_left and self._parent is not None:
                self._parent.wake()

    def _end_orphans(self) -> None:
        servers = self._starts.forks.pids if self._starts.forks else set()
        self._orphans.end_all({*servers, os.getpid(), *self._runs.leaders, *self._exits.pids})

    # -- time -----------------------------------------------------------------------------------------------

    def _keep_time(self) -> None:
        now = time.monotonic()
        for run in list(self._runs.by_id.values()):
            run.keep_time(now)
            if run.why and isinstance(run, ProgramProcess) and run.order.get("why") != run.why and run.pid:
                run.order = {**run.order, "why": run.why}
                self._tell_parent("why", pid=run.pid, why=run.why)
        self._exits.retry(now)
        if self._units is not None:
            self._units.keep_up(now)
        if (forks := self._starts.forks) and (due_at := forks.due_at) is not None and now >= due_at:
            forks.keep_time(now)
        self._runs.end_helpers(now, at_once=self._is_idle() and self._linger_s == 0)
        if (due_at := self._orphans.due_at) is not None and now >= due_at:
            self._end_orphans()

    def _pause_s(self) -> float | None:
        """Returns how long nothing is due; None: until something is received."""
        due = [*self._runs.due_times(), self._exits.due_at, self._orphans.due_at]
        due += [self._starts.forks.due_at] if self._starts.forks else []
        # Where 0 means that nothing is due.
        due += [self._units.try_again_at or None] if self._units else []
        if until := self._waits_for_systemd_until():
            due.append(until)
        elif self._is_idle() and not self._runs.by_id:
            due.append(self._idle_since() + self._linger_s)
        soonest = min((each for each in due if each is not None), default=None)
        return None if soonest is None else max(0.0, soonest - time.monotonic())

    def _idle_since(self) -> float:
        return max(self._made_at, self._monitors.closed_at, self._runs.removed_at)

    def _waits_for_systemd_until(self) -> float:
        return self._units.waits_for_answers_until if self._units is not None else 0.0

    def _is_idle(self) -> bool:
        return not (self._runs.has_programs or self._monitors or self._orphans or self._exits.exits)

    def _is_over(self) -> bool:
        if self._waits_for_systemd_until():
            return False
        if self._ends:
            return not (self._runs.processes() or self._orphans or self._exits.exits)
        return self._is_idle() and not self._runs.by_id and time.monotonic() >= self._idle_since() + self._linger_s
