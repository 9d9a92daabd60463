"""Plays scenarios: every step on the stage, every expectation compared with what was seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trigmon.mq import calls, replies
from trigmon.mq.attributes import Attribute
from trigmon.mq.calls import Call
from trigmon.mq.enums import OpenOption
from trigmon.mq.errors import HobjError, MQError, UnknownObjectName
from trigmon.mq.replies import Reply
from trigmon.mqsc.commands import Command
from trigmon.simulate import reservation_verbs
from trigmon.simulate import scenario as act
from trigmon.simulate.expectations import differences
from trigmon.simulate.mapping import shown
from trigmon.simulate.scenario import Scenario, Step
from trigmon.simulate.stage import Available, Stage


@dataclass(frozen=True)
class Played:
    """One step as it went; ``failure`` says what was not as expected."""

    number: int
    line: int
    verb: str
    triggers: tuple[Available, ...] = ()
    failure: str | None = None


@dataclass(frozen=True)
class Result:
    """A scenario as it went. A setup that failed is step 0, and no step follows it."""

    scenario: Scenario
    steps: tuple[Played, ...]

    @property
    def passed(self) -> bool:
        """Whether every expectation held."""
        return all(step.failure is None for step in self.steps)


@dataclass(frozen=True)
class _Handle:
    number: int
    queue: str
    options: int


@dataclass
class _Application:
    """What the play knows of an application: its handles by name, the newest with the highest number and last."""

    handles: dict[str, list[_Handle]] = field(default_factory=dict)

    def find(self, name: str) -> _Handle:
        """Returns the newest handle of this name, else the newest for the queue of this name.

        Raises HobjError (2019).
        """
        named = self.handles.get(name) or [h for hs in self.handles.values() for h in hs if h.queue == name]
        if not named:
            raise HobjError(f"the application has not opened {name}")
        return max(named, key=lambda handle: handle.number)

    def forget(self, closed: _Handle) -> None:
        """Takes a handle out that was closed."""
        for handles in self.handles.values():
            if closed in handles:
                handles.remove(closed)

    def find_for_output(self, name: str) -> int:
        """Returns the newest handle of this name that is open for output, 0 when there is none."""
        usable = [h.number for h in self.handles.get(name, []) if h.options & OpenOption.OUTPUT]
        return usable[-1] if usable else 0


def play(scenario: Scenario, stage: Stage) -> Result:
    """Plays the scenario from its setup to its last step, on a stage that is closed afterwards."""
    try:
        return _Play(scenario, stage).run()
    finally:
        stage.close()


class _Play:
    """One scenario being played."""

    def __init__(self, scenario: Scenario, stage: Stage) -> None:
        self.scenario = scenario
        self.stage = stage
        self.applications: dict[tuple[str, str], _Application] = {}
        self.reservations: dict[str, int] = {}

    def run(self) -> Result:
        """Plays setup and steps. A failed step does not end the play: each expectation is reported."""
        for step in self.scenario.state:
            made = self._play(step)
            if made.failure is not None:
                failed = Played(0, step.line, "setup", failure=f"the state cannot be made: {made.failure}")
                return Result(self.scenario, (failed,))
        try:
            first = self.scenario.q_mgrs[0]
            for q_mgr in self.scenario.q_mgrs:
                of_this = self.scenario.setup if q_mgr == first else map(_without_the_groups, self.scenario.setup)
                self._run_commands(q_mgr, of_this)
        except MQError as error:
            failed = Played(0, self.scenario.setup_line, "setup", failure=f"the setup failed: {error}")
            return Result(self.scenario, (failed,))
        # What the setup's own commands set off is no step's doing.
        self.stage.became_available()
        return Result(self.scenario, tuple(self._play(step) for step in self.scenario.steps))

    def _play(self, step: Step) -> Played:
        reply: Reply | None = None
        refused: MQError | None = None
        found: list[str] = []
        try:
            if isinstance(step.act, act.Check):
                found += self._check(self._where(step), step.act)
            else:
                reply = self._act(step)
        except MQError as error:
            refused = error
        triggers = tuple(self.stage.became_available())
        found += differences(step.expected, reply, refused, triggers)
        return Played(step.number, step.line, step.verb, triggers, "; ".join(found) or None)

    def _act(self, step: Step) -> Reply | None:
        """Performs the action of a step. Raises MQError if it was refused."""
        match step.act:
            case act.Mqsc(commands):
                return self._run_commands(self._where(step), commands)
            case act.Explain(queue, priority):
                return self.stage.command(self._where(step), calls.Explain(q_name=queue, priority=priority))
            case act.Advance(milliseconds):
                self.stage.advance(milliseconds)
            case act.Restart(q_mgr):
                self.stage.restart(q_mgr)
                self._forget(q_mgr)
            case act.Crash(q_mgr):
                self.stage.crash(q_mgr)
                self._forget(q_mgr)
            case act.Kill():
                key = self._key(step)
                self.stage.kill(*key)
                self.applications.pop(key, None)
            case _:
                return self._call(step)
        return None

    # -- what an application does ---------------------------------------------------------------------------

    def _call(self, step: Step) -> Reply:
        """Performs a step of an application and returns what was seen."""
        application = self.applications.setdefault(self._key(step), _Application())
        match step.act:
            case act.Open(queue, options, handle, dynamic_q_name):
                opening = calls.Open(object_name=queue, options=options, dynamic_q_name=dynamic_q_name)
                opened = self._perform(step, opening)
                assert isinstance(opened, replies.Opened)
                application.handles.setdefault(handle, []).append(_Handle(opened.handle, queue, options))
                return opened
            case act.Close(handle, options):
                closing = application.find(handle)
                reply = self._perform(step, calls.Close(handle=closing.number, options=options))
                application.forget(closing)
                return reply
            case act.Disconnect():
                reply = self._perform(step, calls.Disconnect())
                del self.applications[self._key(step)]
                return reply
            case act.Reserve():
                return self._reserve(step, step.act, application.find(step.act.handle).number)
            case act.ReadReserved() | act.Settle() | act.Release() | act.Attempt() | act.Reject():
                return self._of_reservation(step, step.act)
        return self._perform(step, self._as_call(step.act, application))

    def _reserve(self, step: Step, done: act.Reserve, handle: int) -> Reply:
        """Makes a reservation and remembers its number by its consumer."""
        call = calls.Reserve(
            handle=handle,
            consumer=done.consumer,
            max_messages=done.max_messages,
            max_bytes=done.max_bytes,
            whole_groups=done.whole_groups,
            token=done.token,
        )
        while isinstance(reply := self._perform(step, call), replies.Reserved) and reply.more:
            pass
        if isinstance(reply, replies.Reserved):
            self.reservations[done.consumer] = reply.reservation
        return reply

    def _of_reservation(self, step: Step, done: act.OfReservation) -> Reply:
        """Performs a verb on a reservation; what is read comes together in one reply."""
        call = reservation_verbs.as_call(done, self.reservations.get(done.consumer, 0))
        reply = self._perform(step, call)
        while isinstance(reply, replies.WereReserved) and isinstance(call, calls.ReadReserved) and reply.more:
            count = call.ordinal + call.count - reply.ordinal
            call = calls.ReadReserved(reservation=call.reservation, ordinal=reply.ordinal, count=count)
            behind = self._perform(step, call)
            assert isinstance(behind, replies.WereReserved)
            ordinals, messages = [*reply.ordinals, *behind.ordinals], [*reply.messages, *behind.messages]
            reply = replies.WereReserved(ordinals=ordinals, messages=messages, ordinal=behind.ordinal, more=behind.more)
        return reply

    def _perform(self, step: Step, call: Call) -> Reply:
        return self.stage.perform(*self._key(step), call)

    def _key(self, step: Step) -> tuple[str, str]:
        """Returns the queue manager and the connection of a step: those that the step names, else the present ones."""
        there = (q_mgr for q_mgr, name in self.applications if name == step.application)
        return step.q_mgr or next(there, self.scenario.q_mgrs[0]), step.application

    def _where(self, step: Step) -> str:
        """Returns the queue manager that a command or a question goes to."""
        return step.q_mgr or self.scenario.q_mgrs[0]

    def _forget(self, q_mgr: str) -> None:
        """Forgets all connections to a queue manager that has ended."""
        self.applications = {key: each for key, each in self.applications.items() if key[0] != q_mgr}

    def _as_call(self, done: act.Act, application: _Application) -> Call:
        """Makes the call of a verb that changes nothing in what the play knows.

        The stage numbers the unit of work.
        """
        match done:
            case act.Put(queue, handle):
                number = application.find(handle).number if handle else application.find_for_output(queue)
                return calls.Put(
                    handle=number,
                    q_name="" if number else queue,
                    data=done.data,
                    options=done.options,
                    descriptor=done.descriptor,
                    context=application.find(done.context).number if done.context else 0,
                )
            case act.Get():
                return calls.Get(
                    handle=application.find(done.handle).number,
                    options=done.options,
                    wait_interval_ms=done.wait_interval_ms,
                    max_length=done.max_length,
                    match=done.match,
                    **done.matched,
                )
            case act.SetAttributes(handle, attributes):
                return calls.Set(handle=application.find(handle).number, attributes=dict(attributes))
            case act.Commit():
                return calls.Commit(unit=0)
            case act.Backout():
                return calls.Backout(unit=0)
        raise AssertionError(f"{done} is no call of an application's")

    # -- what an operator does ------------------------------------------------------------------------------

    def _run_commands(self, q_mgr: str, commands: Iterable[Command]) -> Reply | None:
        """Runs commands up to the first that fails, whose MQError is raised."""
        reply: Reply | None = None
        for command in commands:
            if command.error is not None:
                raise command.error
            for call in command.calls:
                reply = self.stage.command(q_mgr, call)
                while isinstance(reply, replies.Counted) and reply.more:
                    reply = self.stage.command(q_mgr, call)
        return reply

    def _check(self, q_mgr: str, check: act.Check) -> list[str]:
        """Returns every attribute of a queue that is not as it should be. Raises UnknownObjectName."""
        reply = self.stage.command(q_mgr, calls.Display(object_type="queue", name=check.queue))
        assert isinstance(reply, replies.Listing)
        if not reply.rows:
            raise UnknownObjectName(check.queue)
        differences = (_difference(attribute, wanted, reply.rows[0]) for attribute, wanted in check.wanted)
        return [one for one in differences if one]


def _without_the_groups(command: Command) -> Command:
    """Returns a command of the setup for a further member: what is defined for the group, the first has defined."""
    own = [call for call in command.calls if not (isinstance(call, calls.Define) and is_of_group(call.attributes))]
    return replace(command, calls=tuple(own))


def is_of_group(attributes: Mapping[str, Any]) -> bool:
    """Returns whether a definition is the group's: shared, or to be copied to its members."""
    return str(attributes.get("qsg_disp", "")).upper() in ("SHARED", "GROUP")


def _difference(attribute: Attribute, wanted: Any, row: Mapping[str, Any]) -> str:
    """Returns how an attribute differs from what is wanted, in MQSC's words; nothing when it does not."""
    if attribute.name not in row:
        return f"there is no {attribute.mqsc}, expected {_worded(attribute, wanted)}"
    seen = attribute.read(row[attribute.name], "check")
    holds = (seen > 0) is wanted if isinstance(wanted, bool) else seen == wanted
    return "" if holds else f"{attribute.mqsc} is {_worded(attribute, seen)}, expected {_worded(attribute, wanted)}"


def _worded(attribute: Attribute, value: Any) -> str:
    if isinstance(value, bool):
        return "YES" if value else "NO"
    return shown(value) if attribute.is_text else attribute.write(value)
