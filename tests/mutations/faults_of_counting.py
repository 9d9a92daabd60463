"""What is counted: one too many or too few, at the wrong priority, without some that count, with some that do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from tests.mutations.fault import Fault
from tests.mutations.planting import Patches, number_of, of_queue, put_in_force, replaced, with_store
from trigmon.mq.enums import MsgDeliverySequence
from trigmon.rules import explain
from trigmon.rules.messages import put, put_plan
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.shared_view import NO_DEPTH
from trigmon.rules.model.situation import Situation
from trigmon.rules.triggers import table
from trigmon.rules.triggers.conditions import Condition

COUNTING = (table.c03, table.c11, table.c12, table.c13, table.c13a, table.c13b, table.c13c)


def _more(queue: QueueFacts, by: int) -> QueueFacts:
    """The queue with so many more, or fewer, messages of sufficient priority."""
    depths = list(queue.depths)
    threshold = queue.definition.trigger_msg_priority
    if by >= 0:
        depths[threshold] += by
    for priority in range(9, -1, -1):
        gone = min(depths[priority], max(0, -by))
        depths[priority] -= gone
        by += gone
    return replace(queue, depths=tuple(depths))


def _whatever_priority(queue: QueueFacts, s: Situation) -> QueueFacts:
    return replace(queue, depths=(*NO_DEPTH[:9], queue.depth))


def _only_above(queue: QueueFacts, s: Situation) -> QueueFacts:
    threshold = queue.definition.trigger_msg_priority
    return replace(queue, depths=tuple(0 if p == threshold else n for p, n in enumerate(queue.depths)))


def _as_of_now(queue: QueueFacts, s: Situation) -> QueueFacts:
    """FIFO: all that lies there counts at the default priority of today."""
    definition = queue.definition
    if definition.msg_delivery_sequence is not MsgDeliverySequence.FIFO:
        return queue
    return replace(queue, depths=tuple(queue.depth if p == definition.def_priority else 0 for p in range(10)))


WAYS: dict[str, Callable[[QueueFacts, Situation], QueueFacts]] = {
    "counts one too few": lambda q, s: _more(q, -1),
    "counts messages of any priority": _whatever_priority,
    "does not count messages at the threshold itself": _only_above,
    "leaves uncommitted puts out": lambda q, s: _more(q, -q.uncommitted_puts),
    "counts uncommitted gets": lambda q, s: _more(q, q.uncommitted_gets),
    "counts FIFO messages at today's default priority": _as_of_now,
}


def ways() -> Iterator[Fault]:
    for condition in COUNTING:
        number = number_of(condition)
        # One too many lets 11 hold where 1 fires already; it takes two to be different.
        by, words = (2, "two") if condition is table.c11 else (1, "one")
        yield Fault(
            f"{number}: counts {words} too many", replaced(condition, of_queue(lambda q, s, by=by: _more(q, by)))
        )
        for way, change in WAYS.items():
            yield Fault(f"{number}: {way}", replaced(condition, of_queue(change)))
        yield Fault(f"{number}: leaves expired messages out", _without_expired(condition))


def _without_expired(condition: Condition) -> Callable[[Patches], None]:
    def plant(patches: Patches) -> None:
        store = with_store(patches)

        def expired_taken_out(queue: QueueFacts, s: Situation) -> QueueFacts:
            depths = list(queue.depths)
            for row in store[0]._rows.of.get(queue.definition.name, {}).values():
                if 0 < row.message.expires_ms <= s.now and not row.taken_by:
                    depths[row.message.priority] -= 1
            return replace(queue, depths=tuple(depths))

        put_in_force(patches, table.TABLE, {condition: of_queue(expired_taken_out)(condition)})

    return plant


def _counted_as(priority: Callable[..., int]) -> Callable[[Patches], None]:
    def plant(patches: Patches) -> None:
        patches.setattr(put, "counted_priority", priority)
        patches.setattr(put_plan, "counted_priority", priority)

    return plant


def _base_lends_its_priority(patches: Patches) -> None:
    right = put_plan.destination

    def destination(call, facts):
        queue, _, route = right(call, facts)
        return queue, queue.definition, route

    patches.setattr(put_plan, "destination", destination)


def _explained_apart(patches: Patches) -> None:
    right = explain.put_situation
    patches.setattr(
        explain, "put_situation", lambda f, q, priority, now: replace(right(f, q, priority, now), priority=priority)
    )


def _off_by_one(by: int) -> Callable[[Condition], Condition]:
    def spoil(condition: Condition) -> Condition:
        return lambda s: condition(replace(s, priority=s.priority + by))

    return spoil


FAULTS = [
    *ways(),
    Fault("2: asks for more than the threshold", replaced(table.c02, _off_by_one(-1))),
    Fault("2: is content with one less than the threshold", replaced(table.c02, _off_by_one(1))),
    Fault(
        "2: looks at the priority put with",
        replaced(table.c02, lambda c: lambda s: c(replace(s, priority=s.put_priority))),
    ),
    Fault("14: FIFO counts each at its own priority", _counted_as(lambda definition, priority: priority)),
    Fault("14: PRIORITY counts each at the default", _counted_as(lambda definition, priority: definition.def_priority)),
    Fault("14: explain counts a FIFO message at its own priority", _explained_apart),
    Fault("2: through an alias the base queue's default priority counts", _base_lends_its_priority),
]
