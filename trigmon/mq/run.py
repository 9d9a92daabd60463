"""The run record: what is written down of one launch, its states, and how its JSON is read and changed.

In memory a run is a :class:`Run` with typed parts. On the wire, in the stores and in ``trigmon runs show --json`` it is
one flat JSON object, whose fields :class:`RunFields` lists. :func:`read_run` alone makes the one of the other. A field
that this release does not know, or whose value is not of its type, stays in the object as it came: a record that
another release wrote survives a change here.

Times are milliseconds since 1970, 0 until it happened. The monitor writes a field unless its comment names another.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import Any, Final, Generic, TypedDict, TypeVar, Unpack, cast

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import FieldInfo, replace

from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.run_parts import Bridged, SparkJob

RunJson = dict[str, Any]
"""A run as one flat JSON object: what calls, replies and stores carry."""


class RunState(StrEnum):
    """Where a run stands: the text in records, listings and options of commands."""

    HELD = "held"  # waits; why says for what
    DUE = "due"  # about to start
    STARTED = "started"  # has a process
    SERVING = "serving"  # its program has opened its queue
    DRAINED = "drained"  # its program has closed it with nothing left
    EXITED = "exited"  # ended with a status, or by a signal
    FAILED = "failed"  # never became a process
    UNKNOWN = "unknown"  # ended, and nobody could see how
    CANCELLED = "cancelled"  # an operator had it ended; otherwise as exited where it was a process
    JOINED = "joined"  # another run that waited does the same

    def __repr__(self) -> str:
        """Returns the text alone: a log entry shows the fields of a record."""
        return repr(self.value)


WITH_PROGRAM: Final = frozenset({RunState.DUE, RunState.STARTED, RunState.SERVING, RunState.DRAINED})
"""It has a program, or may have one."""
OPEN: Final = frozenset({RunState.HELD}) | WITH_PROGRAM
"""It has not ended."""
_STATES: Final = {state.value: state for state in RunState}


class Ending(StrEnum):
    """How a run ended: the words of metrics, histories, filters and pages."""

    OK = "ok"  # with status 0
    FAILED = "failed"  # with another status, or by a signal
    COULD_NOT_START = "could_not_start"  # it never became a process
    UNKNOWN = "unknown"  # nobody saw its end
    STOPPED = "stopped"  # its monitor's stop ended it: that says nothing of the program
    CANCELLED = "cancelled"  # an operator had it ended
    JOINED = "joined"  # another run that waited did its work


WENT_WRONG: Final = frozenset({Ending.FAILED, Ending.COULD_NOT_START, Ending.UNKNOWN})
"""The endings that somebody should look at; a page counts them together as bad."""
_ENDINGS: Final[dict[str, Ending]] = {
    RunState.FAILED: Ending.COULD_NOT_START,
    RunState.UNKNOWN: Ending.UNKNOWN,
    RunState.CANCELLED: Ending.CANCELLED,
    RunState.JOINED: Ending.JOINED,
}


def ending_of(state: str, exit_status: int | None, was_stopped: bool) -> Ending:
    """Returns how a run of this state ended; of a state that this release does not know that is unknown."""
    if state != RunState.EXITED:
        return _ENDINGS.get(state, Ending.UNKNOWN)
    if exit_status == 0:
        return Ending.OK
    return Ending.STOPPED if was_stopped else Ending.FAILED


class Origin(msgspec.Struct, frozen=True, gc=False):
    """Why a run is there. Written when its trigger message is taken."""

    initiation_q: str = ""  # the initiation queue its trigger message came from
    occasion: str = ""  # the row of the law that fired; "" if the trigger message does not tell
    # The queue manager: what held when the queue last fired on this occasion, a line a condition; empty if not known.
    verdict: tuple[str, ...] = ()
    # The queue manager: the process definition as it was, as far as it differs from the defaults; None where there was
    # none, unset in records of releases that did not write it.
    process: dict[str, Any] | UnsetType | None = UNSET
    recorded_ms: int = 0  # when the trigger message was taken
    triggered_ms: int = 0  # when the queue manager wrote it; 0 where a program did
    traceparent: str = ""  # the span of the put that fired, by W3C Trace Context; blank where it had none
    repeats: str = ""  # the run whose trigger message was put once more for this one
    attempt: int = 1  # which try of the same trigger message this is (queue manager, where it is a further one)
    retries: str = ""  # the queue manager: the run before it in the row of tries
    joins: str = ""  # the queue manager: the run that does the work of a joined one
    schedule: str = ""  # the schedule that started it; "" for any other occasion
    moment_ms: int = 0  # the moment of that schedule, by the wall clock


class Program(msgspec.Struct, frozen=True, gc=False):
    """What was started, where and by which monitor. Written when it is started, but for monitor and host."""

    monitor: str = ""  # the id of the monitor's data directory, its initiation queue, its number among those there
    host: str = ""  # the name of the host where the trigger message was taken
    argv: tuple[str, ...] = ()  # what was executed
    directory: str = ""  # where stdout and stderr lie, on the monitor's host
    user: str = ""  # as whom it was executed
    pid: int = 0  # of the program, which leads its own process group
    start_ms: int = 0  # when it was started


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """How a run ended. Written at its end."""

    end_ms: int = 0  # when it ended; 0 also where nobody knows that
    exit_status: int | None = None  # 0 to 255; None until ended, and when a signal ended it
    signal: int | None = None  # the number of the signal that ended it
    stderr_tail: str = ""  # the end of its stderr, 8 KiB at most; for Spark, half of it is stdout's
    was_stopped: bool = False  # its monitor's stop, a keeper's or a person ended it: that says nothing of the program


class Cancellation(msgspec.Struct, frozen=True, gc=False):
    """Who asked for a run's end. The queue manager writes it then, and it stays."""

    cancelled_by: str = ""  # the user
    cancelled_ms: int = 0  # when
    cancel_reason: str = ""  # the reason given


class Work(msgspec.Struct, frozen=True, gc=False):
    """What a program has done on the queue it was started for. The queue manager writes it as the state changes."""

    first_open_ms: int = 0  # when it first opened the queue for input
    first_get_ms: int = 0  # when it first got a message
    taken: int = 0  # messages it got
    committed: int = 0  # of these, those whose unit of work was committed
    backed_out: int = 0  # of these, those whose unit of work was backed out
    put_aside: int = 0  # messages that were moved out of its way as poison
    batches: int = 0  # reservations that it settled to their end, as a Spark job does
    settled_ms: int = 0  # when the last of them was settled


class RunFields(TypedDict, total=False):
    """The fields of a run's JSON object, any number of them: a change names those that it overwrites."""

    run_id: str
    state: RunState
    q_name: str
    process_name: str
    trigger_data: str
    appl_type: int
    appl_id: str
    env_data: str
    user_data: str
    why: str
    initiation_q: str
    occasion: str
    verdict: list[str]
    process: dict[str, Any] | None
    recorded_ms: int
    triggered_ms: int
    traceparent: str
    repeats: str
    attempt: int
    retries: str
    joins: str
    schedule: str
    moment_ms: int
    bridge: str
    remote_q_mgr: str
    remote_initiation_q: str
    remote_msg_id: str
    bridged_by: str
    remote_before: dict[str, Any] | None
    remote_after: dict[str, Any] | None
    monitor: str
    host: str
    argv: list[str]
    directory: str
    user: str
    pid: int
    start_ms: int
    end_ms: int
    exit_status: int | None
    signal: int | None
    stderr_tail: str
    was_stopped: bool
    cancelled_by: str
    cancelled_ms: int
    cancel_reason: str
    application_id: str
    driver_id: str
    ui: str
    progress: dict[str, Any] | None
    application_ms: int
    first_rows_ms: int
    first_open_ms: int
    first_get_ms: int
    taken: int
    committed: int
    backed_out: int
    put_aside: int
    batches: int
    settled_ms: int


_Part = TypeVar("_Part", bound=msgspec.Struct)


class _Read(Generic[_Part]):
    """A part of a run, read from its JSON object when it is first asked for.

    functools.cached_property of Python 3.11 takes a lock each time, which costs as much as the reading.
    """

    def __init__(self, kind: type[_Part]) -> None:
        self._kind = kind
        self._names = frozenset(kind.__struct_fields__)
        self._default = _part({}, kind)

    def __set_name__(self, owner: type[Run], name: str) -> None:
        self._name = name

    def __get__(self, run: Run, owner: type[Run]) -> _Part:
        # A part that no field is written of is the same for every run.
        part = self._default if self._names.isdisjoint(run.json) else _part(run.json, self._kind)
        run.__dict__[self._name] = part
        return part


def _part(json: RunJson, kind: type[_Part]) -> _Part:
    try:
        return msgspec.convert(json, kind)
    except msgspec.ValidationError:
        known = {name: value for name, value in json.items() if name in _fields(kind) and _fits(kind, name, value)}
        required = {name: "" for name, field in _fields(kind).items() if field.required}
        return msgspec.convert(required | known, kind)


@cache
def _fields(kind: type[msgspec.Struct]) -> dict[str, FieldInfo]:
    return {field.name: field for field in msgspec.structs.fields(kind)}


def _fits(kind: type[msgspec.Struct], name: str, value: object) -> bool:
    try:
        msgspec.convert(value, _fields(kind)[name].type)
    except msgspec.ValidationError:
        return False
    return True


class Run(msgspec.Struct, frozen=True, dict=True):
    """One launch, from its trigger message to its end.

    A part is read from the JSON object when it is first asked for: a listing of runs needs none of them.
    """

    run_id: str  # 16 hexadecimal digits, ascending by the time they were made; the record's key
    # The monitor, and the queue manager where it decides. A text that is no RunState is an end; "" is none.
    state: RunState | str
    json: RunJson  # the JSON object it was read from, with the fields that this release does not know

    trigger = _Read(TriggerMessage)  # the fields of its trigger message
    origin = _Read(Origin)
    bridged = _Read(Bridged)
    program = _Read(Program)
    outcome = _Read(Outcome)
    cancellation = _Read(Cancellation)
    spark = _Read(SparkJob)
    work = _Read(Work)

    @property
    def why(self) -> str:
        """For a person: why it is held, failed or unknown, or how it ended."""
        why = self.json.get("why")
        return why if isinstance(why, str) else ""

    @property
    def program_trigger(self) -> TriggerMessage:
        """The trigger message as the program gets it: a queue elsewhere is ``Q@QMGR`` in the record alone."""
        trigger = self.trigger
        return replace(trigger, q_name=trigger.q_name.partition("@")[0]) if self.bridged.remote_q_mgr else trigger

    @property
    def line(self) -> tuple[str, str, str]:
        """The line a run waits in: its initiation queue, its slot, its queue."""
        return self.origin.initiation_q, self.slot, self.trigger.q_name

    @property
    def slot(self) -> str:
        """What instances are counted by: the process, or the program where a trigger message names no process."""
        return self.trigger.process_name or self.trigger.appl_id

    @property
    def has_program(self) -> bool:
        """Whether it has a program, or may have one."""
        return self.state in WITH_PROGRAM

    @property
    def is_unstartable(self) -> bool:
        """Whether it never became a process."""
        return self.state == RunState.FAILED

    @property
    def is_held(self) -> bool:
        """Whether it waits."""
        return self.state == RunState.HELD

    @property
    def is_ended(self) -> bool:
        """Whether it is over; a record without a state is not."""
        return bool(self.state) and self.state not in OPEN

    @property
    def ending(self) -> Ending | None:
        """How it ended; None while it has not."""
        return ending_of(self.state, self.outcome.exit_status, self.outcome.was_stopped) if self.is_ended else None

    @property
    def left(self) -> int | None:
        """How many messages are on its queue, reserved ones among them: in a listing, of a run with a program alone."""
        left = self.json.get("left")
        return left if isinstance(left, int) else None

    @property
    def rows_per_s(self) -> float | None:
        """Messages a second from its first to the last batch that it settled; None before that."""
        work = self.work
        return work.committed * 1000 / max(work.settled_ms - work.first_get_ms, 1) if work.batches else None

    @property
    def is_being_cancelled(self) -> bool:
        """Whether its monitor is still to end it."""
        return self.has_program and bool(self.cancellation.cancelled_by)

    def changed(self, **fields: Unpack[RunFields]) -> Run:
        """Returns the run with these fields overwritten."""
        return self.overwritten(cast("RunJson", fields))

    def overwritten(self, fields: RunJson) -> Run:
        """Returns the run with the fields of a JSON object that a monitor has sent."""
        after = read_run(self.json | fields)
        # What was read of this run and the change does not touch need not be read again.
        for name, part in self.__dict__.items():
            if fields.keys().isdisjoint(part.__struct_fields__):
                after.__dict__[name] = part
        return after

    def only(self, names: tuple[str, ...]) -> Run:
        """Returns a run with these fields of this one, as far as it has them."""
        return read_run({name: self.json[name] for name in names if name in self.json})


def new_run(**fields: Unpack[RunFields]) -> Run:
    """Returns a run with these fields and no others."""
    return read_run(cast("RunJson", fields))


def read_run(json: RunJson) -> Run:
    """Returns the run of a JSON object, which is not changed.

    A field that is missing, or of another type, has its default.
    """
    state = json.get("state")
    if isinstance(state, RunState):
        json = {**json, "state": state.value}  # plain JSON: what another process would read
    run_id = json.get("run_id")
    known = _STATES.get(state, state) if isinstance(state, str) else ""
    return Run(run_id if isinstance(run_id, str) else "", known, json)


def decode_run(text: str | bytes) -> Run:
    """Returns the run of a stored record."""
    return read_run(msgspec.json.decode(text))


def encode_run(run: Run) -> str:
    """Returns the record as it is stored."""
    return msgspec.json.encode(run.json).decode()


def whole_trigger(json: RunJson) -> TriggerMessage | None:
    """Returns the trigger message that a record was written for; None where it does not say every field of one."""
    try:
        return msgspec.convert({name: json.get(name) for name in TriggerMessage.__struct_fields__}, TriggerMessage)
    except msgspec.ValidationError:
        return None


NO_RUN: Final = read_run({})
"""A run of which nothing is known."""
