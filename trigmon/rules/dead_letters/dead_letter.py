"""Dead letters: how one is put, and what its arrival triggers.

The first to become one is a trigger message that its initiation queue did not take; else it is dropped. The
dead-letter queue may itself be triggered, once: a trigger message raised here that cannot be placed in turn is
dropped, so there is no endless circle. The application's own call succeeds whatever happens here.
"""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.enums import Persistence
from trigmon.mq.reasons import Reason
from trigmon.rules.messages.dead_letter_queue import dead_data, dead_descriptor, why_not
from trigmon.rules.messages.put import put_situation
from trigmon.rules.messages.units_of_work import check_limit
from trigmon.rules.model.changes import AddMessage
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.events import TriggerMessageDropped
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.internal_calls import DeadLetter
from trigmon.rules.model.queue_facts import counted_priority
from trigmon.rules.model.stored_messages import Found
from trigmon.rules.triggers.effects import trigger


def decide_dead_letter(call: DeadLetter, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Places the trigger message on DEADQ, in the unit of work it belongs to and counts for (2024), else drops it.

    It keeps its descriptor, and so its persistence, but for the priority, which is that queue's DEFPRTY.
    """
    name, queue, data = facts.q_mgr.name, facts.queue, dead_data(call, facts, now)
    hindered = why_not(facts, len(data))
    if hindered or queue is None:
        why = "its program could not start"
        if isinstance(call.reason, Reason):
            why = f"{call.initiation_q} refused it ({call.reason.mq_name})"
        return Decision(events=(TriggerMessageDropped(call.q_name, f"{why} and the dead-letter queue: {hindered}"),))
    descriptor = replace(dead_descriptor(call.descriptor), priority=queue.definition.def_priority)
    added = AddMessage(
        queue.definition.name,
        ids.message(),
        counted_priority(queue.definition, descriptor.priority),
        descriptor.persistence == Persistence.PERSISTENT,
        descriptor,
        data,
        unit_id=call.unit_id,
        is_held=call.unit_id != 0,
        on_backout=call.on_backout,
    )
    effects = trigger(put_situation(facts, queue, descriptor.priority, now), name, ids, call.unit_id)
    if call.unit_id:
        check_limit(facts, 1 + effects.in_unit)
    placed = Decision(
        changes=[added, *effects.changes],
        internal_calls=effects.internal_calls,
        events=effects.events,
        judged=effects.judged,
    )
    return ends_here(placed, queue.definition.name)


def ends_here(placed: Decision, q_name: str) -> Decision:
    """Returns the put of a dead letter without further dead letters, so that no message moves in a circle."""
    dropped = tuple(TriggerMessageDropped(q_name, "a dead letter has no dead letter") for _ in placed.internal_calls)
    return replace(placed, internal_calls=[], events=(*placed.events, *dropped))
