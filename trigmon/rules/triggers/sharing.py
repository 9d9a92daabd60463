"""The criteria by which a shared queue is judged on one member of its group (seed 001, condition 4, notes a and b).

Who reads it elsewhere decides: through another member for shared input, and here it is judged as FIRST with priority
zero; exclusively through whichever member, and nobody triggers. Conditions are handed the criteria that apply, so none
of them asks what kind of queue it looks at.
"""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.enums import TriggerControl, TriggerType
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.shared_view import Shared
from trigmon.rules.model.situation import Situation

HERE = "this queue manager"


def in_group(situation: Situation) -> Situation:
    """Returns the situation with the criteria that apply on this member; of a queue that is not shared as it is."""
    shared = situation.queue.shared
    if shared is None:
        return situation
    applied = criteria(situation.queue.definition, shared)
    queue = situation.queue
    if applied is not queue.definition:
        queue = replace(queue, definition=applied)
    return replace(situation, queue=queue, silenced_by=silenced_by(queue, shared))


def criteria(definition: LocalQueue, shared: Shared) -> LocalQueue:
    """Returns the definition as judged: FIRST with priority 0 while another member has it open for shared input.

    A queue that is not to be triggered at all, NONE, stays so.
    """
    if definition.trigger_type is TriggerType.NONE or all(reader.is_exclusive for reader in shared.readers):
        return definition
    return replace(definition, trigger_type=TriggerType.FIRST, trigger_msg_priority=0)


def silenced_by(queue: QueueFacts, shared: Shared) -> str:
    """Returns the queue manager through which the queue is open exclusively; empty where none is."""
    if not queue.open_exclusive:
        return ""
    return next((reader.q_mgr_name for reader in shared.readers if reader.is_exclusive), HERE)


def in_force(now: QueueFacts, judged: QueueFacts) -> LocalQueue:
    """Returns the definition as it was in force for what happened since this member looked last.

    Where another member's firing has switched the control of DEPTH off meanwhile, it was on: each member writes its
    own trigger message for the same event.
    """
    if now.shared is None or judged.shared is None or now.shared.disarms == judged.shared.disarms:
        return now.definition
    return replace(now.definition, trigger_control=TriggerControl.ON)
