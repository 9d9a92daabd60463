"""The runs of a keeper that are systemd's transient units: their start, their state by D-Bus signals, their removal.

A unit stays until its exit is written in the run's directory: the keeper that is there then writes it and removes the
unit. What runs in a unit needs no keeper; the keeper that follows one that died finds its runs with systemd.

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
from trigmon.keeper.run_directory import STDERR, STDOUT, now_ms
from trigmon.keeper.termination import Run

_TRY_AGAIN_S = 1.0
_UNIT = "org.freedesktop.systemd1.Unit"
_NEVER_SIGNALLED = ("RuntimeMaxUSec", "LimitCPUSoft")


class UnitEvents(Protocol):
    """Receives what became of the runs that are units."""

    def unit_started(self, run: Unit) -> None:
        """Reports a run whose program runs, or has already ended."""

    def unit_failed(self, run: Unit, why: str) -> None:
        """Reports a run whose program could not be started, with the reason."""

    def unit_ended(self, run: Unit) -> None:
        """Reports a run whose program has ended."""

    def unit_lost(self, run: Unit) -> None:
        """Reports a run that systemd does not know any more: its exit is unknown."""


class Unit(Run):
    """A run that systemd keeps. ``state`` are the properties of its unit as last received."""

    def __init__(self, units: Units, run_id: str, directory: Path, grace_s: float) -> None:
        super().__init__(run_id, directory, grace_s=grace_s)  # the time limit is systemd's to keep
        self.name = systemd_unit.name_of(run_id)
        self.path = systemd_unit.object_path(self.name)
        self.state: systemd_unit.State = {}
        self.argv: list[str] = []
        self.is_started = False
        self._units = units

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to all processes of its control group."""
        self._units.send("KillUnit", "ssi", self.name, "all", int(number))

    def end(self, why: str, grace_s: float) -> None:
        """Ends it, and records that in the claim for the next keeper."""
        if not self.why:
            with suppress(OSError):
                run_directory.note_end(self.directory, why, grace_s)
        super().end(why, grace_s)

    def ended(self) -> run_directory.Fields:
        """Returns the fields of its exit."""
        fields = systemd_unit.exit_fields(self.state)
        fields["end_ms"] = fields["end_ms"] or now_ms()
        return {"run": self.run_id} | fields | {"why": self.why or fields["why"]}


def _is_failed(run: Unit) -> bool:
    return run.state.get("ActiveState") == "failed"


class Units:
    """The units of one keeper, and its connection to systemd, made when it is needed and again when it is lost."""

    def __init__(self, events: UnitEvents, selector: selectors.BaseSelector) -> None:
        self._events = events
        self._selector = selector
        self._manager: systemd_bus.Manager | None = None
        self._runs: dict[str, Unit] = {}
        self._ended: dict[str, Unit] = {}
        # Units that are being removed; and until when systemd's answer to that is waited for.
        self._removing: dict[str, Unit] = {}
        self._unanswered: dict[str, float] = {}
        self.try_again_at = 0.0
        """When the lost connection is tried again; 0 when none is needed."""

    def start(self, order: protocol.Message) -> Unit:
        """Asks systemd to start a unit; the events report the rest. Raises OSError without systemd, ValueError.

        The run is not begun when this raises.
        """
        user = order.get("user") or {}
        if user and systemd_bus.is_the_users_own():
            raise ValueError(f"RUNAS({user['name']}): a user's own systemd starts programs as that user only")
        if not user and systemd_bus.gives_more_than_we_have():
            raise ValueError(
                "a program without RUNAS would be root with all rights, which this monitor does not have itself"
            )
        properties = systemd_unit.properties(order)
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
        run.state = {name: value for name, (_, value) in properties if name in _NEVER_SIGNALLED}

        def answered(answer: dbus.Message) -> None:
            if answer.kind == dbus.ERROR:
                self._fail(run, f"systemd: {systemd_bus.refusal(answer)}")

        self._connected().call(answered, "StartTransientUnit", "ssa(sv)a(sa(sv))", run.name, "fail", properties, [])
        self._runs[run.path] = run
        return run

    def adopt(self, runs_directory: Path, keeper: str) -> list[Unit]:
        """Returns the runs of the keeper of this name that systemd has, with their recorded ends. Raises OSError."""
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
        """Reports what has happened to the runs that were adopted."""
        for run in list(self._runs.values()):
            self._look(run)

    def remove(self, run_id: str) -> None:
        """Removes the unit of a run whose exit is written, and ends what the program left behind."""
        run = self._ended.pop(run_id, None)
        if run is None:
            return
        with suppress(OSError):
            (run.directory / systemd_unit.ENVIRONMENT).unlink(missing_ok=True)
        self._removing[run.path] = run
        self._stop(run)

    @property
    def waits_for_answers_until(self) -> float:
        """Until when to wait for systemd to answer for units that are being removed; 0 when it has, or does not answer.

        What systemd has not read from a connection that ends, it may never read.
        """
        until = max(self._unanswered.values(), default=0.0)
        return until if until > time.monotonic() else 0.0

    def send(
        self, member: str, signature: str, *body: Any, then: Callable[[dbus.Message], None] = lambda _: None
    ) -> None:
        """Calls systemd without regard to errors: a unit that is gone needs no call."""
        if self._manager is not None:
            try:
                self._manager.call(then, member, signature, *body)
            except OSError:
                self._lose()

    def _stop(self, run: Unit) -> None:
        """Stops a unit. One that has to kill what was left behind fails by that, and is then reset, or it stays."""

        def reset(answer: dbus.Message) -> None:
            self._unanswered.pop(run.path, None)
            if answer.kind == dbus.ERROR:  # it is gone
                self._removing.pop(run.path, None)

        def begun(answer: dbus.Message) -> None:
            if answer.kind == dbus.ERROR:
                reset(answer)
            elif run.path in self._removing:  # until the job is over, it may still fail
                self._unanswered[run.path] = time.monotonic() + run.grace_s + systemd_bus.PATIENCE_S

        if self._manager is not None:
            self._unanswered[run.path] = time.monotonic() + systemd_bus.PATIENCE_S
        if _is_failed(run):
            self.send("ResetFailedUnit", "s", run.name, then=reset)
        else:
            self.send("StopUnit", "ss", run.name, "replace", then=begun)

    def keep_up(self, now: float) -> None:
        """Connects again when that is due; without units, the next start connects."""
        if not (self._runs or self._ended or self._removing):
            self.try_again_at = 0.0
        elif self._manager is None and now >= self.try_again_at:
            try:
                self._look_again()
            except OSError:
                report()
                self._lose()

    # -- what systemd sends ---------------------------------------------------------------------------------

    def _receive(self) -> None:
        assert self._manager is not None
        try:
            for message in self._manager.receive():
                self._handle(message)
        except OSError:
            report()
            self._lose()

    def _handle(self, message: dbus.Message) -> None:
        if message.member == "PropertiesChanged":
            self._changed(message.path, *message.body[:2])
        elif message.member == "JobRemoved":
            path = systemd_unit.object_path(message.body[2])
            if (run := self._runs.get(path)) is not None and not run.is_started:
                self._start_is_over(run)
            elif (run := self._removing.get(path)) is not None and not _is_failed(run):
                self._unanswered.pop(path, None)
        elif message.member == "UnitRemoved":
            self._removing.pop(message.body[1], None)
            self._unanswered.pop(message.body[1], None)
            if (run := self._runs.get(message.body[1])) is not None:
                self._ask_for(run)  # a reload of systemd's removes all units and has them again

    def _changed(self, path: str, interface: str, properties: systemd_unit.State) -> None:
        if path in self._removing and properties.get("ActiveState") == "failed":  # what it left behind had to be killed
            self._removing[path].state |= properties
            self._stop(self._removing[path])
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

        if self._manager is not None:  # lost just before: all are looked at when it is back
            self._manager.call_for_all(answered, run.path)

    def _gone(self, run: Unit) -> None:
        self._runs.pop(run.path, None)
        (self._events.unit_ended if systemd_unit.has_ended(run.state) else self._events.unit_lost)(run)

    def _fail(self, run: Unit, why: str) -> None:
        del self._runs[run.path]
        self._ended[run.run_id] = run
        self.remove(run.run_id)
        self._events.unit_failed(run, why)

    # -- the connection -------------------------------------------------------------------------------------

    def _connected(self) -> systemd_bus.Manager:
        if self._manager is None:
            self._manager = systemd_bus.Manager()
            self._selector.register(self._manager, selectors.EVENT_READ, self._receive)
            self.try_again_at = 0.0
        return self._manager

    def close(self) -> None:
        """Closes the connection to systemd."""
        self._lose()

    def _lose(self) -> None:
        if self._manager is not None:
            self._selector.unregister(self._manager)
            self._manager.close()
            self._manager = None
        self.try_again_at = time.monotonic() + _TRY_AGAIN_S

    def _look_again(self) -> None:
        """Connects again and reports what happened meanwhile."""
        manager = self._connected()
        for run in list(self._runs.values()):
            run.state = manager.ask_for_all(run.path)
            self._look(run)
        for run in list(self._removing.values()):
            self._stop(run)
