"""MQOPEN: shared and exclusive opens, queues made from a model, and the first monitor's open (13c)."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress

from msgspec.structs import replace

from trigmon.mq.attributes import KINDS, OBJECT_TYPES, LocalQueue, MessageQueue, ModelQueue
from trigmon.mq.calls import Open
from trigmon.mq.descriptors import FORMAT_TRIGGER, unpack_tm
from trigmon.mq.enums import ObjectType, OpenOption, Shareability
from trigmon.mq.errors import (
    DynamicQNameError,
    MQError,
    NameInUse,
    NameNotValidForType,
    ObjectAlreadyExists,
    ObjectInUse,
    OptionNotValidForType,
    OptionsError,
    UnknownObjectName,
)
from trigmon.mq.names import is_object_name
from trigmon.mq.replies import Opened
from trigmon.rules.messages.context import check_opened
from trigmon.rules.model.access import check_dynamic_queues, check_handles, check_may_use
from trigmon.rules.model.changes import AnyChange, SetDefinition
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import WideFacts
from trigmon.rules.model.handle_changes import OpenHandle
from trigmon.rules.model.handles import HandleFacts
from trigmon.rules.model.internal_calls import MakeQueue
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.resolve_name import base_queue, object_type_of
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.model.stored_messages import Found, Selection
from trigmon.rules.triggers.effects import Effects, trigger

KNOWN_OPTIONS = sum(OpenOption)
_AS_Q_DEF = OpenOption.INPUT_AS_Q_DEF.value
_SHARED = OpenOption.INPUT_SHARED.value
_EXCLUSIVE = OpenOption.INPUT_EXCLUSIVE.value
_INPUT = _AS_Q_DEF | _SHARED | _EXCLUSIVE
_ONLY_LOCAL = _INPUT | OpenOption.BROWSE.value
_MESSAGES = _INPUT | OpenOption.BROWSE.value | OpenOption.OUTPUT.value
_ALL_BYTES = 1 << 40
_ANY = _MESSAGES | OpenOption.INQUIRE.value | OpenOption.SET.value


def decide_open(call: Open, facts: WideFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides MQOPEN of a queue, or of a namelist, a process or the queue manager for inquire."""
    check_handles(facts)
    options = int(call.options)
    inputs = options & _INPUT
    if options & ~KNOWN_OPTIONS or not options & _ANY or inputs & (inputs - 1):
        raise OptionsError(f"open options {options:#x}: one way of input at most, and at least one use")
    check_opened(options, facts)
    if call.object_type == "queue":
        return _open_queue(call, options, facts, found, now, ids)
    object_type = object_type_of(call.object_type)
    if object_type is ObjectType.QMGR and call.object_name:
        raise NameNotValidForType(f"{object_type.name}({call.object_name}): the queue manager is opened without a name")
    if facts.named is None or type(facts.named) is not KINDS[object_type]:
        raise UnknownObjectName(f"{object_type.name}({call.object_name})")
    if options & (_MESSAGES | OpenOption.SET.value):
        raise OptionNotValidForType(f"{object_type.name} can only be opened for inquire")
    name = facts.named.name
    handle = HandleFacts(ids.handle(), facts.connection.connection, object_type, name, "", options)
    return Decision(Opened(handle=handle.handle), [OpenHandle(handle)])


def _open_queue(call: Open, options: int, facts: WideFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides the open of a queue. An alias or a remote queue opened only to inquire or set is the object itself."""
    connection = facts.connection.connection
    if facts.model is not None and facts.alias is None:
        # The check still holds when the internal call MakeQueue is performed: both are of one turn.
        check_dynamic_queues(facts)
        return _make(call, options, facts.model, facts.connection.user, now, ids)
    itself = facts.alias or facts.remote
    if itself is not None and not options & _MESSAGES:
        handle = HandleFacts(ids.handle(), connection, OBJECT_TYPES[type(itself)], itself.name, "", options)
        return Decision(Opened(handle=handle.handle, q_name=itself.name), [OpenHandle(handle)])
    queue, route = base_queue(call.object_name, facts)
    if options & _MESSAGES:
        check_may_use(queue.definition.name, facts.connection)
    if route is not None and options & _ONLY_LOCAL:
        raise OptionNotValidForType(f"{route.definition} is a remote queue: messages can be put to it, not got")
    options = _with_input(options, queue)
    opened = itself or queue.definition
    kind = ObjectType.QREMOTE if route is not None else ObjectType.QLOCAL
    handle = HandleFacts(ids.handle(), connection, kind, opened.name, queue.definition.name, options, route=route)
    return _opened(handle, queue, facts, found, now, ids)


def _opened(
    handle: HandleFacts,
    queue: QueueFacts,
    facts: WideFacts,
    found: Found | None,
    now: int,
    ids: Ids,
    made: tuple[AnyChange, ...] = (),
) -> Decision:
    """Returns the decision to open a handle, with the triggering that follows when it is a monitor's."""
    effects = _monitor_opened(queue, facts, found, now, ids) if handle.options & _INPUT else []
    changes: list[AnyChange] = [*made, OpenHandle(handle)]
    for effect in effects:
        changes.extend(effect.changes)
    return Decision(
        Opened(handle=handle.handle, q_name=queue.definition.name),
        changes,
        [call for effect in effects for call in effect.internal_calls],
        tuple(event for effect in effects for event in effect.events),
        judged=tuple(judged for effect in effects for judged in effect.judged),
    )


def _make(call: Open, options: int, model: ModelQueue, user: str, now: int, ids: Ids) -> Decision:
    """Decides the open of a model queue: an internal call makes a local queue like it, and opens that one."""
    like = {field: getattr(model, field) for field in MessageQueue.__struct_fields__}
    name = dynamic_name(call.dynamic_q_name, ids)
    own = {"name": name, "created_ms": now, "altered_ms": now, "made_by": user}
    definition = LocalQueue(**{**like, **own, "definition_type": model.definition_type})
    return Decision(
        internal_calls=[MakeQueue(definition=definition, options=options)], gather=lambda replies: replies[0]
    )


def dynamic_name(pattern: str, ids: Ids) -> str:
    """Returns the name of a dynamic queue: as given, or with 16 characters of its own where ``*`` stands at the end.

    Raises DynamicQNameError (2011): blank, wrong characters, ``*`` not at the end, or behind the 33rd place, where the
    name would grow longer than a name may be.
    """
    given = pattern.rstrip(" ")
    stem = given.removesuffix("*")
    if stem != given:
        given = f"{stem}{ids.handle():016X}"
    if not is_object_name(given):
        raise DynamicQNameError(
            f"dynamic_q_name {pattern!r}: a name, or at most 32 characters of one and a * at the end"
        )
    return given


def decide_make_queue(call: MakeQueue, facts: WideFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides the dynamic queue and its first handle; other queues may name it as initiation queue (13c)."""
    definition = call.definition
    there = facts.queue
    if there is not None and there.is_deleted:
        raise NameInUse(f"{definition.name} was deleted, and is still in use")
    if there is not None or facts.alias is not None or facts.remote is not None or facts.model is not None:
        raise ObjectAlreadyExists(f"{definition.name}: a queue has this name")
    queue = QueueFacts(definition)
    handle = HandleFacts(
        ids.handle(),
        facts.connection.connection,
        ObjectType.QLOCAL,
        definition.name,
        definition.name,
        _with_input(call.options, queue),
        is_creator=True,
    )
    return _opened(handle, queue, facts, found, now, ids, (SetDefinition(ObjectType.QLOCAL, definition),))


def _with_input(options: int, queue: QueueFacts) -> int:
    """Returns the options with input resolved to shared or exclusive. Raises ObjectInUse (2042) on a conflict."""
    if not options & _INPUT:
        return options
    definition = queue.definition
    wanted = options & _INPUT
    if wanted == _AS_Q_DEF:
        wanted = int(definition.def_input_open_option)
    if definition.shareability is Shareability.NOT_SHAREABLE:
        wanted = _EXCLUSIVE
    if queue.open_exclusive or (wanted == _EXCLUSIVE and queue.readers):
        how = "exclusively" if queue.open_exclusive else "for input"
        raise ObjectInUse(f"{definition.name} is open {how} elsewhere")
    return options & ~_INPUT | wanted


def look_for_open(call: Open, facts: WideFacts, now: int) -> Selection | None:
    """Returns the selection of an initiation queue's trigger messages, where RECOVER(ALL) has to count them."""
    queue = facts.queue
    if queue is None or not call.options & _INPUT or queue.open_input_count or not queue.lying:
        return None
    if not any(neighbour.recovers_all for neighbour in facts.served):
        return None
    return Selection(queue.definition.name, now, limit=queue.lying, limit_bytes=_ALL_BYTES)


def _lying(found: Found | None) -> Counter[str]:
    """Returns how many trigger messages lie on an initiation queue, by the queue that they are for."""
    messages = found.messages if found is not None else ()
    counted: Counter[str] = Counter()
    for message in messages:
        if message.descriptor.format == FORMAT_TRIGGER:
            with suppress(MQError):
                counted[unpack_tm(message.data).q_name] += 1
    return counted


def _monitor_opened(queue: QueueFacts, facts: WideFacts, found: Found | None, now: int, ids: Ids) -> list[Effects]:
    """Returns the effects of condition 13c: the first open for input of an initiation queue judges all that name it."""
    effects: list[Effects] = []
    if queue.open_input_count or queue.shared is not None:
        return effects  # of a shared queue each member judges it behind the open
    opened = replace(queue, open_input_count=1)
    lying = _lying(found)
    placed = 0
    for neighbour in facts.served:
        itself = neighbour.queue.definition.name == queue.definition.name
        situation = Situation(
            Happened.MONITOR_OPENED,
            opened if itself else neighbour.queue,
            neighbour.process,
            opened,
            facts.q_mgr.trigger_interval,
            now,
            had_monitor=queue.open_input_count,
            under_way=neighbour.under_way + lying[neighbour.queue.definition.name],
        )
        effect = trigger(situation, facts.q_mgr.name, ids, placed=placed)
        placed += len(effect.events) - len(effect.internal_calls)
        effects.append(effect)
    return effects
