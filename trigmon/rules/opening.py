"""MQOPEN: which object a name means, who may have it open beside whom, and the first monitor's arrival (13c)."""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.attributes import AliasQueue, LocalQueue
from trigmon.mq.calls import Open, Opened
from trigmon.mq.enums import ObjectType, OpenOption, Shareability
from trigmon.mq.errors import (
    AliasBaseQTypeError,
    HandleNotAvailable,
    ObjectInUse,
    ObjectTypeError,
    OptionNotValidForType,
    OptionsError,
    UnknownAliasBaseQ,
    UnknownObjectName,
)
from trigmon.rules.changes import AnyChange, OpenHandle
from trigmon.rules.decision import Decision, Ids
from trigmon.rules.facts import Facts, Found, HandleFacts, QueueFacts
from trigmon.rules.triggers.effects import Effects, trigger
from trigmon.rules.triggers.situation import Happened, Situation

KNOWN_OPTIONS = sum(OpenOption)
_AS_Q_DEF = OpenOption.INPUT_AS_Q_DEF.value
_SHARED = OpenOption.INPUT_SHARED.value
_EXCLUSIVE = OpenOption.INPUT_EXCLUSIVE.value
_INPUT = _AS_Q_DEF | _SHARED | _EXCLUSIVE
_MESSAGES = _INPUT | OpenOption.BROWSE.value | OpenOption.OUTPUT.value
_ANY = _MESSAGES | OpenOption.INQUIRE.value | OpenOption.SET.value


def base_queue(name: str, facts: Facts) -> QueueFacts:
    """The local queue a name means, through an alias if it is one.

    Raises UnknownObjectName (2085), UnknownAliasBaseQ (2082), AliasBaseQTypeError (2001).
    """
    if facts.queue is not None:
        return facts.queue
    if facts.alias is None:
        raise UnknownObjectName(name)
    if facts.target_exists:
        raise AliasBaseQTypeError(f"{facts.alias.name} points at {facts.alias.base_q_name}, which is an alias")
    raise UnknownAliasBaseQ(f"{facts.alias.name} points at {facts.alias.base_q_name or 'nothing'}")


def decide_open(call: Open, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """MQOPEN of a queue, or of a process or the queue manager for inquire."""
    if len(facts.connection.handles) >= facts.q_mgr.max_handles:
        raise HandleNotAvailable(f"MAXHANDS({facts.q_mgr.max_handles})")
    options = int(call.options)
    inputs = options & _INPUT
    if options & ~KNOWN_OPTIONS or not options & _ANY or inputs & (inputs - 1):
        raise OptionsError(f"open options {options:#x}: one way of input at most, and at least one use")
    if call.object_type == "queue":
        return _open_queue(call.object_name, options, facts, now, ids)
    object_type = object_type_of(call.object_type)
    if facts.named is None:
        raise UnknownObjectName(call.object_name)
    if options & (_MESSAGES | OpenOption.SET.value):
        raise OptionNotValidForType(f"{object_type.name} can only be opened for inquire")
    name = facts.named.name
    handle = HandleFacts(ids.handle(), facts.connection.connection, object_type, name, "", options)
    return Decision(Opened(handle=handle.handle), [OpenHandle(handle)])


def object_type_of(word: str) -> ObjectType:
    """The kind of object a call names. Raises ObjectTypeError (2043)."""
    try:
        return ObjectType[word.upper()]
    except KeyError:
        known = " ".join(kind.name for kind in ObjectType)
        raise ObjectTypeError(f"{word}: known are {known}") from None


def _open_queue(name: str, options: int, facts: Facts, now: int, ids: Ids) -> Decision:
    """A queue. An alias opened only to inquire or set is the object itself; else its base is opened through it."""
    connection = facts.connection.connection
    if facts.alias is not None and not options & _MESSAGES:
        handle = HandleFacts(ids.handle(), connection, ObjectType.QALIAS, facts.alias.name, "", options)
        return Decision(Opened(handle=handle.handle, q_name=facts.alias.name), [OpenHandle(handle)])
    queue = base_queue(name, facts)
    options = _with_input(options, queue)
    opened: LocalQueue | AliasQueue = facts.alias or queue.definition
    handle = HandleFacts(ids.handle(), connection, ObjectType.QLOCAL, opened.name, queue.definition.name, options)
    effects = _monitor_opened(queue, facts, now, ids) if options & _INPUT else []
    changes: list[AnyChange] = [OpenHandle(handle)]
    for effect in effects:
        changes.extend(effect.changes)
    return Decision(
        Opened(handle=handle.handle, q_name=queue.definition.name),
        changes,
        [errand for effect in effects for errand in effect.errands],
        tuple(told for effect in effects for told in effect.told),
        judged=tuple(judged for effect in effects for judged in effect.judged),
    )


def _with_input(options: int, queue: QueueFacts) -> int:
    """The options with input resolved to shared or exclusive. Raises ObjectInUse (2042) on a conflict."""
    if not options & _INPUT:
        return options
    definition = queue.definition
    wanted = options & _INPUT
    if wanted == _AS_Q_DEF:
        wanted = int(definition.def_input_open_option)
    if definition.shareability is Shareability.NOT_SHAREABLE:
        wanted = _EXCLUSIVE
    if queue.open_exclusive or (wanted == _EXCLUSIVE and queue.open_input_count):
        how = "exclusively" if queue.open_exclusive else "for input"
        raise ObjectInUse(f"{definition.name} is open {how} elsewhere")
    return options & ~_INPUT | wanted


def _monitor_opened(queue: QueueFacts, facts: Facts, now: int, ids: Ids) -> list[Effects]:
    """Condition 13c: the first open for input of an initiation queue judges every queue that names it."""
    effects: list[Effects] = []
    if queue.open_input_count:
        return effects
    opened = replace(queue, open_input_count=1)
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
        )
        effect = trigger(situation, facts.q_mgr.name, ids, placed=placed)
        placed += len(effect.told) - len(effect.errands)
        effects.append(effect)
    return effects
