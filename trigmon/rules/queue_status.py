"""DISPLAY QSTATUS and RESET QSTATS: how queues stand, how old their oldest message is, and what went through them.

What is counted lies in the memory of the queue manager's process and begins with it, and so does what is kept of the
oldest messages: they are added behind the decision (:func:`complete_queue_status`). Of a shared queue the depth is the
group's and what is counted is this member's.
"""

from __future__ import annotations

from heapq import nsmallest
from operator import itemgetter
from typing import Any

from msgspec.structs import asdict, replace

from trigmon.mq.calls import QueueStatus, ResetQueueStatistics
from trigmon.mq.enums import word
from trigmon.mq.names import matches
from trigmon.mq.replies import Listing
from trigmon.rules.call_rights import may_see_queue
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import WorldFacts
from trigmon.rules.model.manager_state import ManagerState
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.stored_messages import SLICE, Found, Selection, Summary
from trigmon.rules.runs.pause import pauses_of, shown_pauses


def decide_queue_status(
    call: QueueStatus | ResetQueueStatistics, facts: WorldFacts, found: Found | None, now: int, ids: Ids
) -> Decision:
    """Lists the queues, a slice at a time."""
    # The first of those behind, before anything is made of the rest.
    named = ((it.definition.name, it) for it in facts.world.queues if it.definition.name > call.after)
    named = ((name, it) for name, it in named if may_see_queue(name, facts))
    limit = max(1, min(call.limit, SLICE))
    behind = nsmallest(limit + 1, ((name, it) for name, it in named if matches(name, call.q_name)), key=itemgetter(0))
    return Decision(Listing(rows=[_row(queue, facts) for _, queue in behind[:limit]], more=len(behind) > limit))


def oldest_of(queue: QueueFacts, now: int) -> Selection:
    """Selects the message that arrived first."""
    priorities = [priority for priority, count in enumerate(queue.depths) if count]
    return Selection(queue.definition.name, now, summary=Summary(priorities))


def complete_queue_status(call: QueueStatus, reply: Listing, manager: ManagerState) -> Listing:
    """Adds the oldest message of each queue, and what went through it."""
    return _counted(reply, manager)


def complete_reset(call: ResetQueueStatistics, reply: Listing, manager: ManagerState) -> Listing:
    """Adds the same, and counts anew from now on."""
    counted = _counted(reply, manager)
    for row in reply.rows:
        manager.activity.reset(row["name"], row["current_q_depth"], manager.now_ms)
    return counted


def _counted(reply: Listing, manager: ManagerState) -> Listing:
    return replace(reply, rows=[_with_counters(row, manager) for row in reply.rows])


def _with_counters(row: dict[str, Any], manager: ManagerState) -> dict[str, Any]:
    now, oldest = manager.now_ms, manager.oldest_put_ms(row["name"]) if row["current_q_depth"] else 0
    counted = asdict(manager.activity.of(row["name"], row["current_q_depth"]))
    age_s = max(0, now - oldest) // 1000 if oldest else 0
    return {
        **row,
        **counted,
        "oldest_ms": oldest,
        "oldest_age_s": age_s,
        "since_s": (now - counted["since_ms"]) // 1000,
    }


def _row(queue: QueueFacts, facts: WorldFacts) -> dict[str, Any]:
    definition = queue.definition
    return {
        "name": definition.name,
        "description": definition.description,
        "usage": word(definition.usage),
        "definition_type": word(definition.definition_type),
        "current_q_depth": queue.depth,
        "max_q_depth": definition.max_q_depth,
        "open_input_count": queue.readers,
        "open_output_count": queue.open_output_count,
        "uncommitted_msgs": queue.uncommitted_puts + queue.uncommitted_gets,
        "trigger_control": word(definition.trigger_control),
        "trigger_type": word(definition.trigger_type),
        "process_name": definition.process_name,
        **shown_pauses(facts, definition.name, definition.process_name),
        "paused_what": [pause.what for pause in pauses_of(facts, definition.name, definition.process_name)],
    }
