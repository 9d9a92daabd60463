"""MQINQ and MQSET: attributes of an open object, by their long names."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from trigmon.mq import errors
from trigmon.mq.attributes import (
    ATTRIBUTES,
    OBJECT_TYPES,
    STATUS,
    AliasQueue,
    Attribute,
    Definition,
    LocalQueue,
    RemoteQueue,
    find_attribute,
)
from trigmon.mq.calls import Inquire, Set
from trigmon.mq.descriptors import date_and_time
from trigmon.mq.enums import ObjectType, OpenOption, QType, word
from trigmon.mq.errors import (
    AttrValueError,
    HobjError,
    MQError,
    NotOpenForInquire,
    NotOpenForSet,
    SelectorError,
    SelectorLimitExceeded,
)
from trigmon.mq.names import NAME_LENGTH
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Done, Values
from trigmon.rules.model.changes import SetDefinition
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts, Neighbour, WideFacts
from trigmon.rules.model.handles import HandleFacts
from trigmon.rules.model.queue_facts import QueueFacts, check_alive
from trigmon.rules.model.stored_messages import Found
from trigmon.rules.objects.alter import altered

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


NOT_APPLICABLE = -1
"""``MQIAV_NOT_APPLICABLE``: what MQINQ gives for a number that this type of queue does not have; text is asterisks."""

MOST_SELECTORS = 256
"""How many attributes one MQINQ or MQSET may name."""

# Selectors of names: MQCA_NAMELIST_NAME, MQCA_PROCESS_NAME, MQCA_Q_MGR_NAME, MQCA_Q_NAME.
_NAME_SELECTORS = {ObjectType.NAMELIST: 2010, ObjectType.PROCESS: 2012, ObjectType.QMGR: 2015}
_NAME_SELECTORS |= dict.fromkeys(_Q_TYPES, 2016)
# A kind of object that is ours has no selector of its name.


def decide_inquire(call: Inquire, facts: WideFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides MQINQ: the named attributes, or all. Of an alias they are its own, not its base queue's."""
    handle = _opened(call.handle, facts)
    if not handle.options & OpenOption.INQUIRE:
        raise NotOpenForInquire(handle.object_name)
    if facts.named is None:
        raise HobjError(f"handle {call.handle}")
    kind = OBJECT_TYPES[type(facts.named)]
    row = shown(kind, facts.named, facts.queue)
    _check_count(len(call.names))
    if not call.names:
        return Decision(Values(values=row))
    values: dict[str, Any] = {}
    warning = 0
    for asked in call.names:
        name = _inquired(kind, asked, row)
        if name is None:
            attribute = _of_another_queue(kind, asked)
            values[attribute.name] = "*" * _length(attribute) if attribute.is_text else NOT_APPLICABLE
            warning = int(Reason.SELECTOR_NOT_FOR_TYPE)
        else:
            values[name] = row[name]
    return Decision(Values(values=values, warning=warning))


def shown(object_type: ObjectType, definition: Any, queue: QueueFacts | None = None) -> dict[str, Any]:
    """Returns an object as a row for display: every attribute plain by its long name, and what a queue's state adds."""
    row: dict[str, Any] = {"object_type": object_type.name, "name": definition.name}
    for name, attribute in ATTRIBUTES[object_type].items():
        row[name] = attribute.plain(getattr(definition, name))
    row["created_ms"] = definition.created_ms
    row["altered_ms"] = definition.altered_ms
    if object_type is ObjectType.QMGR:
        row["q_mgr_identifier"] = q_mgr_identifier(definition)
    if object_type is ObjectType.NAMELIST:
        row["name_count"] = len(definition.names)
    if object_type in _Q_TYPES:
        row["q_type"] = word(_Q_TYPES[object_type])
    if queue is not None and object_type is ObjectType.QLOCAL:
        row["current_q_depth"] = queue.depth
        row["open_input_count"] = queue.open_input_count
        row["open_output_count"] = queue.open_output_count
        row["uncommitted_msgs"] = queue.uncommitted_puts + queue.uncommitted_gets + queue.reserved
    return row


def q_mgr_identifier(q_mgr: Definition) -> str:
    """Returns QMID: at most 28 characters of the name, and the moment of the first start, in UTC."""
    day, clock = date_and_time(q_mgr.created_ms)
    when = f"{day[:4]}-{day[4:6]}-{day[6:]}_{clock[:2]}.{clock[2:4]}.{clock[4:6]}"
    return f"{q_mgr.name[:28]}_{when}"


def decide_set(call: Set, facts: WideFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides MQSET: all of the values or none; at once, outside any unit of work, ALTDATE untouched."""
    handle = _opened(call.handle, facts)
    if not handle.options & OpenOption.SET:
        raise NotOpenForSet(handle.object_name)
    definition = facts.named
    if not isinstance(definition, LocalQueue | AliasQueue | RemoteQueue):
        raise HobjError(f"handle {call.handle}")
    _check_count(len(call.attributes))
    kind = OBJECT_TYPES[type(definition)]
    values = dict(_settable(kind, name, value, definition.name) for name, value in call.attributes.items())
    changed = replace(definition, **values)
    if not isinstance(changed, LocalQueue):
        return Decision(Done(), [SetDefinition(kind, changed)])
    if "trigger_control" in values:
        changed = replace(changed, is_disarmed=False)
    if facts.queue is None:
        raise HobjError(f"handle {call.handle}")
    return altered(facts, Neighbour(facts.queue, facts.process, facts.initiation), changed, facts.served, now, ids)


def _check_count(selectors: int) -> None:
    if selectors > MOST_SELECTORS:
        raise SelectorLimitExceeded(f"{selectors} attributes are named, at most {MOST_SELECTORS}")


def _opened(number: int, facts: Facts) -> HandleFacts:
    if facts.handle is None:
        raise HobjError(f"handle {number}")
    if facts.queue is not None:
        check_alive(facts.queue)
    return facts.handle


def _inquired(kind: ObjectType, asked: str | int, row: dict[str, Any]) -> str | None:
    """Returns the long name in an object's row that a name, a word or a selector means, if the object has it."""
    if asked in row:
        return str(asked)
    if asked == _NAME_SELECTORS.get(kind):
        return "name"
    for attribute in STATUS.values():
        if attribute.name in row and asked in (attribute.selector or None, attribute.mqsc, attribute.mqsc.lower()):
            return attribute.name
    try:
        return find_attribute(kind, asked).name
    except SelectorError:
        return None


def _of_another_queue(kind: ObjectType, asked: str | int) -> Attribute:
    """Returns an attribute that only queues of another type have. Raises SelectorError (2067) where none has it."""
    if kind in _Q_TYPES:
        for other in _Q_TYPES:
            try:
                return find_attribute(other, asked)
            except SelectorError:
                pass
        for attribute in STATUS.values():
            if asked in (attribute.name, attribute.selector or None, attribute.mqsc, attribute.mqsc.lower()):
                return attribute
    raise SelectorError(f"{kind.name} has no {asked}")


def _length(attribute: Attribute) -> int:
    return attribute.length or NAME_LENGTH


def _settable(kind: ObjectType, name: str | int, value: object, object_name: str) -> tuple[str, Any]:
    """Returns a value MQSET may write.

    Raises SelectorError, also for what another type has, or that attribute's own reason.
    """
    attribute = find_attribute(kind, name)
    where = f"{kind.name}({object_name})"
    if not attribute.settable:
        raise SelectorError(f"{where} {name} cannot be set by MQSET; ALTER can")
    try:
        return attribute.name, attribute.read(value, where)
    except AttrValueError as error:
        raise _SET_ERRORS.get(attribute.name, SelectorError)(error.about) from None
