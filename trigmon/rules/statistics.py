"""The figures of a queue manager for metrics: what was counted since its process started, and the runs in progress."""

from __future__ import annotations

from collections import Counter

from msgspec.structs import replace

from trigmon.mq.calls import Statistics
from trigmon.mq.replies import Values
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import WorldFacts
from trigmon.rules.model.manager_state import ManagerState
from trigmon.rules.model.stored_messages import Found


def decide_statistics(call: Statistics, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Counts the runs in progress by process; :func:`complete_statistics` adds what was counted."""
    in_progress = Counter(serving.slot for serving in facts.serves)
    return Decision(Values(values={"runs_in_progress": dict(in_progress)}))


def complete_statistics(call: Statistics, reply: Values, manager: ManagerState) -> Values:
    """Adds the counters of the queue manager's process."""
    return replace(reply, values={**reply.values, **manager.figures(), "started_ms": manager.started_ms})
