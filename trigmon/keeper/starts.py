"""How a keeper starts runs: it claims each, starts its program, and reports the result.

A program is a process of the keeper's, a copy of its fork server (:mod:`trigmon.keeper.fork_server`), or a unit of
systemd's (:mod:`trigmon.keeper.systemd_units`). Standard library only: the keeper imports it.
"""

from __future__ import annotations

import os
import selectors
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from trigmon.keeper import protocol, run_directory
from trigmon.keeper.keeper_log import report
from trigmon.keeper.monitor_connections import MonitorConnections
from trigmon.keeper.process import NO_ROOM, NotExecutedError, ProgramProcess
from trigmon.keeper.run_directory import now_ms
from trigmon.keeper.runs import Runs

if TYPE_CHECKING:
    from trigmon.keeper.fork_server import Fork
    from trigmon.keeper.fork_servers import ForkServers
    from trigmon.keeper.systemd_units import Units


class Starts:
    """The starts of one keeper; ``name`` is the keeper's, ``tell_parent`` sends a message to its parent.

    ``forks`` are the fork servers and the runs that wait for them; None when no monitor has asked for one.
    """

    def __init__(
        self,
        name: str,
        runs: Runs,
        units: Callable[[], Units],
        monitors: MonitorConnections,
        tell_parent: Callable[..., None],
        selector: selectors.BaseSelector,
    ) -> None:
        self._name = name
        self._runs = runs
        self._units = units
        self._monitors = monitors
        self._tell_parent = tell_parent
        self._selector = selector
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self.forks: ForkServers | None = None

    def start_all(self, orders: list[protocol.Message]) -> None:
        """Starts what these orders ask for; the claims of one runs' directory are made durable by one sync."""
        claimed = [order for order in orders if self._guarded(self._claim, order)]
        for runs_directory in {Path(order["directory"]).parent for order in claimed}:
            these = [order for order in claimed if Path(order["directory"]).parent == runs_directory]
            try:
                run_directory.make_durable(runs_directory)
            except OSError as error:
                for order in these:
                    self.fail(order, error)
                continue
            for order in these:
                self._guarded(self._start, order)

    def fail(self, order: protocol.Message, error: Exception) -> None:
        """Reports that no program came of an order: later, for want of room, or for good, with the exit written."""
        if order["run"] in self._runs.by_id:
            return  # it runs; only its claim could not be completed
        directory = Path(order["directory"])
        self._tell_parent("failed")
        is_refused = isinstance(error, NotExecutedError)
        if not is_refused and isinstance(error, OSError) and error.errno in NO_ROOM and _is_withdrawn(directory):
            self._monitors.send(protocol.line("later", run=order["run"], error=str(error)))
            return
        errno = (error.errno or 0) if is_refused and isinstance(error, OSError) else 0
        fields = {"run": order["run"], "errno": errno, "error": str(error), "end_ms": now_ms()}
        try:
            run_directory.note_exit(directory, fields)
        except OSError:  # a claim without a program: the monitor that finds it starts the run again
            report()
        self._monitors.send(protocol.line("failed", **fields))

    def close(self) -> None:
        """Ends the fork servers; what they have made runs on."""
        if self.forks is not None:
            self.forks.close()
        os.close(self._null)

    def _guarded(self, act: Callable[[protocol.Message], bool], order: protocol.Message) -> bool:
        """Returns whether it could be done; an error of one run stops no other."""
        try:
            return act(order)
        except OSError as error:
            self.fail(order, error)
        except Exception as error:
            report()
            self.fail(order, error)
        return False

    def _claim(self, order: protocol.Message) -> bool:
        if order.get("user") and not order["may_change_users"]:
            raise OSError(
                "a monitor that starts a program as another user must itself have the right to become that user"
            )
        try:
            run_directory.make(Path(order["directory"]), self._name, marks=order.get("launcher") != protocol.SYSTEMD)
        except FileExistsError:
            self._monitors.send(protocol.line("taken", run=order["run"]))
            return False
        return True

    def _start(self, order: protocol.Message) -> bool:
        if order.get("launcher") == protocol.SYSTEMD:
            self._runs.by_id[order["run"]] = self._units().start(order)
            return True
        may_fork = bool(order.get("fork")) and not order.get("user")
        if not (may_fork and self._forks(order)):
            run = ProgramProcess(order)
            self._tell_parent("starts", **run.known)
            run.start(self._null)
            self._began(run)
            self._runs.lease(order)
        if may_fork and order.get("interpreter"):
            self.keep_interpreter(order)
        return True

    def _forks(self, order: protocol.Message) -> bool:
        """Asks a fork server for the process of a run. Returns False where none is ready: nobody waits for one."""
        server = self.forks.ready(order) if self.forks is not None else None
        if server is None or not os.access(order["working_directory"], os.X_OK):
            return False
        from trigmon.keeper.fork_server import Fork

        fork = Fork(order)
        fork.start(self._null)
        self._runs.by_id[fork.run_id] = fork  # before its process is asked for: that may fail at once
        server.start(fork)
        return True

    def _began(self, run: ProgramProcess) -> None:
        """Reports a run that has a process to the parent, to the monitors and in the claim."""
        self._runs.add_process(run)
        self._tell_parent("known", **run.known)
        self._monitors.send(protocol.line("started", run=run.run_id, pid=run.pid, start_ms=run.start_ms))
        try:
            argv = run.order["argv"]
            run_directory.note_start(
                run.directory, run.pid, run.start_ms, argv, ticks=run.ticks, is_forked=run.is_forked
            )
        except OSError:  # it runs, and the next keeper knows; the claim is read only after two kills
            report()

    # -- the fork servers (see trigmon.keeper.fork_server.ForkEvents) -----------------------------------------

    def warm(self, order: protocol.Message) -> None:
        """Keeps a fork server for what the order says: programs of a kind, or Spark's jobs."""
        if order.get("interpreter"):
            self.keep_interpreter(order)
        else:
            self._fork_servers().warm(order["argv"], order["environment"])

    def cool(self) -> None:
        """Ends the fork server of Spark's jobs; what it has made runs on."""
        if self.forks is not None:
            self.forks.cool()

    def keep_interpreter(self, order: protocol.Message) -> None:
        """Keeps the warm interpreter of such runs; an order that cannot be read is reported, and harms no run."""
        try:
            self._fork_servers().keep(order)
        except (KeyError, TypeError, ValueError):
            report()

    def _fork_servers(self) -> ForkServers:
        """Returns the fork servers. Most keepers have none, and do not import what starts them."""
        if self.forks is None:
            from trigmon.keeper.fork_servers import ForkServers

            self.forks = ForkServers(self, self._selector)
        return self.forks

    def forks_are_ready(self, pid: int) -> None:
        """Reports that the fork server, which has this process id, is ready."""
        self._monitors.send(protocol.line("warm", pid=pid))

    def fork_starts(self, run: Fork) -> None:
        """Tells the parent of a process that is about to be made."""
        self._tell_parent("starts", **run.known)

    def fork_started(self, run: Fork) -> None:
        """Reports the process of a fork, before its program begins."""
        self._began(run)

    def fork_failed(self, run: Fork, error: Exception) -> None:
        """Reports that no process came of a fork."""
        self._runs.remove(run.run_id)
        self.fail(run.order, error)


def _is_withdrawn(directory: Path) -> bool:
    """Returns whether nothing of a start is left."""
    return not directory.exists() or run_directory.withdraw(directory)
