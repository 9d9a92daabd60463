"""What is ours: messages backed out too often, put aside too early, too late, wrongly, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from tests.mutations.fault import Fault
from tests.mutations.planting import Patches
from trigmon.mq.calls import Get
from trigmon.mq.enums import BackoutRequeue, Inhibit
from trigmon.rules.dead_letters import backout_requeue
from trigmon.rules.model.changes import RemoveMessage
from trigmon.rules.model.decision import Decision
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.verbs import VERBS


def _minds(says: Callable[[QueueFacts], bool]) -> Callable[[Patches], None]:
    return lambda patches: patches.setattr(backout_requeue, "_minds", says)


def _threshold(by: int) -> Callable[[Patches], None]:
    """Gets see another BOTHRESH than the queue has."""

    def spoiled(call: Any, facts: Facts, *rest: Any) -> Decision:
        queue = facts.queue
        if queue is not None and queue.definition.backout_threshold:
            threshold = queue.definition.backout_threshold + by
            facts = replace(
                facts, queue=replace(queue, definition=replace(queue.definition, backout_threshold=threshold))
            )
        return backout_requeue.decide_get(call, facts, *rest)

    return lambda patches: patches.setitem(VERBS, Get, replace(VERBS[Get], decide=spoiled))


def _moved(
    before: Callable[[Any, Facts], tuple[Any, Facts]] = lambda message, facts: (message, facts),
    after: Callable[[Decision], Decision] = lambda decision: decision,
) -> Callable[[Patches], None]:
    """The move, of a changed message or among changed queues, or with another result."""
    right = backout_requeue.moved

    def spoiled(message: Any, to_q_name: str, descriptor: Any, data: bytes, facts: Facts, *rest: Any) -> Decision:
        message, facts = before(message, facts)
        return after(right(message, to_q_name, descriptor, data, facts, *rest))

    return lambda patches: patches.setattr(backout_requeue, "moved", spoiled)


def _open_to_puts(message: Any, facts: Facts) -> tuple[Any, Facts]:
    if facts.queue is None:
        return message, facts
    definition = replace(facts.queue.definition, inhibit_put=Inhibit.ALLOWED)
    return message, replace(facts, queue=replace(facts.queue, definition=definition))


def _lost(message: Any, *_: Any) -> Decision:
    return Decision(changes=[RemoveMessage(message)])


def _cleaned(change: Callable[[Any, Any], Any]) -> Callable[[Patches], None]:
    right = backout_requeue.counted_anew
    return lambda patches: patches.setattr(
        backout_requeue, "counted_anew", lambda descriptor, now: change(descriptor, right(descriptor, now))
    )


FAULTS = [
    Fault("poison: above BOTHRESH, not at it", _threshold(1)),
    Fault("poison: one backout too early", _threshold(-1)),
    Fault("poison: BOREQ(APPL) is taken for QMGR", _minds(lambda queue: queue.definition.backout_threshold > 0)),
    Fault("poison: it is never looked for", _minds(lambda queue: False)),
    Fault(
        "poison: BOTHRESH(0) is a threshold",
        _minds(lambda queue: queue.definition.backout_requeue is BackoutRequeue.QMGR),
    ),
    Fault("poison: a browse puts it aside", lambda patches: patches.setattr(backout_requeue, "BROWSES", 0)),
    Fault(
        "poison: its backout count goes with it",
        _cleaned(lambda before, after: replace(after, backout_count=before.backout_count)),
    ),
    Fault(
        "poison: what its count was is forgotten", _cleaned(lambda before, after: replace(after, appl_origin_data=""))
    ),
    Fault("poison: it lasts for ever", _moved(before=lambda message, facts: (replace(message, expires_ms=0), facts))),
    Fault("poison: PUT(DISABLED) is not looked at", _moved(before=_open_to_puts)),
    Fault(
        "poison: it triggers nothing", _moved(after=lambda decision: replace(decision, changes=decision.changes[:2]))
    ),
    Fault(
        "poison: it stays on its queue too",
        _moved(after=lambda decision: replace(decision, changes=decision.changes[1:])),
    ),
    Fault(
        "poison: the dead-letter queue is not tried",
        lambda patches: patches.setattr(backout_requeue, "why_not", lambda facts, length: "it is not tried"),
    ),
    Fault(
        "poison: what BOQNAME cannot take is lost",
        lambda patches: patches.setattr(backout_requeue, "_dead_letter", _lost),
    ),
    Fault("poison: a group is torn", lambda patches: patches.setattr(backout_requeue, "_GROUPS", 0)),
    Fault(
        "poison: a group goes though it has no room together",
        lambda patches: patches.setattr(backout_requeue, "_no_room", lambda count, facts: ""),
    ),
    Fault(
        "poison: who met it waits for the rest of a group that has gone",
        lambda patches: patches.setattr(backout_requeue, "_leaves", lambda call, message, facts: None),
    ),
    Fault("poison: MQRO_DISCARD_MSG is not heard", lambda patches: patches.setattr(backout_requeue, "_DISCARD", 0)),
]
