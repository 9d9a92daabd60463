"""A queue of a queue manager elsewhere, as facts for the rules: what its monitor saw of it and wrote into the run.

So a run for such a queue is judged by the same rules as any other: retries, the breaker, one program at a time.
"""

from __future__ import annotations

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.enums import TriggerType
from trigmon.mq.run import Run
from trigmon.mq.run_parts import QueueThere
from trigmon.rules.model.queue_facts import QueueFacts

_HIGHEST = 9
_TYPES = {kind.name.lower(): kind for kind in TriggerType}


def bridged_queue(run: Run) -> QueueFacts | None:
    """Returns the queue of a run whose trigger message came from elsewhere; None for any other run.

    Of one that could not be looked at it is taken that messages are left: then tries are counted by exit statuses.
    """
    bridged = run.bridged
    if not bridged.remote_q_mgr:
        return None
    seen = bridged.remote_after or bridged.remote_before
    trigger = run.trigger
    if seen is None:
        seen = QueueThere(trigger_type="every", depth=1)
    definition = LocalQueue(
        name=trigger.q_name,
        trigger_type=_TYPES.get(seen.trigger_type, TriggerType.EVERY),
        trigger_msg_priority=seen.trigger_priority,
        process_name=trigger.process_name,
    )
    depths = [0] * (_HIGHEST + 1)
    depths[seen.priority if 0 <= seen.priority <= _HIGHEST else _HIGHEST] = depth = max(0, seen.depth)
    return QueueFacts(definition, tuple(depths), uncommitted_puts=min(depth, max(0, seen.uncommitted)))


def is_seen_there(run: Run) -> bool:
    """Returns whether it was seen what was at the front of the queue elsewhere before and after the program."""
    before, after = run.bridged.remote_before, run.bridged.remote_after
    return before is not None and after is not None and bool(before.first) and _is_front_seen(after)


def has_moved_there(run: Run) -> bool:
    """Returns whether another message came to the front of the queue elsewhere while the program ran.

    A depth tells less: messages arrive meanwhile. Only where the front was not seen, one that fell is taken for it.
    """
    before, after = run.bridged.remote_before, run.bridged.remote_after
    if before is None or after is None:
        return False
    return before.first != after.first if is_seen_there(run) else after.depth < before.depth


def is_unopened_there(seen: QueueThere) -> bool:
    """Returns whether a program does not have its queue elsewhere open: nobody has, or only others."""
    return not seen.readers or seen.own_readers == 0


def _is_front_seen(seen: QueueThere) -> bool:
    return bool(seen.first) or seen.depth <= seen.uncommitted
