"""What becomes of a trigger message: start it, hold it, or dead-letter it with IBM's feedback code. Pure.

A trigger message that the queue manager wrote says what to start, in the values that were in force when it was
written; the process definition of today adds only what it has no field for (how many, which directory, Spark's
settings). Anybody else who puts a trigger message names a process and no more: what runs is what an administrator
defined under that name. The queue manager alone says ``ApplType.QMGR``: it overwrites that field in a client's puts,
and in a context that a client passes on.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import msgspec
from msgspec.structs import replace

from trigmon.launch.port import Order
from trigmon.launch.words import control_character
from trigmon.mq.attributes import ATTRIBUTES, Process
from trigmon.mq.descriptors import FORMAT_TRIGGER, MessageDescriptor, TriggerMessage, unpack_tm
from trigmon.mq.enums import ApplType, Feedback, MsgType, ObjectType
from trigmon.mq.errors import TmError
from trigmon.mq.names import is_object_name

# What only a definition can say: all that Process has of our own.
_ADDED = tuple(name for name, attribute in ATTRIBUTES[ObjectType.PROCESS].items() if attribute.ours)


class Start(msgspec.Struct, frozen=True):
    """Start it now."""


class Hold(msgspec.Struct, frozen=True):
    """Write the run down, and start it when one of those before it has ended."""

    why: str


class DeadLetter(msgspec.Struct, frozen=True):
    """Put the trigger message on the dead-letter queue with this feedback code."""

    reason: Feedback
    why: str


Verdict = Start | Hold | DeadLetter


def read_trigger(descriptor: MessageDescriptor, data: bytes) -> TriggerMessage | DeadLetter:
    """The trigger message in a message from the initiation queue, or 266: it is none."""
    if descriptor.format != FORMAT_TRIGGER:
        said = descriptor.format or "blank"
        return DeadLetter(Feedback.TM_ERROR, f"not a trigger message: its format is {said}, not {FORMAT_TRIGGER}")
    try:
        trigger = unpack_tm(data)
    except TmError as error:
        return DeadLetter(Feedback.TM_ERROR, error.about)
    wrong = control_character(trigger)
    return DeadLetter(Feedback.TM_ERROR, wrong) if wrong else trigger


def is_the_queue_managers(descriptor: MessageDescriptor) -> bool:
    """Whether the queue manager wrote this trigger message.

    A report is the queue manager's as well, but what it carries is the sender's.
    """
    return descriptor.put_appl_type == ApplType.QMGR and descriptor.msg_type == MsgType.DATAGRAM


def believed(
    descriptor: MessageDescriptor, trigger: TriggerMessage, definition: dict[str, Any] | None
) -> TriggerMessage | DeadLetter:
    """The trigger message as far as its writer may be believed; ``definition`` as for :func:`process_for`.

    Of one that the queue manager did not write, what is to be run is the definition's, and with none here it is 266.
    """
    if is_the_queue_managers(descriptor):
        return trigger
    if definition is None:
        named = f"process {trigger.process_name} is not defined here" if trigger.process_name else "it names no process"
        why = f"put by {descriptor.user_identifier or 'a stranger'}, not by the queue manager, and {named}"
        return DeadLetter(Feedback.TM_ERROR, why)
    if not is_object_name(trigger.q_name):
        return DeadLetter(Feedback.TM_ERROR, f"put by an application, and {trigger.q_name!r} names no queue")
    return replace(
        trigger,
        appl_type=int(ATTRIBUTES[ObjectType.PROCESS]["appl_type"].read(definition["appl_type"], trigger.process_name)),
        appl_id=definition["appl_id"],
        env_data=definition["env_data"],
        user_data=definition["user_data"],
    )


def process_for(trigger: TriggerMessage, definition: dict[str, Any] | None) -> Process:
    """The process to start. ``definition`` is its row as DISPLAY PROCESS answers it, None when there is none."""
    added = {name: definition[name] for name in _ADDED if name in definition} if definition else {}
    return Process(
        name=trigger.process_name,
        appl_type=trigger.appl_type,
        appl_id=trigger.appl_id,
        env_data=trigger.env_data,
        user_data=trigger.user_data,
        **added,
    )


def slot_of(trigger: TriggerMessage) -> str:
    """What instances are counted by: the process, or the program where a trigger message names no process."""
    return trigger.process_name or trigger.appl_id


Cause = tuple[str, str]
"""What failures in a row are counted by: the process, and the queue that it serves."""

_LONGEST_PAUSE_S = 60


def cause_of(trigger: TriggerMessage) -> Cause:
    """See :data:`Cause`."""
    return slot_of(trigger), trigger.q_name


class Failing(msgspec.Struct, frozen=True):
    """How often the runs of a cause failed since one succeeded, and when the last one ended, in seconds."""

    times: int = 0
    last_s: float = 0.0

    @property
    def pause_s(self) -> int:
        """How long the next start is to wait behind the last end: 1, 2, 4 and so on up to 60 seconds."""
        return min(_LONGEST_PAUSE_S, 2 ** min(self.times - 1, 10)) if self.times else 0

    @property
    def until_s(self) -> float:
        """When the pause is over."""
        return self.last_s + self.pause_s


def paused(failing: Failing, running: int, now_s: float) -> str:
    """Why a run waits for the failures before it, "" when it need not; ``running`` counts the runs of its cause.

    A program that fails at once and leaves its messages would be triggered again by its own close, without end. One
    run at a time tries again, since a trigger message can come before the end of the run that caused it.
    """
    if not failing.times:
        return ""
    said = f"failed {failing.times} time{'s' if failing.times > 1 else ''} in a row"
    if now_s < failing.until_s:
        return f"{said}; next start in {math.ceil(failing.until_s - now_s)} s"
    return f"{said}; one runs, and its end decides" if running else ""


def judge(
    order: Order,
    *,
    before_it: int,
    elsewhere: Collection[str] = (),
    pause: str = "",
    default_instances: int,
    appl_types: Collection[int],
) -> Verdict:
    """What to do with an order.

    ``before_it`` counts the runs of its slot that are running or held here already, ``elsewhere`` are those running
    under other monitors, ``pause`` is what :func:`paused` says, ``default_instances`` is the cap of processes that set
    none, ``appl_types`` are those this monitor can start.
    """
    appl_type = order.trigger.appl_type
    if appl_type not in appl_types:
        known = ", ".join(f"{ApplType(n).name} ({int(n)})" for n in sorted(appl_types))
        return DeadLetter(Feedback.APPL_TYPE_ERROR, f"APPLTYPE {appl_type} is none this monitor starts: {known}")
    cap = order.process.instances or default_instances
    if pause:
        return Hold(pause)
    if before_it + len(elsewhere) >= cap:
        others = f", {len(elsewhere)} of them under other monitors ({', '.join(elsewhere)})" if elsewhere else ""
        count = before_it + len(elsewhere)
        return Hold(f"{count} of {slot_of(order.trigger)} are running or held{others}, and {cap} may run at a time")
    return Start()
