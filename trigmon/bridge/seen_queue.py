"""What could be seen of a queue of a queue manager elsewhere, as the values that the trigger conditions judge.

A source (MQINQ and PCF, or the text of DISPLAY) says what it saw by the numbers or words of MQ; :func:`seen_queue`
reads them by the table of attributes. What it could not see is kept beside with the reason, and no condition that
rests on it is shown as holding or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final

import msgspec

from trigmon.mq.attributes import ATTRIBUTES, STATUS, LocalQueue, Process, find_attribute
from trigmon.mq.enums import MsgDeliverySequence, ObjectType, QsgDisp, QType, TriggerType
from trigmon.mq.errors import AttrValueError, SelectorError
from trigmon.rules.model.queue_facts import QueueFacts

ZOS: Final = 1
"""MQPL_ZOS: the platform on which condition 5 asks for gets of a queue of normal usage too."""


class Fact(Enum):
    """The kinds of facts that may not be seen, in words for a person."""

    ATTRIBUTES = "the queue's attributes"
    DEPTH = "how many messages wait"
    PRIORITIES = "the priorities of the messages that wait"
    READERS = "how many programs have the queue open for input"
    PROCESS = "the process"
    INITIATION = "the initiation queue"
    MONITOR = "how many programs have the initiation queue open for input"
    INTERVAL = "the queue manager's TRIGINT"
    LAST_TRIGGER = "when the last trigger message was written"
    UNCOMMITTED = "how many messages are not committed"
    HANDLES = "which programs have the queue open"
    GROUP = "the other members of the queue-sharing group"


class OpenHandle(msgspec.Struct, frozen=True):
    """A handle of a queue: the process id of the program, its name, its user, and how it has the queue open.

    Where it came by a channel, the process id is that of the channel's process.
    """

    pid: int
    application: str
    user: str
    for_input: bool
    for_output: bool = False
    channel: str = ""

    def __str__(self) -> str:
        """Returns the handle as a person reads it."""
        ways = [word for word, is_so in (("input", self.for_input), ("output", self.for_output)) if is_so]
        return f"{self.application or 'no name'}, pid {self.pid}, user {self.user or '?'}, for {' and '.join(ways)}"


class NotSeen(msgspec.Struct, frozen=True):
    """Says why an object could not be seen: whether it exists is not known."""

    why: str


class ObjectValues(msgspec.Struct):
    """What a source says of one object: values by IBM's number, long name or MQSC's word."""

    name: str
    values: dict[Any, Any]


class Source(msgspec.Struct):
    """Everything that a source says. An object that does not exist is None; ``handles`` is None where none are known.

    ``queue`` is the local queue itself, behind an alias of the name ``asked``.
    """

    asked: str
    q_mgr_name: str
    queue: ObjectValues
    processes: dict[str, ObjectValues | NotSeen | None] = {}
    initiations: dict[str, ObjectValues | NotSeen | None] = {}
    trigger_interval_ms: int | None = None
    platform: int = 0
    handles: tuple[OpenHandle, ...] = ()
    monitors: tuple[OpenHandle, ...] = ()
    unseen: dict[Fact, str] = {}


class SeenQueue(msgspec.Struct, frozen=True):
    """A queue elsewhere with all that its triggering looks at, as far as it was seen.

    ``processes`` and ``initiations`` hold by name each object that was looked for, None where it does not exist.
    ``trigger_interval_ms`` is 0 where :attr:`unseen` has it.
    """

    asked: str
    q_mgr_name: str
    queue: QueueFacts
    processes: dict[str, Process | NotSeen | None]
    initiations: dict[str, QueueFacts | NotSeen | None]
    trigger_interval_ms: int
    platform: int
    uncommitted: int
    handles: tuple[OpenHandle, ...]
    monitors: tuple[OpenHandle, ...]
    unseen: dict[Fact, str]

    def process(self, name: str) -> Process | NotSeen | None:
        """Returns the process of this name, None where it is not defined or the name is blank."""
        return self.processes.get(name, NotSeen(f"process {name} was not looked for")) if name else None

    def initiation(self, name: str) -> QueueFacts | NotSeen | None:
        """Returns the local queue of this name, None where there is none or the name is blank."""
        return self.initiations.get(name, NotSeen(f"queue {name} was not looked for")) if name else None

    def triggered_at(self, ms: int) -> SeenQueue:
        """Returns the queue with the time at which a trigger message is known to have been written, in ms."""
        return msgspec.structs.replace(self, queue=msgspec.structs.replace(self.queue, trigger_stamp_ms=ms))

    def unseen_for(self, definition: LocalQueue, now: int) -> dict[Fact, str]:
        """Returns what could not be seen and why, for the queue with these attributes, at ``now`` in ms."""
        found = dict(self.unseen)
        depth = self.queue.depth
        first = definition.trigger_type is TriggerType.FIRST
        is_fifo = definition.msg_delivery_sequence is MsgDeliverySequence.FIFO
        if depth and definition.trigger_msg_priority and not is_fifo:
            lowest = definition.trigger_msg_priority
            found[Fact.PRIORITIES] = f"MQ counts no messages by priority, and TRIGMPRI is {lowest}"
        stamp, interval = self.queue.trigger_stamp_ms, self.trigger_interval_ms
        # A later one than the one that is known may have been read by somebody else; an earlier one does not matter.
        is_recent = stamp is not None and now - stamp < interval
        if first and (depth or Fact.DEPTH in found) and (interval or Fact.INTERVAL in found) and not is_recent:
            found[Fact.LAST_TRIGGER] = "MQ does not tell it"
        process, initiation = self.process(definition.process_name), self.initiation(definition.initiation_q_name)
        if isinstance(process, NotSeen):
            found[Fact.PROCESS] = process.why
        if isinstance(initiation, NotSeen):
            found[Fact.INITIATION] = found[Fact.MONITOR] = initiation.why
        return found


def seen_queue(source: Source) -> SeenQueue:
    """Returns the model of a source; a value that cannot be read counts as not seen."""
    unseen = dict(source.unseen)
    status, uncommitted = _status(source.queue.values), source.queue.values.get("uncommitted_msgs")
    definition = _local_queue(source.queue, unseen)
    for fact, name in ((Fact.DEPTH, "current_q_depth"), (Fact.READERS, "open_input_count")):
        if name not in status:
            unseen.setdefault(fact, "its source does not say it")
    if not isinstance(uncommitted, int):
        unseen.setdefault(Fact.UNCOMMITTED, "its source does not say it")
    if source.trigger_interval_ms is None:
        unseen.setdefault(Fact.INTERVAL, "its source does not say it")
    if _is_shared(source.queue.values):
        unseen[Fact.GROUP] = "the queue is shared, and another member may have it open"
    return SeenQueue(
        asked=source.asked,
        q_mgr_name=source.q_mgr_name,
        queue=_queue_facts(definition, status),
        processes={name: _process(given) for name, given in source.processes.items()},
        initiations={name: _initiation(given) for name, given in source.initiations.items()},
        trigger_interval_ms=source.trigger_interval_ms or 0,
        platform=source.platform,
        uncommitted=uncommitted if isinstance(uncommitted, int) else 0,
        handles=source.handles,
        monitors=source.monitors,
        unseen=unseen,
    )


_OF_TRIGGERING: Final = (
    *("trigger_control", "trigger_type", "trigger_msg_priority", "trigger_depth", "process_name", "initiation_q_name"),
    *("inhibit_get", "inhibit_put", "usage", "def_priority", "msg_delivery_sequence"),
)
"""The attributes of a queue without which its triggering cannot be judged."""
_NOT_TAKEN: Final = ("qsg_disp", "definition_type")


def _local_queue(given: ObjectValues, unseen: dict[Fact, str]) -> LocalQueue:
    values, wrong = _values(ObjectType.QLOCAL, given.values)
    missing = [ATTRIBUTES[ObjectType.QLOCAL][name].mqsc for name in _OF_TRIGGERING if name not in values]
    if missing:
        unseen.setdefault(Fact.ATTRIBUTES, wrong or f"{' '.join(missing)} not shown")
    kept = {name: value for name, value in values.items() if name not in _NOT_TAKEN}
    return LocalQueue(name=given.name, **kept)


def _queue_facts(definition: LocalQueue, status: Mapping[str, int]) -> QueueFacts:
    depths = [0] * 10
    # MQ tells no priorities. Where they matter, unseen_for says so; a FIFO queue counts all at DEFPRTY.
    depths[definition.def_priority] = status.get("current_q_depth", 0)
    return QueueFacts(
        definition,
        tuple(depths),
        open_input_count=status.get("open_input_count", 0),
        open_output_count=status.get("open_output_count", 0),
    )


def _process(given: ObjectValues | NotSeen | None) -> Process | NotSeen | None:
    if not isinstance(given, ObjectValues):
        return given
    return Process(name=given.name, **_values(ObjectType.PROCESS, given.values)[0])


def _initiation(given: ObjectValues | NotSeen | None) -> QueueFacts | NotSeen | None:
    if not isinstance(given, ObjectValues):
        return given
    if _number(given.values, "q_type", QType.LOCAL) != QType.LOCAL:
        return None
    wanting: dict[Fact, str] = {}
    values, wrong = _values(ObjectType.QLOCAL, given.values)
    for name in ("inhibit_get", "inhibit_put", "usage"):
        if name not in values:
            wanting[Fact.ATTRIBUTES] = wrong or f"queue {given.name}: {name} not shown"
    if wanting:
        return NotSeen(wanting[Fact.ATTRIBUTES])
    kept = {name: value for name, value in values.items() if name not in _NOT_TAKEN}
    return _queue_facts(LocalQueue(name=given.name, **kept), _status(given.values))


def _values(which: ObjectType, given: Mapping[int | str, Any]) -> tuple[dict[str, Any], str]:
    """Returns the values by long name that the table has and can read, and what is wrong with the last other one."""
    values: dict[str, Any] = {}
    wrong = ""
    for key, value in given.items():
        try:
            attribute = find_attribute(which, key)
            if not attribute.ours:
                values[attribute.name] = attribute.read(value, which.name)
        except AttrValueError as error:
            wrong = error.about
        except SelectorError:
            continue
    return values, wrong


def _status(given: Mapping[int | str, Any]) -> dict[str, int]:
    """Returns the counts of a queue by long name."""
    names = ("current_q_depth", "open_input_count", "open_output_count")
    found = {name: _number(given, name, -1) for name in names}
    return {name: count for name, count in found.items() if count >= 0}


def _number(given: Mapping[int | str, Any], name: str, default: int) -> int:
    """Returns a value of the table of status by its long name, its word or its number."""
    attribute = STATUS[name]
    for key in (name, attribute.mqsc, attribute.selector):
        if key and key in given:
            try:
                return int(attribute.read(given[key], name))
            except AttrValueError:
                return default
    return default


def _is_shared(given: Mapping[int | str, Any]) -> bool:
    attribute = ATTRIBUTES[ObjectType.QLOCAL]["qsg_disp"]
    found = next((given[key] for key in ("qsg_disp", attribute.mqsc, attribute.selector) if key in given), None)
    return found in (QsgDisp.SHARED, "SHARED")


def input_handles(handles: Iterable[OpenHandle]) -> list[OpenHandle]:
    """Returns the handles that are open for input."""
    return [handle for handle in handles if handle.for_input]
