"""The runs that a keeper has systemd keep: started as transient units, followed by their signals, found again.

A unit stays until its exit is written in the run's directory: whichever keeper is there then writes it and lets the
unit go. What runs in a unit needs no keeper; one that dies is started again and finds its runs with systemd.

Standard library only: the keeper imports it.
"""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from trigmon.keeper import dbus, protocol, run_directory, systemd_bus, systemd_unit
from trigmon.keeper.keeper_log import report
from trigmon.keeper.process import STDERR, STDOUT
from trigmon.keeper.run_directory import now_ms
from trigmon.keeper.termination import Run

_TRY_AGAIN_S = 1.0
_UNIT = "org.freedesktop.systemd1.Unit"
_NEVER_SIGNALLED = ("RuntimeMaxUSec", "LimitCPUSoft")


class UnitEvents(Protocol):
    """Who hears what became of a unit's run."""

    def unit_started(self, run: Unit) -> None:
        """Its program runs, or has already ended."""

    def unit_failed(self, run: Unit, why: str) -> None:
        """No program came of it."""

    def unit_ended(self, run: Unit) -> None:
        """Its program has ended."""

    def unit_lost(self, run: Unit) -> None:
        """It is not known to systemd any more, and nobody saw how it ended."""


class Unit(Run):
    """A run that systemd keeps. ``state`` are the properties of its unit as last heard."""

    def __init__(self, units: Units, run_id: str, directory: Path, grace_s: float) -> None:
        super().__init__(run_id, directory, grace_s=grace_s)  # the time limit is systemd's to keep
        self.name = systemd_unit.name_of(run_id)
        self.path = systemd_unit.object_path(self.name)
        self.state: systemd_unit.State = {}
        self.argv: list[str] = []
        self.is_started = False
        self._units = units

    def signal(self, number: signal.Signals) -> None:
        """To all of its control group."""
        self._units.tell("KillUnit", "ssi", self.name, "all", int(number))

    def end(self, why: str, grace_s: float) -> None:
        """Likewise, and the next keeper is to know."""
        if not self.why:
            with suppress(OSError):
                run_directory.note_end(self.directory, why, grace_s)
        super().end(why, grace_s)

    def ended(self) -> run_directory.Fields:
        """What is to be known of its end."""
        fields = systemd_unit.exit_fields(self.state)
        fields["end_ms"] = fields["end_ms"] or now_ms()
        return {"run": self.run_id} | fields | {"why": self.why or fields["why"]}


class Units:
    """Those of one keeper, and its connection to systemd, made when it is needed and again when it is lost."""

    def __init__(self, events: UnitEvents, selector: selectors.BaseSelector) -> None:
        self._events = events
        self._selector = selector
        self._manager: systemd_bus.Manager | None = None
        self._runs: dict[str, Unit] = {}
        self._ended: dict[str, Unit] = {}
        # Those that are to go, until they have; and until when systemd's answer to that is waited for.
        self._let_go: dict[str, Unit] = {}
        self._unanswered: dict[str, float] = {}
        self.try_again_at = 0.0
        """When the lost connection is tried again; 0 when none is needed."""

    def start(self, order: protocol.Message) -> Unit:
        """Has a program started; the rest is told. Raises OSError when there is no systemd, ValueError for the order.

        The run is not begun when this raises.
        """
        user = order.get("user") or {}
        if user and systemd_bus.is_the_users_own():
            raise ValueError(f"RUNAS({user['name']}): a user's own systemd starts programs as that user only")
        if not user and systemd_bus.gives_more_than_we_have():
            raise ValueError("a program without RUNAS would be root with all rights, which this monitor has not itself")
        said = systemd_unit.properties(order)
        directory = Path(order["directory"])
        for name in (STDOUT, STDERR):
            (directory / name).touch(mode=0o600, exist_ok=False)  # ours, though systemd may open them as root
            if user:  # its /dev/stdout is opened anew, and the monitor still reads both
                (directory / name).chmod(0o640)
                os.chown(directory / name, user["uid"], -1)
        variables = directory / systemd_unit.ENVIRONMENT
        variables.touch(mode=0o600)
        variables.write_bytes(systemd_unit.environment_file(order["environment"]))
        run = Unit(self, str(order["run"]), directory, float(order["grace_s"]))
        run.argv = order["argv"]
        run.state = {name: value for name, (_, value) in said if name in _NEVER_SIGNALLED}

        def answered(answer: dbus.Message) -> None:
            if answer.kind == dbus.ERROR:
                self._fail(run, f"systemd: {systemd_bus.refusal(answer)}")

        self._connected().call(answered, "StartTransientUnit", "ssa(sv)a(sa(sv))", run.name, "fail", said, [])
        self._runs[run.path] = run
        return run

    def adopt(self, runs_directory: Path, keeper: str) -> list[Unit]:
        """The runs of the keeper of this name that systemd has, with what they were told. Raises OSError."""
        manager = self._connected()
        (listed,) = manager.ask("ListUnitsByPatterns", "asas", [], [systemd_unit.PATTERN])
        adopted = []
        for name, *_ in listed:
            directory = runs_directory / systemd_unit.run_of(name)
            claim = run_directory.read(directory) if systemd_unit.run_of(name) else None
            if not claim or claim.get("keeper") != keeper:
                continue  # another monitor's, or another queue manager's
            run = Unit(self, systemd_unit.run_of(name), directory, 0.0)
            self._runs[run.path] = run
            run.state = manager.ask_for_all(run.path)
            run.grace_s = systemd_unit.grace_s(run.state)
            run.argv = systemd_unit.argv(run.state)
            run.is_started = bool(claim.get("pid"))
            if claim.get("ends"):
                run.why, run.grace_s = claim["ends"], claim["grace_s"]
                run.due_at = time.monotonic() + run.grace_s
            adopted.append(run)
        return adopted

    def look_at_all(self) -> None:
        """Tells of what has happened to those that were adopted."""
        for run in list(self._runs.values()):
            self._look(run)

    def let_go(self, run_id: str) -> None:
        """Its exit is written: the unit goes, and what the program left behind is ended."""
        run = self._ended.pop(run_id, None)
        if run is None:
            return
        with suppress(OSError):
            (run.directory / systemd_unit.ENVIRONMENT).unlink(missing_ok=True)
        self._let_go[run.path] = run
        self._stop(run)

    @property
    def unheard_until(self) -> float:
        """Until when to wait for systemd to take note of units that are to go, 0 when it has, or does not answer.

        What it has not read from a connection that ends it may never read.
        """
        until = max(self._unanswered.values(), default=0.0)
        return until if until > time.monotonic() else 0.0

    def tell(
        self, member: str, signature: str, *body: Any, then: Callable[[dbus.Message], None] = lambda _: None
    ) -> None:
        """Calls systemd where the answer matters to nobody: what it has no more unit for is done."""
        if self._manager is not None:
            try:
                self._manager.call(then, member, signature, *body)
            except OSError:
                self._lose()

    def _stop(self, run: Unit) -> None:
        def answered(answer: dbus.Message) -> None:
            self._unanswered.pop(run.path, None)
            if answer.kind == dbus.ERROR:  # it is gone
                self._let_go.pop(run.path, None)

        if self._manager is not None:
            self._unanswered[run.path] = time.monotonic() + systemd_bus.PATIENCE_S
        if run.state.get("ActiveState") == "failed":
            self.tell("ResetFailedUnit", "s", run.name, then=answered)
        else:
            self.tell("StopUnit", "ss", run.name, "replace", then=answered)

    def keep_up(self, now: float) -> None:
        """Connects again when that is due; who has nothing there waits for the next start."""
        if not (self._runs or self._ended or self._let_go):
            self.try_again_at = 0.0
        elif self._manager is None and now >= self.try_again_at:
            try:
                self._look_again()
            except OSError:
                report()
                self._lose()

    # -- what systemd says ----------------------------------------------------------------------------------

    def _hear(self) -> None:
        assert self._manager is not None
        try:
            for said in self._manager.hear():
                self._heard(said)
        except OSError:
            report()
            self._lose()

    def _heard(self, said: dbus.Message) -> None:
        if said.member == "PropertiesChanged":
            self._changed(said.path, *said.body[:2])
        elif said.member == "JobRemoved":
            run = self._runs.get(systemd_unit.object_path(said.body[2]))
            if run is not None and not run.is_started:
                self._start_is_over(run)
        elif said.member == "UnitRemoved":
            self._let_go.pop(said.body[1], None)
            self._unanswered.pop(said.body[1], None)
            if (run := self._runs.get(said.body[1])) is not None:
                self._ask_for(run)  # a reload of systemd's removes all units and has them again

    def _changed(self, path: str, interface: str, properties: systemd_unit.State) -> None:
        if path in self._let_go and properties.get("ActiveState") == "failed":  # what it left behind had to be killed
            self._let_go[path].state |= properties
            self._stop(self._let_go[path])
        elif run := self._runs.get(path):
            run.state |= properties
            if interface == _UNIT and run.is_started:  # the last of the signals that belong together
                self._look(run)

    def _start_is_over(self, run: Unit) -> None:
        if run.state.get("ActiveState") != "active" and (why := systemd_unit.why_not_executed(run.state)):
            self._fail(run, why)
            return
        self._begun(run)
        self._look(run)

    def _begun(self, run: Unit) -> None:
        run.is_started = True
        run.pid, run.start_ms = int(run.state.get("ExecMainPID", 0)), systemd_unit.start_ms(run.state)
        with suppress(OSError):
            (run.directory / systemd_unit.ENVIRONMENT).unlink(missing_ok=True)
        self._events.unit_started(run)
        if run.why:  # it was to end before it had begun
            run.signal(signal.SIGTERM)

    def _look(self, run: Unit) -> None:
        if run.state.get("LoadState") == "not-found":
            self._gone(run)
        elif not run.is_started and run.state.get("ActiveState") != "activating":
            self._start_is_over(run)
            return
        if run.is_started and run.path in self._runs and systemd_unit.has_ended(run.state):
            del self._runs[run.path]
            self._ended[run.run_id] = run
            self._events.unit_ended(run)

    def _ask_for(self, run: Unit) -> None:
        def answered(answer: dbus.Message) -> None:
            if answer.kind == dbus.RETURN and run.path in self._runs:
                run.state |= answer.body[0]
                self._look(run)

        if self._manager is not None:  # lost by what was heard just before: all are looked at when it is back
            self._manager.call_for_all(answered, run.path)

    def _gone(self, run: Unit) -> None:
        self._runs.pop(run.path, None)
        (self._events.unit_ended if systemd_unit.has_ended(run.state) else self._events.unit_lost)(run)

    def _fail(self, run: Unit, why: str) -> None:
        del self._runs[run.path]
        self._ended[run.run_id] = run
        self.let_go(run.run_id)
        self._events.unit_failed(run, why)

    # -- the connection -------------------------------------------------------------------------------------

    def _connected(self) -> systemd_bus.Manager:
        if self._manager is None:
            self._manager = systemd_bus.Manager()
            self._selector.register(self._manager, selectors.EVENT_READ, self._hear)
            self.try_again_at = 0.0
        return self._manager

    def close(self) -> None:
        """Lets go of the connection."""
        self._lose()

    def _lose(self) -> None:
        if self._manager is not None:
            self._selector.unregister(self._manager)
            self._manager.close()
            self._manager = None
        self.try_again_at = time.monotonic() + _TRY_AGAIN_S

    def _look_again(self) -> None:
        """What happened while nobody listened."""
        manager = self._connected()
        for run in list(self._runs.values()):
            run.state = manager.ask_for_all(run.path)
            self._look(run)
        for run in list(self._let_go.values()):
            self._stop(run)
