"""Decides what becomes of a trigger message: a run, or a dead letter with IBM's feedback code. Pure.

A trigger message from the queue manager holds what to start, in the values of the time when it was written; the current
process definition adds only what it has no field for (how many, which directory, Spark's settings). A trigger message
from any other user names a queue and the process of that queue, and no more: what runs is what an administrator
defined. The queue manager checks run records by the same rule (:mod:`trigmon.rules.model.run_program`). The ledger
decides whether a run may start now.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from trigmon.mq.attributes import ATTRIBUTES, Process
from trigmon.mq.descriptors import FORMAT_TRIGGER, MessageDescriptor, TriggerMessage, control_character, unpack_tm
from trigmon.mq.enums import ApplType, Feedback, ObjectType
from trigmon.mq.errors import TmError
from trigmon.mq.reasons import Reason
from trigmon.rules.model.run_program import is_the_queue_managers
from trigmon.rules.runs.check_spark import is_warm

# What only a definition can hold: the attributes of Process that IBM MQ does not have.
_OF_WARMTH = ("appl_type", "spark_start", "spark_isolation", "spark_master")
_ADDED = tuple(name for name, attribute in ATTRIBUTES[ObjectType.PROCESS].items() if attribute.ours)


class DeadLetter(msgspec.Struct, frozen=True):
    """Put the trigger message on the dead-letter queue with this feedback code."""

    reason: Feedback | Reason
    why: str


def read_trigger(descriptor: MessageDescriptor, data: bytes) -> TriggerMessage | DeadLetter:
    """Returns the trigger message in a message from the initiation queue, or 266: it is none."""
    if descriptor.format != FORMAT_TRIGGER:
        shown = descriptor.format or "blank"
        return DeadLetter(Feedback.TM_ERROR, f"not a trigger message: its format is {shown}, not {FORMAT_TRIGGER}")
    try:
        trigger = unpack_tm(data)
    except TmError as error:
        return DeadLetter(Feedback.TM_ERROR, error.about)
    wrong = control_character(trigger)
    return DeadLetter(Feedback.TM_ERROR, wrong) if wrong else trigger


def believed(
    descriptor: MessageDescriptor,
    trigger: TriggerMessage,
    definition: dict[str, Any] | None,
    queue: dict[str, Any] | None,
) -> TriggerMessage | DeadLetter:
    """Returns the trigger message with what its writer may not set taken from the definitions.

    ``definition`` and ``queue`` are the rows of its process and its local queue as they are defined now, None where
    they are not. Of one that the queue manager did not write, what is to be run is the definition's; where the process
    is not defined, or is not that of the queue, it is 266, and where the queue is not defined, 2085.
    """
    if is_the_queue_managers(descriptor):
        return trigger
    by = f"put by {descriptor.user_identifier or 'an unknown user'}, not by the queue manager"
    if definition is None:
        named = f"process {trigger.process_name} is not defined here" if trigger.process_name else "it names no process"
        return DeadLetter(Feedback.TM_ERROR, f"{by}, and {named}")
    if queue is None:
        return DeadLetter(Reason.UNKNOWN_OBJECT_NAME, f"{by}, and no local queue {trigger.q_name!r} is defined here")
    if queue["process_name"] != trigger.process_name:
        wants = f"{queue['name']} names process {queue['process_name'] or 'none'}, not {trigger.process_name}"
        return DeadLetter(Feedback.TM_ERROR, f"{by}, and queue {wants}")
    return as_defined_now(trigger, definition)


def as_defined_now(trigger: TriggerMessage, definition: Mapping[str, Any]) -> TriggerMessage:
    """Returns a trigger message with what the row of its process says is to be run."""
    return replace(
        trigger,
        appl_type=int(ATTRIBUTES[ObjectType.PROCESS]["appl_type"].read(definition["appl_type"], trigger.process_name)),
        appl_id=definition["appl_id"],
        env_data=definition["env_data"],
        user_data=definition["user_data"],
    )


def process_for(trigger: TriggerMessage, definition: dict[str, Any] | None) -> Process:
    """Returns the process to start.

    ``definition`` is the part of it that the ledger keeps with the run, None where there is none. A definition that
    cannot be read, since another version wrote it, is left out.
    """
    added = {name: value for name, value in (definition or {}).items() if name in _ADDED}
    triggered: dict[str, Any] = {
        "name": trigger.process_name,
        "appl_type": trigger.appl_type,
        "appl_id": trigger.appl_id,
        "env_data": trigger.env_data,
        "user_data": trigger.user_data,
    }
    try:
        return msgspec.convert({**added, **triggered}, Process)
    except msgspec.ValidationError:
        return Process(**triggered)


def warm_masters(rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Returns the masters ("": the ordinary one) of the Spark Connect servers that processes need, by process name."""
    attributes = ATTRIBUTES[ObjectType.PROCESS]
    masters = {}
    for row in rows:
        values = {name: attributes[name].read(row[name], row["name"]) for name in _OF_WARMTH if name in row}
        process = Process(name=row["name"], **values)
        if process.appl_type == ApplType.SPARK and is_warm(process):
            masters[process.name] = process.spark_master
    return masters


def warm_programs(rows: Iterable[Mapping[str, Any]]) -> dict[str, Process]:
    """Returns the programs with WARM(YES), by the process's name."""
    found = {row["name"]: process_of(row) for row in rows if row.get("warm_interpreter", "no") != "no"}
    return {name: process for name, process in found.items() if process.appl_type == ApplType.UNIX}


def process_of(row: Mapping[str, Any]) -> Process:
    """Returns the definition in a row of DISPLAY."""
    attributes = ATTRIBUTES[ObjectType.PROCESS]
    values = {name: attributes[name].read(value, row["name"]) for name, value in row.items() if name in attributes}
    return Process(name=row["name"], **values)


def startable(trigger: TriggerMessage, appl_types: Collection[int]) -> DeadLetter | None:
    """Returns None, or 267 where the application type is none of those that this monitor can start."""
    if trigger.appl_type in appl_types:
        return None
    known = ", ".join(f"{ApplType(n).name} ({int(n)})" for n in sorted(appl_types))
    why = f"APPLTYPE {trigger.appl_type} is none this monitor starts: {known}"
    return DeadLetter(Feedback.APPL_TYPE_ERROR, why)


def checked(plan: TriggerMessage | DeadLetter, appl_types: Collection[int]) -> TriggerMessage | DeadLetter:
    """Returns what is to be started, or why it is a dead letter: already, or by :func:`startable`."""
    return plan if isinstance(plan, DeadLetter) else startable(plan, appl_types) or plan
