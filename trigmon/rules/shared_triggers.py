"""Triggers of shared queues: a member judges all that changed since it looked last, through any member.

A call that changes a shared queue judges nothing itself. Behind it, and when another member's change is seen, the
member compares the queue with how it stood when it judged it last, so every member judges by the same way, at once or
late, and a change it is not notified of costs time only. DESIGN: each member writes its own trigger message; EVERY is
that of the member the messages came through; one for the whole group where the initiation queue is shared as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.calls import Call
from trigmon.mq.enums import TriggerControl, TriggerType
from trigmon.rules.messages.put import put_situation
from trigmon.rules.model.changes import AnyChange, StampTrigger
from trigmon.rules.model.decision import Decision, Ids, Judged
from trigmon.rules.model.facts import Facts, Neighbour, WideFacts
from trigmon.rules.model.group_changes import NoteJudged
from trigmon.rules.model.internal_calls import JudgeMoved, JudgeShared, RecordJudged, TakeCopy
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.shared_view import Shared
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.model.stored_messages import Found
from trigmon.rules.objects.alter import situations
from trigmon.rules.triggers.effects import Effects, trigger
from trigmon.rules.triggers.sharing import criteria, in_force


def is_quiet(queue: QueueFacts | None, judged: QueueFacts | None) -> bool:
    """Returns whether :func:`decide_judge_shared` would bring nothing: no put arrived, no reader came or left.

    So it is behind a put under syncpoint, a get and the commit of a get.
    """
    return (
        queue is not None
        and judged is not None
        and queue.shared == judged.shared
        and queue.open_input_count == judged.open_input_count
        and (queue.definition is judged.definition or queue.definition == judged.definition)
    )


def decide_untriggered(facts: Facts, now: int, *, acted: bool) -> Decision | None:
    """Returns what :func:`decide_judge_shared` decides where only messages came and triggers are off; else None.

    Nobody has opened, closed or altered the queue, nor has it fired, since it was judged last. Then nothing is written,
    and it only shows that a put was judged.
    """
    queue, judged = facts.queue, facts.judged
    if queue is None or queue.shared is None or judged is None or judged.shared is None:
        return None
    shared, before = queue.shared, judged.shared
    is_as_judged = (
        queue.definition.trigger_control is TriggerControl.OFF
        and (queue.definition is judged.definition or queue.definition == judged.definition)
        and queue.open_input_count == judged.open_input_count
        and (shared.readers, shared.triggers, shared.disarms) == (before.readers, before.triggers, before.disarms)
    )
    if not is_as_judged:
        return None
    puts = _puts(Neighbour(queue, facts.process, facts.initiation, judged), facts, now, acted=acted)
    return Decision(judged=tuple(Judged(put, None) for put in puts))


def decide_judge_moved(call: JudgeMoved, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Judges each queue against how it stood before, and only then notes all of them as judged."""
    copies: list[Call] = [TakeCopy(object_type=kind.name, name=name) for kind, name in call.moved.definitions]
    looks: list[Call] = [JudgeShared(q_name=name, acted=call.acted) for name in call.moved.queues]
    return Decision(internal_calls=[*copies, *looks, RecordJudged(q_names=call.moved.queues)])


def decide_record_judged(call: RecordJudged, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Notes queues as judged: from here on only later events are."""
    return Decision(changes=[NoteJudged(name) for name in call.q_names])


def decide_judge_shared(call: JudgeShared, facts: WideFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Writes the trigger messages due on this member for what happened to a shared queue."""
    queue = facts.queue
    if queue is None or queue.shared is None:
        return Decision()
    # One that was defined since begins with nothing on it.
    judged = facts.judged or QueueFacts(queue.definition, shared=Shared())
    queue = replace(queue, definition=in_force(queue, judged))
    neighbour = Neighbour(queue, facts.process, facts.initiation, judged)
    own, *served = situations(facts, queue, neighbour, judged.definition, facts.served, now)
    if judged.readers == 0 < queue.readers:
        served += [[_monitor_opened(each, queue, facts, now)] for each in facts.served]
    stamps: list[AnyChange] = []
    if _group_has_fired(neighbour):
        own, stamps = [], [StampTrigger(call.q_name, now)]
    else:
        own = [*_puts(neighbour, facts, now, acted=call.acted), *_close(neighbour, facts, now), *own]
    written = {each.queue.definition.name for each in facts.served if _group_has_fired(each)}
    due = [own, *(each for each in served if each[0].queue.definition.name not in written)]
    decision = _fired(due, facts, ids)
    return replace(decision, changes=[*stamps, *decision.changes])


def _fired(due: Iterable[Sequence[Situation]], facts: Facts, ids: Ids) -> Decision:
    """Decides by the first occasion that fires for each queue: one trigger message, for EVERY one a message."""
    effects: list[Effects] = []
    placed: Counter[str] = Counter()
    for of_queue in due:
        fired: Happened | None = None
        for situation in of_queue:
            if fired not in (None, situation.happened):
                break
            name = situation.initiation.definition.name if situation.initiation is not None else ""
            effect = trigger(situation, facts.q_mgr.name, ids, placed=placed[name])
            effects.append(effect)
            if effect.events:
                fired = situation.happened
                placed[name] += 1 - len(effect.internal_calls)
    return Decision(
        changes=[change for effect in effects for change in effect.changes],
        internal_calls=[call for effect in effects for call in effect.internal_calls],
        events=tuple(event for effect in effects for event in effect.events),
        judged=tuple(judged for effect in effects for judged in effect.judged),
    )


def _group_has_fired(neighbour: Neighbour) -> bool:
    """Returns whether another member has written the group's one trigger message since this one looked last."""
    now, judged, initiation = neighbour.queue.shared, neighbour.judged, neighbour.initiation
    if now is None or judged is None or judged.shared is None:
        return False
    is_for_group = initiation is not None and initiation.definition.is_shared
    return is_for_group and now.triggers > judged.shared.triggers


def _puts(neighbour: Neighbour, facts: Facts, now: int, *, acted: bool) -> list[Situation]:
    """Returns the situations of messages that became available by puts.

    FIRST and DEPTH look at all of it at once, EVERY at each message of its own.
    """
    queue, judged = neighbour.queue, neighbour.judged
    if queue.shared is None or judged is None or judged.shared is None:
        return []
    came = tuple(a - b for a, b in zip(queue.shared.put_totals, judged.shared.put_totals, strict=True))
    if not any(came):
        return []
    applied = criteria(queue.definition, queue.shared)
    lowest = applied.trigger_msg_priority
    before = replace(queue, depths=_before(queue, judged, applied, came))
    highest = max(priority for priority, count in enumerate(came) if count)
    situation = put_situation(facts, before, highest, now, max(1, sum(came[lowest:])))
    situation = replace(situation, priority=highest, initiation=neighbour.initiation)
    if applied.trigger_type is not TriggerType.EVERY:
        return [situation]
    if not acted:
        return []
    return [
        replace(situation, priority=priority, put_priority=priority, arriving=1)
        for priority, count in reversed([*enumerate(came)])
        for _ in range(count)
    ]


def _before(queue: QueueFacts, judged: QueueFacts, applied: LocalQueue, came: Sequence[int]) -> tuple[int, ...]:
    """Returns the depths as the messages that came met them, as far as the criteria ask.

    Gets may lie between; that nothing waited, or that the depth was reached, is seen from the counters.
    """
    lowest = applied.trigger_msg_priority
    before = [max(0, depth - count) for depth, count in zip(queue.depths, came, strict=True)]
    if queue.shared is None or judged.shared is None or applied.trigger_type is not TriggerType.FIRST:
        return tuple(before)
    if queue.shared.rises[lowest] > judged.shared.rises[lowest]:
        before[lowest:] = [0] * (len(before) - lowest)
    elif any(came[lowest:]) and not any(before[lowest:]):
        before[lowest] = 1
    return tuple(before)


def _close(neighbour: Neighbour, facts: Facts, now: int) -> list[Situation]:
    """Returns occasion 12: this member's last reader closed, or the last one of the whole group."""
    queue, judged = neighbour.queue, neighbour.judged
    if judged is None or queue.open_input_count:
        return []
    if not judged.open_input_count and (queue.readers or not judged.readers):
        return []
    return [
        Situation(
            Happened.CLOSE,
            queue,
            neighbour.process,
            neighbour.initiation,
            facts.q_mgr.trigger_interval,
            now,
            had_readers=judged.readers,
        )
    ]


def _monitor_opened(neighbour: Neighbour, initiation: QueueFacts, facts: Facts, now: int) -> Situation:
    """Returns occasion 13c of a queue with a shared initiation queue, opened through any member."""
    itself = neighbour.queue.definition.name == initiation.definition.name
    return Situation(
        Happened.MONITOR_OPENED,
        initiation if itself else neighbour.queue,
        neighbour.process,
        initiation,
        facts.q_mgr.trigger_interval,
        now,
    )
