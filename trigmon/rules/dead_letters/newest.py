"""The newest message of a dead-letter queue or a backout queue: when it came there, and why."""

from __future__ import annotations

from trigmon.mq.replies import Values
from trigmon.rules.dead_letters.backout_requeue import backouts_before
from trigmon.rules.dead_letters.manage import DeadMessage, dead_message
from trigmon.rules.dead_letters.reason_text import reason_text
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
    """Returns when it came, and why, as a sentence; each empty where nothing says it."""
    messages = found.messages if found is not None else ()
    if not messages:
        return Decision(Values(values={"at_ms": 0, "error": ""}))
    dead = dead_message(messages[-1])
    return Decision(Values(values={"at_ms": dead.dead_ms, "error": why_dead(dead)}))


def why_dead(dead: DeadMessage) -> str:
    """Returns why a message is where it is, as a sentence; empty where nothing says it."""
    program_text = dead.rejection.why if dead.rejection is not None else ""
    dest_q_name = dead.header.dest_q_name if dead.header is not None else ""
    backouts = backouts_before(dead.message.descriptor) or 0
    return reason_text(dead.reason, program_text, dest_q_name, backouts) if program_text or dead.reason else ""
