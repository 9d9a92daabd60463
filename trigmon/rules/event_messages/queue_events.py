"""Depth and service interval events of a queue, as MQ has them: which is due, and which it enables and disables.

A high event disables itself and enables low and full; a low event disables itself and enables high and full; a full
event disables itself and enables low. Of the service interval events each disables itself and enables the other. The
attributes change with the event, as MQ's do. Sources: the manual's pages of enabling queue depth events, and of the
rules for queue service interval events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import asdict, replace

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.calls import Call
from trigmon.mq.enums import ObjectType
from trigmon.mq.event_kinds import EVENTS, FORMAT_EVENT, PERFORMANCE_EVENT_QUEUE, EventRule, ServiceIntervalEvent
from trigmon.pcf.performance_event import pack_performance_event
from trigmon.rules.event_messages.event_put import Happened, json_event
from trigmon.rules.model.changes import AnyChange, SetDefinition
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.internal_calls import PutEvent, ReportQueueEvent
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.stored_messages import Found

HIGH, LOW, FULL = "queue_depth_high", "queue_depth_low", "queue_full"
INTERVAL_HIGH, INTERVAL_OK = "service_interval_high", "service_interval_ok"

_ENABLED, _DISABLED = EventRule.ENABLED, EventRule.DISABLED
_AFTERWARDS: dict[str, dict[str, Any]] = {
    HIGH: {"q_depth_high_event": _DISABLED, "q_depth_low_event": _ENABLED, "q_depth_max_event": _ENABLED},
    LOW: {"q_depth_low_event": _DISABLED, "q_depth_high_event": _ENABLED, "q_depth_max_event": _ENABLED},
    FULL: {"q_depth_max_event": _DISABLED, "q_depth_low_event": _ENABLED},
    INTERVAL_HIGH: {"q_service_interval_event": ServiceIntervalEvent.OK},
    INTERVAL_OK: {"q_service_interval_event": ServiceIntervalEvent.HIGH},
}


def has_events(definition: LocalQueue) -> bool:
    """Returns whether a put or a get that succeeds can lead to an event of this queue."""
    return bool(definition.q_depth_high_event or definition.q_depth_low_event or definition.q_service_interval_event)


def due_events(queue: QueueFacts, *, was_put: bool, was_got: bool, waited_ms: int | None) -> Iterator[str]:
    """Yields the events of a queue that is so now, after a put, a get, or both.

    ``waited_ms`` is the service time so far; None: the service timer is off.
    """
    definition, depth = queue.definition, 100 * queue.depth
    interval = definition.q_service_interval_event
    if waited_ms is not None and interval is not ServiceIntervalEvent.NONE:
        is_late = waited_ms > definition.q_service_interval
        if is_late and interval is ServiceIntervalEvent.HIGH:
            yield INTERVAL_HIGH
        elif not is_late and was_got and interval is ServiceIntervalEvent.OK:
            yield INTERVAL_OK
    if was_put and definition.q_depth_high_event and depth >= definition.q_depth_high_limit * definition.max_q_depth:
        yield HIGH
    elif was_got and definition.q_depth_low_event and depth <= definition.q_depth_low_limit * definition.max_q_depth:
        yield LOW


def is_full_due(queue: QueueFacts) -> bool:
    """Returns whether the refusal of a put is reported, since the queue is full."""
    return queue.shared is None and bool(queue.definition.q_depth_max_event)


def decide_queue_event(call: ReportQueueEvent, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Changes the queue's event attributes, and puts the event where it is asked for: as PCF, as JSON, or both."""
    queue = facts.queue
    if queue is None:
        return Decision()
    definition = replace(queue.definition, **_AFTERWARDS[call.event])
    changes: list[AnyChange] = []
    if definition != queue.definition:
        changes.append(SetDefinition(ObjectType.QLOCAL, definition))
    puts: list[Call] = []
    if facts.q_mgr.performance_event:
        puts.append(_as_pcf(call, facts.q_mgr.name))
    if facts.q_mgr.trigmon_event:
        puts.append(json_event(_happened(call, queue), facts.q_mgr.name, now))
    return Decision(changes=changes, internal_calls=puts)


def _as_pcf(call: ReportQueueEvent, q_mgr_name: str) -> PutEvent:
    reason = EVENTS[call.event].reason
    assert reason is not None
    data = pack_performance_event(reason, q_mgr_name, call.q_name, call.figures)
    return PutEvent(q_name=PERFORMANCE_EVENT_QUEUE, event=call.event, format=FORMAT_EVENT, data=data)


def _happened(call: ReportQueueEvent, queue: QueueFacts) -> Happened:
    definition, depth, figures = queue.definition, queue.depth, asdict(call.figures)
    name, most = definition.name, definition.max_q_depth
    if call.event in (INTERVAL_HIGH, INTERVAL_OK):
        interval_ms = definition.q_service_interval
        how = "no get came" if call.event == INTERVAL_HIGH else "a get came"
        text = f"queue {name}: {how} within {interval_ms} ms (QSVCINT)"
        return Happened(call.event, text, {"q_name": name, "service_interval_ms": interval_ms, **figures})
    percent = {HIGH: definition.q_depth_high_limit, LOW: definition.q_depth_low_limit, FULL: 100}[call.event]
    word = {HIGH: "QDEPTHHI", LOW: "QDEPTHLO", FULL: "MAXDEPTH"}[call.event]
    text = f"queue {name} has {depth} of at most {most} messages ({word}, {percent} %)"
    # The depth at which the event comes: a high one at the first that is not below, a low one at the last not above.
    limit = percent * most // 100 if call.event == LOW else -(-percent * most // 100)
    fields = {"q_name": name, "depth": depth, "max_depth": most, "limit": limit}
    return Happened(call.event, text, fields | figures)
