"""DISPLAY QSTATUS and RESET QSTATS: how queues stand, how old their oldest message is, and what went through them.

What is counted lies in the memory of the queue manager's process and begins with it, so it is added behind the decision
(:func:`complete_queue_status`). Of a shared queue the depth is the group's and what is counted is this member's.
"""

from __future__ import annotations

from heapq import nsmallest
from typing import Any

from msgspec.structs import asdict, replace

from trigmon.mq.calls import Call, QueueStatus, ResetQueueStatistics
from trigmon.mq.enums import word
from trigmon.mq.names import matches
from trigmon.mq.replies import Listing, Reply, Values
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts, WorldFacts
from trigmon.rules.model.internal_calls import OldestMessage
from trigmon.rules.model.manager_state import ManagerState
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.stored_messages import SLICE, Found, Selection, Summary
from trigmon.rules.runs.pause import paused


def decide_queue_status(
    call: QueueStatus | ResetQueueStatistics, facts: WorldFacts, found: Found | None, now: int, ids: Ids
) -> Decision:
    """Lists the queues, a slice at a time; the oldest message is looked for where there is one."""
    named = {it.definition.name: it for it in facts.world.queues if matches(it.definition.name, call.q_name)}
    limit = max(1, min(call.limit, SLICE))
    behind = nsmallest(limit + 1, (name for name in named if name > call.after))
    queues = [named[name] for name in behind[:limit]]
    filled = [queue.definition.name for queue in queues if queue.depth]
    looks: list[Call] = [OldestMessage(q_name=name) for name in filled]

    def listing(replies: list[Reply]) -> Listing:
        found = [each.values["put_ms"] for each in replies if isinstance(each, Values)]
        oldest = dict(zip(filled, found, strict=True))
        rows = [_row(queue, oldest.get(queue.definition.name, 0), facts) for queue in queues]
        return Listing(rows=rows, more=len(behind) > limit)

    return Decision(internal_calls=looks, gather=listing) if looks else Decision(listing([]))


def look_for_oldest(call: OldestMessage, facts: Facts, now: int) -> Selection | None:
    """Selects the message that arrived first."""
    if facts.queue is None:
        return None
    priorities = [priority for priority, count in enumerate(facts.queue.depths) if count]
    return Selection(call.q_name, now, summary=Summary(priorities))


def decide_oldest(call: OldestMessage, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Returns when the oldest message that a get could have was put; 0 where there is none."""
    messages = found.messages if found is not None else ()
    return Decision(Values(values={"put_ms": messages[0].descriptor.put_ms if messages else 0}))


def complete_queue_status(call: QueueStatus, reply: Listing, manager: ManagerState) -> Listing:
    """Adds what went through each queue."""
    return _counted(reply, manager)


def complete_reset(call: ResetQueueStatistics, reply: Listing, manager: ManagerState) -> Listing:
    """Adds what went through each queue, which is counted anew from now on."""
    counted = _counted(reply, manager)
    for row in reply.rows:
        manager.activity.reset(row["name"], row["current_q_depth"], manager.now_ms)
    return counted


def _counted(reply: Listing, manager: ManagerState) -> Listing:
    return replace(reply, rows=[_with_counters(row, manager) for row in reply.rows])


def _with_counters(row: dict[str, Any], manager: ManagerState) -> dict[str, Any]:
    now, oldest = manager.now_ms, row["oldest_ms"]
    counted = asdict(manager.activity.of(row["name"], row["current_q_depth"]))
    age_s = max(0, now - oldest) // 1000 if oldest else 0
    return {**row, **counted, "oldest_age_s": age_s, "since_s": (now - counted["since_ms"]) // 1000}


def _row(queue: QueueFacts, oldest_ms: int, facts: WorldFacts) -> dict[str, Any]:
    definition = queue.definition
    return {
        "name": definition.name,
        "current_q_depth": queue.depth,
        "max_q_depth": definition.max_q_depth,
        "open_input_count": queue.readers,
        "open_output_count": queue.open_output_count,
        "uncommitted_msgs": queue.uncommitted_puts + queue.uncommitted_gets,
        "oldest_ms": oldest_ms,
        "trigger_control": word(definition.trigger_control),
        "trigger_type": word(definition.trigger_type),
        "process_name": definition.process_name,
        "paused": paused(facts, definition.name, definition.process_name),
    }
