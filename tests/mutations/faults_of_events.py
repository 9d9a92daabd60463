"""Event messages: reported too early or too late, without what they enable, or so that they hinder what they report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from tests.mutations.fault import Fault
from tests.mutations.planting import Patches
from trigmon.mq.errors import QFull
from trigmon.qmgr import event_messages
from trigmon.rules.event_messages import event_put, queue_events
from trigmon.rules.model.decision import Decision
from trigmon.rules.model.internal_calls import PutEvent
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.verbs import VERBS


def _depth(by: int) -> Callable[[Patches], None]:
    """The depth is seen as so many messages more."""
    right = queue_events.due_events

    def spoiled(queue: QueueFacts, **more: Any) -> Iterator[str]:
        depths = (queue.depths[0] + by, *queue.depths[1:])
        return right(replace(queue, depths=depths), **more)

    return lambda patches: patches.setattr(event_messages, "due_events", spoiled)


def _waited(by: int) -> Callable[[Patches], None]:
    right = queue_events.due_events

    def spoiled(queue: QueueFacts, *, waited_ms: int | None, **more: Any) -> Iterator[str]:
        return right(queue, waited_ms=None if waited_ms is None else waited_ms + by, **more)

    return lambda patches: patches.setattr(event_messages, "due_events", spoiled)


def _enables_nothing(event: str) -> Callable[[Patches], None]:
    return lambda patches: patches.setitem(queue_events._AFTERWARDS, event, {})


def _refuses(patches: Patches) -> None:
    """A full event queue is the caller's affair."""
    right = event_put.decide_put_event

    def spoiled(call: PutEvent, *rest: Any) -> Decision:
        decision = right(call, *rest)
        if decision.events and not decision.changes:
            raise QFull(call.q_name)
        return decision

    patches.setitem(VERBS, PutEvent, replace(VERBS[PutEvent], decide=spoiled))
    patches.setattr(event_messages.EventMessages, "_try", lambda self, *given: self._manager.perform(*given))


FAULTS = (
    Fault("events: high comes a message too early", _depth(1)),
    Fault("events: high comes a message too late", _depth(-1)),
    Fault("events: high does not disable itself", _enables_nothing(queue_events.HIGH)),
    Fault("events: low enables nothing", _enables_nothing(queue_events.LOW)),
    Fault("events: full does not disable itself", _enables_nothing(queue_events.FULL)),
    Fault("events: the service interval is a millisecond shorter", _waited(1)),
    Fault("events: the service interval is a millisecond longer", _waited(-1)),
    Fault("events: an event that finds no place refuses the call", _refuses),
)
