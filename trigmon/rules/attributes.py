"""MQINQ and MQSET: attributes of an open object, by their long names."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from trigmon.mq import errors
from trigmon.mq.attributes import ATTRIBUTES, STATUS, AliasQueue, LocalQueue, RemoteQueue, find_attribute
from trigmon.mq.calls import Done, Inquire, Set, Values
from trigmon.mq.enums import ObjectType, OpenOption, QType, word
from trigmon.mq.errors import (
    AttrValueError,
    HobjError,
    MQError,
    NotOpenForInquire,
    NotOpenForSet,
    SelectorError,
    SelectorNotForType,
)
from trigmon.rules.altering import altered
from trigmon.rules.changes import SetDefinition
from trigmon.rules.decision import Decision, Ids
from trigmon.rules.facts import Facts, Found, HandleFacts, Neighbour, QueueFacts
from trigmon.rules.resolving import check_alive

_SET_ERRORS: dict[str, type[MQError]] = {
    "trigger_control": errors.TriggerControlError,
    "trigger_type": errors.TriggerTypeError,
    "trigger_depth": errors.TriggerDepthError,
    "trigger_msg_priority": errors.TriggerMsgPriorityErr,
    "inhibit_get": errors.InhibitValueError,
    "inhibit_put": errors.InhibitValueError,
}


_Q_TYPES = {
    ObjectType.QLOCAL: QType.LOCAL,
    ObjectType.QALIAS: QType.ALIAS,
    ObjectType.QREMOTE: QType.REMOTE,
    ObjectType.QMODEL: QType.MODEL,
}


def decide_inquire(call: Inquire, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """MQINQ: the named attributes, or all of them."""
    handle = _opened(call.handle, facts)
    if not handle.options & OpenOption.INQUIRE:
        raise NotOpenForInquire(handle.object_name)
    if facts.named is None:
        raise HobjError(f"handle {call.handle}")
    row = shown(handle.object_type, facts.named, facts.queue)
    names = [_inquired(handle, name, row) for name in call.names] or list(row)
    return Decision(Values(values={name: row[name] for name in names}))


def shown(object_type: ObjectType, definition: Any, queue: QueueFacts | None = None) -> dict[str, Any]:
    """An object as people see it: every attribute plain by its long name, and what a queue's state adds."""
    row: dict[str, Any] = {"object_type": object_type.name, "name": definition.name}
    for name, attribute in ATTRIBUTES[object_type].items():
        row[name] = attribute.plain(getattr(definition, name))
    row["created_ms"] = definition.created_ms
    row["altered_ms"] = definition.altered_ms
    if object_type in _Q_TYPES:
        row["q_type"] = word(_Q_TYPES[object_type])
    if queue is not None and object_type is ObjectType.QLOCAL:
        row["current_q_depth"] = queue.depth
        row["open_input_count"] = queue.open_input_count
        row["open_output_count"] = queue.open_output_count
        row["uncommitted_msgs"] = queue.uncommitted_puts + queue.uncommitted_gets
    return row


def decide_set(call: Set, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """MQSET: all of the values or none; at once, outside any unit of work, ALTDATE untouched."""
    handle = _opened(call.handle, facts)
    if not handle.options & OpenOption.SET:
        raise NotOpenForSet(handle.object_name)
    definition = facts.named
    if not isinstance(definition, LocalQueue | AliasQueue | RemoteQueue):
        raise HobjError(f"handle {call.handle}")
    values = dict(_settable(handle, name, value) for name, value in call.attributes.items())
    changed = replace(definition, **values)
    if not isinstance(changed, LocalQueue):
        return Decision(Done(), [SetDefinition(handle.object_type, changed)])
    if "trigger_control" in values:
        changed = replace(changed, is_disarmed=False)
    if facts.queue is None:
        raise HobjError(f"handle {call.handle}")
    return altered(facts, Neighbour(facts.queue, facts.process, facts.initiation), changed, facts.served, now, ids)


def _opened(number: int, facts: Facts) -> HandleFacts:
    if facts.handle is None:
        raise HobjError(f"handle {number}")
    if facts.queue is not None:
        check_alive(facts.queue)
    return facts.handle


def _inquired(handle: HandleFacts, name: str, row: dict[str, Any]) -> str:
    if name in row:
        return name
    for attribute in STATUS.values():
        if name.upper() == attribute.mqsc and attribute.name in row:
            return attribute.name
    try:
        return find_attribute(handle.object_type, name).name
    except SelectorError:
        if name in STATUS or any(name in table for table in ATTRIBUTES.values()):
            raise SelectorNotForType(f"{handle.object_name} has no {name}") from None
        raise


def _settable(handle: HandleFacts, name: str, value: object) -> tuple[str, Any]:
    """A value MQSET may write. Raises SelectorError, SelectorNotForType, or the reason of that attribute."""
    try:
        attribute = find_attribute(handle.object_type, name)
    except SelectorError:
        if any(name in table for table in ATTRIBUTES.values()):
            raise SelectorNotForType(f"{handle.object_type.name}({handle.object_name}) {name}") from None
        raise
    if not attribute.settable:
        raise SelectorError(f"{name} cannot be set by MQSET; ALTER can")
    try:
        return attribute.name, attribute.read(value, f"{handle.object_type.name}({handle.object_name})")
    except AttrValueError as error:
        raise _SET_ERRORS.get(attribute.name, SelectorError)(error.about) from None
