"""Rehearse: what would be so if a local queue had other attributes, by the rules that judge an ALTER and a put."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict, replace

from trigmon.mq.attributes import LocalQueue, read_attributes
from trigmon.mq.calls import Rehearse
from trigmon.mq.enums import ObjectType
from trigmon.rules.explain import explained, messages_of
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import WorldFacts
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.stored_messages import Found, Selection
from trigmon.rules.objects.alter import situations
from trigmon.rules.objects.define import local_queue, neighbour, with_values
from trigmon.rules.triggers.sharing import in_group
from trigmon.rules.triggers.table import judge
from trigmon.rules.triggers.wording import explanations


def look_for_rehearse(call: Rehearse, facts: WorldFacts, now: int) -> Selection:
    """Selects what the verdict of the altered queue needs of its messages."""
    return messages_of(_altered(call, local_queue(call.q_name, facts), now), now)


def decide_rehearse(call: Rehearse, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Returns the verdict on a put, and on the change itself, as if the queue were altered so; nothing changes."""
    queue = local_queue(call.q_name, facts)
    definition = _altered(call, queue, now)
    near = neighbour(queue, definition, facts)
    changed = replace(queue, definition=definition)
    initiation = changed if definition.initiation_q_name == definition.name else near.initiation
    if definition.process_name != queue.definition.process_name:
        facts = replace(facts, under_way=0)
    facts = replace(facts, queue=changed, process=near.process, initiation=initiation)
    verdict = explained(changed, call.priority, definition.def_priority, facts, found, now)
    return Decision(replace(verdict, values={**verdict.values, "saving": _saving(facts, queue, changed, now)}))


def _altered(call: Rehearse, queue: QueueFacts, now: int) -> LocalQueue:
    values = read_attributes(ObjectType.QLOCAL, call.q_name, call.attributes)
    definition: LocalQueue = with_values(ObjectType.QLOCAL, queue.definition, values, now)
    return definition


def _saving(facts: WorldFacts, before: QueueFacts, after: QueueFacts, now: int) -> dict[str, Any]:
    """Returns the verdict on the change: of what it is an occasion for, the first that fires, else the first."""
    near = neighbour(before, after.definition, facts)
    own = situations(facts, after, near, before.definition, (), now)[0]
    judged = [(situation, judge(situation)) for situation in map(in_group, own)]
    if not judged:
        return {"fires": False, "occasion": "", "fails": [], "conditions": []}
    situation, verdict = next((each for each in judged if each[1].fires), judged[0])
    shown = [asdict(each) for each in explanations(situation, verdict)]
    return {"fires": verdict.fires, "occasion": verdict.occasion, "fails": verdict.fails, "conditions": shown}
