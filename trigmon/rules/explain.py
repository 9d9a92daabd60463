"""Explain: the verdict on a put made now, by the same conditions that judge a put."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.calls import Explain
from trigmon.mq.errors import PriorityError
from trigmon.mq.replies import Explained
from trigmon.mq.run import Run
from trigmon.rules.attention import counting
from trigmon.rules.messages.put import put_situation
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts, LedgerFacts, WideFacts
from trigmon.rules.model.manager_state import ManagerState
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.resolve_name import base_queue
from trigmon.rules.model.situation import Situation
from trigmon.rules.model.stored_messages import Found, Selection, Summary
from trigmon.rules.reservations.display_reservations import rows as reservation_rows
from trigmon.rules.runs.idle_run import Seen, how_it_ended, left_all, remedies, took_none, when_next
from trigmon.rules.runs.pause import pauses_of, rows
from trigmon.rules.triggers.sharing import in_group
from trigmon.rules.triggers.table import judge
from trigmon.rules.triggers.wording import explanations, what_time_will_bring

MOST_EXPIRED = 1000
"""Expired messages are counted up to so many, so that a question costs no more than a few puts."""


RUNS_LOOKED_AT = 16
"""Among so many runs of the queue the last one is looked for that no other joined."""


def look_for_explain(call: Explain, facts: Facts, now: int) -> Selection | None:
    """Selects the queue's expired messages, to be counted, and the one that waited longest for MAXWAIT."""
    return messages_of(facts.queue.definition, now) if facts.queue is not None else None


def messages_of(definition: LocalQueue, now: int) -> Selection:
    """Returns the selection of a queue's expired messages, and of the one that waited longest for its MAXWAIT."""
    oldest_of = range(definition.trigger_msg_priority, 10) if definition.max_wait_s else ()
    return Selection(definition.name, now, summary=Summary(oldest_of, MOST_EXPIRED))


def complete_explain(call: Explain, reply: Explained, manager: ManagerState) -> Explained:
    """Adds what its last run left, and the last verdicts of the queue, where they are asked for."""
    values = dict(reply.values)
    asked = values.pop("idle")
    if asked is not None:
        run, definition, trigger_interval = asked
        name = definition.name
        seen = Seen(manager.oldest_put_ms(name), manager.activity.left_ms(name), manager.started_ms)
        if left_all(run, seen):
            about = f"Run {run.run_id}: {how_it_ended(run)}; {when_next(definition, trigger_interval)}."
            values["idle"] = [about, *remedies(definition)]
    if not call.why_not:
        return replace(reply, values=values)
    values["started_ms"] = manager.started_ms
    return replace(reply, values=values, last=manager.last_verdicts(reply.q_name))


def decide_explain(call: Explain, facts: LedgerFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Returns the verdict on a put of a message of this priority; nothing changes."""
    queue, _ = base_queue(call.q_name, facts)
    opened = facts.alias or facts.remote or queue.definition
    reply = explained(queue, call.priority, opened.def_priority, facts, found, now)
    return Decision(replace(reply, values={**reply.values, "idle": _idle(queue, facts)}))


def _idle(queue: QueueFacts, facts: LedgerFacts) -> tuple[Run, LocalQueue, int] | None:
    """Returns the last run of a queue that should start something, where it took nothing and no other goes on."""
    definition = queue.definition
    is_busy = queue.readers or any(serving.q_name == definition.name for serving in facts.serves)
    if is_busy or queue.shared is not None or not counting(queue):
        return None
    run = took_none(facts.runs)
    return (run, definition, facts.q_mgr.trigger_interval) if run is not None else None


def explained(
    queue: QueueFacts, given: int, default: int, facts: WideFacts, found: Found | None, now: int
) -> Explained:
    """Returns the verdict on a put with the priority ``given``, -1 for the ``default``. Raises PriorityError."""
    if given < -1:
        raise PriorityError(f"priority {given}: 0 to 9, or -1 for the queue's own")
    priority = default if given < 0 else min(given, facts.q_mgr.max_priority)
    situation = in_group(put_situation(facts, queue, priority, now))
    verdict = judge(situation)
    oldest_ms = found.messages[0].descriptor.put_ms if found is not None and found.messages else None
    later = replace(situation, oldest_ms=oldest_ms, under_way=facts.under_way)
    return Explained(
        q_name=queue.definition.name,
        fires=verdict.fires,
        occasion=verdict.occasion,
        fails=verdict.fails,
        conditions=explanations(situation, verdict) + what_time_will_bring(later),
        values=_values(situation, facts, queue, priority, found),
    )


def _values(
    situation: Situation, facts: WideFacts, queue: QueueFacts, priority: int, found: Found | None
) -> dict[str, Any]:
    """Returns the values by name that the answer shows beside the conditions."""
    definition, applied = queue.definition, situation.queue.definition
    expired = min(found.expired_count if found is not None else 0, queue.depth)
    spoken_for = sum(reservation.left for reservation in facts.reservations if not reservation.behind)
    values: dict[str, Any] = {
        "priority": priority,
        "counted_priority": situation.priority,
        "current_q_depth": queue.depth,
        "available_msgs": max(0, queue.depth - queue.unseen - expired - spoken_for),
        "expired_msgs": expired,
        "expired_is_capped": expired >= MOST_EXPIRED,
        "qualifying_depth": queue.waiting(applied.trigger_msg_priority),
        "trigger_msg_priority": applied.trigger_msg_priority,
        "uncommitted_puts": queue.uncommitted_puts,
        "uncommitted_gets": queue.uncommitted_gets,
        "reservations": reservation_rows(facts.reservations),
        "open_input_count": queue.open_input_count,
        "trigger_stamp_ms": queue.trigger_stamp_ms,
        "process_name": definition.process_name,
        "initiation_q_name": definition.initiation_q_name,
        "pauses": rows(pauses_of(facts, definition.name, definition.process_name)),
    }
    if queue.shared is not None:
        values["group"] = facts.group
        values["readers"] = [
            {"q_mgr_name": reader.q_mgr_name, "open_input_count": reader.count, "exclusive": reader.is_exclusive}
            for reader in queue.shared.readers
        ]
    return values
