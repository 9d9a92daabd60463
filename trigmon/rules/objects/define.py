"""DEFINE, ALTER, DELETE, CLEAR and MOVE: the commands that change objects and their messages."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from msgspec.structs import replace

from trigmon.mq.attributes import ATTRIBUTES, KINDS, QUEUE_KINDS, LocalQueue, Process, Schedule, read_attributes
from trigmon.mq.calls import Alter, Call, Clear, Define, Delete, Move
from trigmon.mq.enums import DefinitionType, ObjectType, QsgDisp
from trigmon.mq.errors import (
    LikeObjectWrongType,
    MQError,
    ObjectAlreadyExists,
    ObjectInUse,
    ObjectNameError,
    ObjectTypeError,
    ObjectWrongType,
    QNotEmpty,
    QWrongType,
    UnknownObjectName,
)
from trigmon.mq.names import is_object_name
from trigmon.mq.replies import Counted, Done
from trigmon.mq.rights import read_record_name
from trigmon.rules.messages.reports import expiration_reports
from trigmon.rules.model.changes import AnyChange, DropDefinition, RemoveMessage, SetDefinition, met_on_the_way
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts, Neighbour, WideFacts, WorldFacts
from trigmon.rules.model.group_changes import DropGroupDefinition, SetGroupDefinition
from trigmon.rules.model.handles import HandleFacts
from trigmon.rules.model.internal_calls import Deliver, TakeCopy
from trigmon.rules.model.queue_facts import QueueFacts, check_alive
from trigmon.rules.model.resolve_name import object_type_of
from trigmon.rules.model.stored_messages import SLICE, Found, Selection
from trigmon.rules.objects.alter import altered
from trigmon.rules.objects.authority_records import check_named
from trigmon.rules.objects.sharing_scope import check_altered, check_defined, check_meant, disposition
from trigmon.rules.objects.timed_objects import TIMING, check_schedule, check_watch, copied, timed
from trigmon.rules.runs.check_program import check_process
from trigmon.rules.runs.pause import forget_failures

DEFAULT_OBJECTS = {
    ObjectType.QLOCAL: "SYSTEM.DEFAULT.LOCAL.QUEUE",
    ObjectType.QALIAS: "SYSTEM.DEFAULT.ALIAS.QUEUE",
    ObjectType.QREMOTE: "SYSTEM.DEFAULT.REMOTE.QUEUE",
    ObjectType.QMODEL: "SYSTEM.DEFAULT.MODEL.QUEUE",
    ObjectType.NAMELIST: "SYSTEM.DEFAULT.NAMELIST",
    ObjectType.PROCESS: "SYSTEM.DEFAULT.PROCESS",
}

_CHECKS: dict[ObjectType, Callable[[Any, Collection[str]], None]] = {
    ObjectType.PROCESS: check_process,
    ObjectType.SCHEDULE: check_schedule,
    ObjectType.WATCH: check_watch,
}
"""The check of a definition as a whole, given the attributes that the command named; raises AttrValueError."""


def decide_define(call: Define, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides DEFINE: a new object, or with ``replace`` an old one, its attributes not named set to their defaults."""
    object_type = object_type_of(call.object_type)
    where = f"{object_type.name}({call.name})"
    if object_type is ObjectType.QMGR:
        raise ObjectTypeError("the queue manager exists already; ALTER QMGR changes it")
    if object_type is ObjectType.AUTHREC:
        read_record_name(call.name)
    elif not is_object_name(call.name):
        raise ObjectNameError(f"{where}: 1 to 48 of the characters A-Z a-z 0-9 . / _ %")
    values = read_attributes(object_type, call.name, call.attributes)
    check_defined(where, values, facts.named, facts)
    existing = facts.of_group if values.get("qsg_disp") is QsgDisp.GROUP else facts.named
    if existing is not None:
        if type(existing) is not KINDS[object_type]:
            raise ObjectWrongType(f"{where}: another type of object has this name")
        if not call.replace:
            raise ObjectAlreadyExists(f"{where}; REPLACE would replace it")
    kind, base = KINDS[object_type], _like(call, facts)
    if facts.like is not None and "qsg_disp" in ATTRIBUTES[object_type]:
        values.setdefault("qsg_disp", QsgDisp.Q_MGR)  # the disposition is not copied
    values |= {"name": call.name, "created_ms": existing.created_ms if existing is not None else now, "altered_ms": now}
    if kind is LocalQueue:
        # How a queue was made is not up to a definition, nor to the one it is made like.
        values["definition_type"] = getattr(existing, "definition_type", DefinitionType.PREDEFINED)
        values["moments"] = getattr(existing, "moments", {})
    definition = replace(base, **values)
    if kind is Schedule:
        definition = timed(definition, now)
    if object_type in _CHECKS:
        _CHECKS[object_type](definition, ATTRIBUTES[object_type])
    check_named(definition, existing, facts)
    return _set(facts, object_type, definition, now, ids)


def _like(call: Define, facts: WorldFacts) -> Any:
    """Returns the definition that gives what a DEFINE does not name: another object's, or the attributes' defaults."""
    where = f"{object_type_of(call.object_type).name}({call.name}) LIKE({call.like})"
    if facts.like is None:
        if call.like:
            raise UnknownObjectName(where)
        return KINDS[object_type_of(call.object_type)](name=call.name)
    if not isinstance(facts.like, KINDS[object_type_of(call.object_type)]):
        raise LikeObjectWrongType(where)
    return facts.like


def decide_alter(call: Alter, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides ALTER: only what is named changes."""
    object_type = object_type_of(call.object_type)
    values = read_attributes(object_type, call.name, call.attributes)
    definition = _meant(object_type, call.name, values.get("qsg_disp") is QsgDisp.GROUP, facts)
    changed = with_values(object_type, definition, values, now)
    if object_type is ObjectType.QMGR and not definition.created_ms:
        changed = replace(changed, created_ms=now)  # the first start; QMID says it from then on
    check_named(changed, definition, facts)
    return _set(facts, object_type, changed, now, ids)


def with_values(object_type: ObjectType, definition: Any, values: dict[str, Any], now: int) -> Any:
    """Returns a definition as ALTER makes it from values that were read. Raises AttrValueError, AttrValueFixed."""
    check_altered(f"{object_type.name}({definition.name})", values, definition)
    if isinstance(definition, LocalQueue) and "trigger_control" in values:
        values = {**values, "is_disarmed": False}  # an explicit on or off wins
    changed = replace(definition, **{**values, "altered_ms": now})
    if isinstance(changed, Schedule) and not TIMING.isdisjoint(values):
        changed = timed(changed, now)
    if object_type in _CHECKS:
        _CHECKS[object_type](changed, values)
    return changed


def decide_delete(call: Delete, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides DELETE: refused while the object is open, and for a queue while messages lie on it, unless purged."""
    object_type = object_type_of(call.object_type)
    where = f"{object_type.name}({call.name})"
    definition = _meant(object_type, call.name, call.qsg_disp == "group", facts)
    check_meant(where, call.qsg_disp, definition)
    if disposition(definition) is QsgDisp.GROUP:
        return Decision(Done(), [DropGroupDefinition(object_type, call.name)])
    if isinstance(definition, LocalQueue) and facts.queue is not None:
        check_alive(facts.queue)
        _check_closed(facts.queue, where)
        if facts.queue.uncommitted_puts or facts.queue.uncommitted_gets or facts.queue.reserved:
            raise QNotEmpty(f"{where} has uncommitted or reserved messages")
        if facts.queue.depth and not call.purge:
            raise QNotEmpty(f"{where} holds {facts.queue.depth} messages; PURGE deletes them with it")
    elif object_type is ObjectType.QMGR:
        raise ObjectTypeError("a queue manager cannot be deleted by a command")
    elif any(_uses(handle, object_type, call.name) for handle in facts.world.handles):
        raise ObjectInUse(f"{where} is open")
    is_temporary = getattr(definition, "definition_type", None) is DefinitionType.TEMPORARY_DYNAMIC
    return Decision(Done(), [DropDefinition(object_type, call.name, is_temporary)])


def decide_take_copy(call: TakeCopy, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides the member's copy of a group definition, as DEFINE REPLACE QSGDISP(COPY) makes it, or its deletion.

    A name that is otherwise taken here stays what it is; a copy that is in use or holds messages stays as well.
    """
    object_type, there, original = object_type_of(call.object_type), facts.named, facts.of_group
    if there is not None and (disposition(there) is not QsgDisp.COPY or type(there) is not KINDS[object_type]):
        return Decision()
    if original is None:
        try:
            delete = Delete(object_type=call.object_type, name=call.name)
            return decide_delete(delete, facts, found, now, ids) if there is not None else Decision()
        except MQError:
            return Decision()
    created_ms = there.created_ms if there is not None else now
    values: dict[str, Any] = {"qsg_disp": QsgDisp.COPY, "created_ms": created_ms, "altered_ms": now}
    copy = replace(original, **values)
    if isinstance(copy, Schedule):
        copy = copied(copy, there)
    return _set(facts, object_type, copy, now, ids)


def _uses(handle: HandleFacts, object_type: ObjectType, name: str) -> bool:
    """Returns whether a handle is of this object, or was opened by this alias or remote queue, or an alias of it."""
    if handle.object_type not in QUEUE_KINDS or object_type not in QUEUE_KINDS:
        return handle.object_type is object_type and handle.object_name == name
    return handle.object_name == name or (handle.route is not None and handle.route.definition == name)


def look_for_clear(call: Clear, facts: WideFacts, now: int) -> Selection:
    """Returns the next slice of a queue that is to be emptied; expired messages go with the others."""
    queue = local_queue(call.q_name, facts)
    check_meant(f"QLOCAL({call.q_name})", call.qsg_disp, queue.definition)
    _check_closed(queue, f"QLOCAL({call.q_name})")
    if queue.uncommitted_puts or queue.uncommitted_gets:
        raise QNotEmpty(f"QLOCAL({call.q_name}) has uncommitted messages")
    for reservation in facts.reservations:
        if reservation.left:
            raise QNotEmpty(f"QLOCAL({call.q_name}) has messages reserved for {reservation.consumer}: release them")
    return Selection(q_name=call.q_name, now=now, limit=SLICE)


def decide_clear(call: Clear, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides CLEAR QLOCAL, a slice at a time."""
    if found is None:
        return Decision(Counted(count=0))
    changes = [*map(RemoveMessage, found.messages), *met_on_the_way(found)]
    more = facts.queue is not None and facts.queue.depth > len(changes)
    return Decision(Counted(count=len(changes), more=more), changes, expiration_reports(found.expired, facts, now))


def look_for_move(call: Move, facts: WideFacts, now: int) -> Selection:
    """Returns the next slice of messages to move, in get order."""
    local_queue(call.q_name, facts)
    if not facts.target_exists:
        raise UnknownObjectName(call.to_q_name)
    if call.q_name in (call.to_q_name, facts.target_q_name):
        raise ObjectNameError(f"{call.q_name} cannot be moved onto itself")
    return Selection(q_name=call.q_name, now=now, limit=max(1, min(call.count, SLICE)))


def decide_move(call: Move, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides MOVE: messages leave a queue and are put to another in one step; expired ones are discarded."""
    moved = found.messages if found is not None else ()
    discarded = met_on_the_way(found) if found is not None else []
    changes: list[AnyChange] = [*discarded, *map(RemoveMessage, moved)]
    internal_calls: list[Call] = [
        Deliver(
            q_name=call.to_q_name,
            descriptor=message.descriptor,
            data=message.data,
            expires_ms=message.expires_ms,
        )
        for message in moved
    ]
    more = facts.queue is not None and facts.queue.depth > len(changes)
    reply = Counted(count=len(moved), more=more and bool(changes))
    internal_calls += expiration_reports(found.expired, facts, now) if found is not None else []
    return Decision(reply, changes, internal_calls)


def _set(facts: WorldFacts, object_type: ObjectType, definition: Any, now: int, ids: Ids) -> Decision:
    """Returns the decision to write a definition; a local queue's may be an occasion. A group's is copied later."""
    if disposition(definition) is QsgDisp.GROUP:
        return Decision(Done(), [SetGroupDefinition(object_type, definition)])
    if isinstance(definition, LocalQueue) and facts.queue is not None:
        check_alive(facts.queue)
        return altered(facts, neighbour(facts.queue, definition, facts), definition, facts.served, now, ids)
    again = forget_failures(definition.name, facts) if _is_mended(definition, facts.named) else Decision()
    return Decision(Done(), [SetDefinition(object_type, definition), *again.changes], events=again.events)


def _is_mended(definition: Any, before: Any) -> bool:
    """Returns whether this is a process that executes something else than before, or in another way."""
    if not isinstance(definition, Process) or not isinstance(before, Process):
        return False
    return replace(before, altered_ms=definition.altered_ms, description=definition.description) != definition


def neighbour(queue: QueueFacts, definition: LocalQueue, facts: WorldFacts) -> Neighbour:
    """Returns the queue with the process and the initiation queue that its new definition names."""
    world = facts.world
    process = next((p for p in world.processes if p.name == definition.process_name), None)
    initiation = next((q for q in world.queues if q.definition.name == definition.initiation_q_name), None)
    return Neighbour(queue, process, initiation)


def _existing(object_type: ObjectType, name: str, facts: WideFacts) -> Any:
    if facts.named is None:
        raise UnknownObjectName(f"{object_type.name}({name})")
    if type(facts.named) is not KINDS[object_type]:
        raise ObjectWrongType(f"{object_type.name}({name}): another type of object has this name")
    return facts.named


def _meant(object_type: ObjectType, name: str, is_of_group: bool, facts: WideFacts) -> Any:
    """Returns the object that is meant: the group's definition if that is asked for, else this member's."""
    if not is_of_group:
        return _existing(object_type, name, facts)
    if facts.of_group is None:
        raise UnknownObjectName(f"{object_type.name}({name}) QSGDISP(GROUP)")
    return facts.of_group


def local_queue(name: str, facts: Facts) -> QueueFacts:
    """Returns the local queue of this name. Raises QWrongType for an alias or the like, UnknownObjectName for none."""
    is_other = facts.alias is not None or facts.remote is not None or facts.model is not None
    if facts.queue is None or is_other:
        kind: type[MQError] = QWrongType if is_other else UnknownObjectName
        raise kind(f"QLOCAL({name})")
    check_alive(facts.queue)
    return facts.queue


def _check_closed(queue: QueueFacts, where: str) -> None:
    if queue.open_count:
        raise ObjectInUse(f"{where} is open ({queue.open_count} handles)")
