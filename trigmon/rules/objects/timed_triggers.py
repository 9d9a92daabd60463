"""Triggers by time and at a start: BACKSTOP (B) and MAXWAIT (M), and the control that REARM(AUTO) turns on."""

from __future__ import annotations

from trigmon.mq.calls import Call
from trigmon.mq.enums import ObjectType, Rearm
from trigmon.mq.replies import Listing
from trigmon.rules.model.changes import SetDefinition
from trigmon.rules.model.decision import Decision, Ids, Judged
from trigmon.rules.model.events import SweepDue
from trigmon.rules.model.facts import Facts, Neighbour, WideFacts, WorldFacts
from trigmon.rules.model.internal_calls import Awake, JudgeRun, Rearmed, Tend
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.model.stored_messages import Found, Selection, Summary
from trigmon.rules.objects.alter import altered
from trigmon.rules.triggers.effects import trigger
from trigmon.rules.triggers.extensions import comes_back, is_missed, rearmed, watches_the_clock


def decide_awake(call: Awake, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides a start: names queues to check, turns on what a DEPTH queue switched off, judges runs."""
    due = tuple(r.number for r in facts.world.reservations if r.due)
    definitions = [queue.definition for queue in facts.world.queues]
    rows = [{"name": d.name} for d in definitions if watches_the_clock(d)]
    again = [d.name for d in definitions if d.is_disarmed and d.rearm is Rearm.AUTO]
    over = [JudgeRun(run_id=each.run_id) for each in facts.serves if each.is_over]
    internal_calls: list[Call] = [*(Rearmed(q_name=name) for name in again), *over]
    return Decision(Listing(rows=rows), internal_calls=internal_calls, events=(SweepDue(due),) * bool(due))


def decide_rearmed(call: Rearmed, facts: WideFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides to turn control on, at a start or after a commit, which is occasion 13 where enough messages wait."""
    if facts.queue is None:
        return Decision()
    neighbour = Neighbour(facts.queue, facts.process, facts.initiation)
    return altered(facts, neighbour, rearmed(facts.queue.definition), facts.served, now, ids)


def look_for_tend(call: Tend, facts: Facts, now: int) -> Selection | None:
    """Returns the selection of the oldest qualifying message, where MAXWAIT asks for it."""
    if facts.queue is None or not facts.queue.definition.max_wait_s:
        return None
    return Selection(call.q_name, now, summary=Summary(range(facts.queue.definition.trigger_msg_priority, 10)))


def decide_tend(call: Tend, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides a check: control is turned on, or the backstop or the longest wait fires."""
    queue = facts.queue
    if queue is None:
        return Decision()
    if comes_back(queue):
        return Decision(changes=[SetDefinition(ObjectType.QLOCAL, rearmed(queue.definition))])
    if is_missed(queue):
        return Decision(internal_calls=[Rearmed(q_name=call.q_name)])
    oldest_ms = found.messages[0].descriptor.put_ms if found is not None and found.messages else None
    judged: list[Judged] = []
    watched = {Happened.BACKSTOP: queue.definition.backstop_s, Happened.MAX_WAIT: queue.definition.max_wait_s}
    for happened in (happened for happened, seconds in watched.items() if seconds):
        situation = Situation(
            happened,
            queue,
            facts.process,
            facts.initiation,
            facts.q_mgr.trigger_interval,
            now,
            oldest_ms=oldest_ms,
        )
        effects = trigger(situation, facts.q_mgr.name, ids)
        judged += effects.judged
        if effects.events:
            return Decision(
                changes=effects.changes,
                internal_calls=effects.internal_calls,
                events=effects.events,
                judged=tuple(judged),
            )
    return Decision(judged=tuple(judged))
