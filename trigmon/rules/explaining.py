"""Explain: the verdict a put would meet now, by the same judging that a put goes through."""

from __future__ import annotations

from trigmon.mq.calls import Explain, Explained
from trigmon.mq.errors import PriorityError
from trigmon.rules.decision import Decision, Ids
from trigmon.rules.facts import Facts, Found
from trigmon.rules.put import put_situation
from trigmon.rules.resolving import base_queue
from trigmon.rules.triggers.table import judge
from trigmon.rules.triggers.wording import explanations


def decide_explain(call: Explain, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """What a put of a message of this priority would meet; nothing changes."""
    queue, _ = base_queue(call.q_name, facts)
    opened = facts.alias or facts.remote or queue.definition
    if call.priority < -1:
        raise PriorityError(f"priority {call.priority}: 0 to 9, or -1 for the queue's own")
    priority = opened.def_priority if call.priority < 0 else min(call.priority, facts.q_mgr.max_priority)
    situation = put_situation(facts, queue, priority, now)
    verdict = judge(situation)
    definition = queue.definition
    values = {
        "priority": priority,
        "counted_priority": situation.priority,
        "current_q_depth": queue.depth,
        "qualifying_depth": queue.waiting(definition.trigger_msg_priority),
        "uncommitted_puts": queue.uncommitted_puts,
        "uncommitted_gets": queue.uncommitted_gets,
        "open_input_count": queue.open_input_count,
        "trigger_stamp_ms": queue.trigger_stamp_ms,
        "process_name": definition.process_name,
        "initiation_q_name": definition.initiation_q_name,
    }
    return Decision(
        Explained(
            q_name=definition.name,
            fires=verdict.fires,
            occasion=verdict.occasion,
            fails=verdict.fails,
            conditions=explanations(situation, verdict),
            values=values,
        )
    )
