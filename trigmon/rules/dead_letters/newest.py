"""The newest message of a dead-letter queue or a backout queue: when it came there, and why."""

from __future__ import annotations

from trigmon.mq.replies import Values
from trigmon.rules.dead_letters.manage import dead_message, name_of
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.internal_calls import NewestMessage
from trigmon.rules.model.stored_messages import Found, Selection, Summary


def look_for_newest(call: NewestMessage, facts: Facts, now: int) -> Selection | None:
    """Selects the message that arrived last."""
    if facts.queue is None:
        return None
    filled = [priority for priority, count in enumerate(facts.queue.depths) if count]
    return Selection(call.q_name, now, summary=Summary(newest_of=filled))


def decide_newest(call: NewestMessage, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Returns when it came, and the program's words or the reason; both empty where there is none."""
    messages = found.messages if found is not None else ()
    if not messages:
        return Decision(Values(values={"at_ms": 0, "error": ""}))
    dead = dead_message(messages[-1])
    error = dead.rejection.why if dead.rejection is not None else name_of(dead.reason)
    return Decision(Values(values={"at_ms": dead.dead_ms, "error": error}))
