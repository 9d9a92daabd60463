"""The state of real queues as the begin of a scenario: their definitions, messages, readers and monitors.

The order makes no trigger message: the queue has no initiation queue until its messages are there and its readers and
monitors have it open. Naming the initiation queue is no occasion (seed 001).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from trigmon.bridge.seen_queue import Fact, NotSeen, SeenQueue
from trigmon.mq.attributes import ATTRIBUTES, AnyDefinition, LocalQueue
from trigmon.mq.calls import Alter, Call, Define, Put
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import Inhibit, ObjectType, OpenOption
from trigmon.mqsc.commands import Command
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.simulate.scenario import Expected, Mqsc, Open, Scenario, Step

MOST_MESSAGES: Final = 100_000
"""A queue with more messages is not played: their puts would take minutes."""
MOST_HANDLES: Final = 1000
_AT_LAST: Final = ("initiation_q_name", "inhibit_put", "max_q_depth", "usage")
"""What the queue gets behind all else: with it, its messages could not be put, or would trigger."""

_NEEDED: Final = frozenset({Fact.ATTRIBUTES, Fact.DEPTH, Fact.READERS})


class CannotStartError(Exception):
    """A scenario cannot begin with this state; the text says why."""


def beginning_with(scenario: Scenario, queues: Iterable[SeenQueue]) -> Scenario:
    """Returns the scenario with steps before its setup that make the state of the queues. Raises CannotStartError."""
    state = tuple(_steps(list(queues), scenario.q_mgrs[0]))
    return replace(scenario, state=state)


def _steps(queues: list[SeenQueue], q_mgr: str) -> Iterator[Step]:
    def step(application: str, act: Mqsc | Open) -> Step:
        return Step(0, 1, "state", application, q_mgr, act, Expected())

    def commands(*calls: Call) -> Step:
        return step("operator", Mqsc((Command(text="", line=1, calls=calls),)))

    initiations = _initiations(queues)
    watched = [seen for seen in queues if seen.queue.definition.name not in initiations]
    for seen in watched:
        _check(seen)
        if seen.trigger_interval_ms:
            interval = {"trigger_interval": seen.trigger_interval_ms}
            yield commands(Alter(object_type="QMGR", name="", attributes=interval))
    for queue in initiations.values():
        yield commands(_define(ObjectType.QLOCAL, queue.definition))
    for seen in watched:
        definition = seen.queue.definition
        process = seen.process(definition.process_name)
        if process is not None and not isinstance(process, NotSeen):
            yield commands(_define(ObjectType.PROCESS, process))
        yield commands(_define(ObjectType.QLOCAL, definition, _without_the_last(definition)))
        put = Put(q_name=definition.name, data=b"", descriptor=MessageDescriptor())
        yield commands(*[put] * seen.queue.depth)
        for number in range(seen.queue.open_input_count):
            yield step(f"reader {number + 1} of {definition.name}", _for_input(definition.name))
    for queue in initiations.values():
        for number in range(queue.open_input_count):
            yield step(f"monitor {number + 1} of {queue.definition.name}", _for_input(queue.definition.name))
    for seen in watched:
        definition = seen.queue.definition
        last = {name: getattr(definition, name) for name in _AT_LAST}
        yield commands(Alter(object_type="QLOCAL", name=definition.name, attributes=last))


def _initiations(queues: Iterable[SeenQueue]) -> dict[str, QueueFacts]:
    """Returns the initiation queues of the queues, by name."""
    found: dict[str, QueueFacts] = {}
    for seen in queues:
        name = seen.queue.definition.initiation_q_name
        queue = seen.initiation(name)
        if queue is not None and not isinstance(queue, NotSeen):
            found[name] = queue
    return found


def _check(seen: SeenQueue) -> None:
    """Raises CannotStartError for a queue that cannot be made here as it is there."""
    name, queue = seen.asked, seen.queue
    if queue.depth > MOST_MESSAGES:
        raise CannotStartError(f"{name} has {queue.depth} messages, and a scenario begins with {MOST_MESSAGES} at most")
    if queue.open_input_count > MOST_HANDLES:
        raise CannotStartError(f"{name} is open for input {queue.open_input_count} times, more than {MOST_HANDLES}")
    definition = queue.definition
    for found in (seen.process(definition.process_name), seen.initiation(definition.initiation_q_name)):
        if isinstance(found, NotSeen):
            raise CannotStartError(f"{name}: {found.why}")
    for fact, why in seen.unseen.items():
        if fact in _NEEDED:
            raise CannotStartError(f"{name}: {fact.value}: {why}")


def _define(kind: ObjectType, definition: AnyDefinition, attributes: dict[str, Any] | None = None) -> Define:
    values = _attributes(kind, definition) if attributes is None else attributes
    return Define(object_type=kind.name, name=definition.name, attributes=values, replace=True)


def _without_the_last(definition: LocalQueue) -> dict[str, Any]:
    values = {n: v for n, v in _attributes(ObjectType.QLOCAL, definition).items() if n not in _AT_LAST}
    return values | {"inhibit_put": Inhibit.ALLOWED, "max_q_depth": MOST_MESSAGES}


def _attributes(kind: ObjectType, definition: AnyDefinition) -> dict[str, Any]:
    return {
        name: getattr(definition, name)
        for name, attribute in ATTRIBUTES[kind].items()
        if not attribute.read_only and not attribute.ours and name != "qsg_disp"
    }


def _for_input(name: str) -> Open:
    return Open(queue=name, options=OpenOption.INPUT_SHARED.value, handle=name)
