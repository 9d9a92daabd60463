"""Moments of schedules: which are to be judged now, and what follows from each (occasion S).

A moment is judged once: the decision writes the trigger message and the schedule's last moment together, and does
nothing for a moment that is not later than the last. In a queue-sharing group the last moment of a schedule of a shared
queue is kept with the shared initiation queue, to which the trigger message goes: one transaction of the group's store
holds both, whichever member writes them. While no monitor listens time does not count for a schedule: its moments are
judged when one comes, as missed ones are.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from trigmon.mq.attributes import Schedule
from trigmon.mq.calls import RunSchedule
from trigmon.mq.enums import ObjectType, QsgDisp
from trigmon.mq.errors import CommandFailed, UnknownObjectName
from trigmon.mq.explanation import Explanation, not_holding
from trigmon.mq.replies import Counted, Done
from trigmon.mq.timed_enums import Missed, OnlyIf
from trigmon.rules.model.changes import AnyChange, SetDefinition
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.events import MomentNotStarted
from trigmon.rules.model.internal_calls import ReachMoment
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.schedule_facts import ScheduleFacts, ScheduleWants, is_lost
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.model.stored_messages import Found
from trigmon.rules.runs.pause import itself_paused
from trigmon.rules.triggers.effects import Effects, trigger
from trigmon.rules.triggers.wording import explanations

LATE_MS = 60_000
"""A moment that is not older is on time: a queue manager that was away so briefly has missed none."""
MOST_MISSED = 1000
"""So many missed moments are started for with MISSED(ALL), the last ones."""
FORGOTTEN_MS = 400 * 86_400_000
"""The group forgets the last moment of a schedule that the writing member does not have, when it is so much older.

It was deleted, or is another member's, and a member that was away may still ask for it: longer than a year.
"""

JUDGED, WAITS = Counted(count=1), Counted(count=0)


def wants_schedule(call: ReachMoment | RunSchedule, connection: int) -> ScheduleWants:
    """Returns the wanted facts: the schedule, and its queue, which the call names too."""
    return ScheduleWants(connection, call.q_name, schedule=call.name)


def moments_due(schedule: Schedule, moments: Sequence[int], wall_ms: int) -> list[ReachMoment]:
    """Returns the calls for moments that have passed, in order: those on time, and what MISSED wants for the others."""
    missed = [moment for moment in moments if wall_ms - moment > LATE_MS]
    on_time = moments[len(missed) :]

    def reached(moment_ms: int, why: str = "") -> ReachMoment:
        return ReachMoment(name=schedule.name, q_name=schedule.q_name, moment_ms=moment_ms, why=why)

    started = [reached(moment) for moment in on_time]
    if not missed or (started and schedule.missed is not Missed.ALL):
        return started
    if schedule.missed is Missed.ALL:
        return [*map(reached, missed[-MOST_MISSED:]), *started]
    why = "missed, and MISSED(SKIP) starts nothing for it" if schedule.missed is Missed.SKIP else ""
    return [reached(missed[-1], why)]


def decide_reach_moment(call: ReachMoment, facts: ScheduleFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides what a moment brings: a trigger message, or why there is none; either is on record with the schedule."""
    schedule = facts.schedule
    if schedule is not None and call.is_begin:
        return Decision(JUDGED, [SetDefinition(ObjectType.SCHEDULE, replace(schedule, from_ms=call.moment_ms))])
    if schedule is None or call.moment_ms <= schedule.last_moment_ms:
        return Decision(JUDGED)
    if _is_claimed(schedule, call.moment_ms, facts):  # another member of the group has started it
        return Decision(JUDGED, [_started(schedule, call.moment_ms)])
    why = call.why or itself_paused("schedule", schedule.name, facts)
    if why or facts.queue is None:
        undefined = f"QLOCAL({schedule.q_name}) is not defined"
        return _settled(schedule, call.moment_ms, why or undefined, () if why else ("6",))
    effects = _triggered(schedule, facts.queue, call.moment_ms, facts, now, ids)
    if not effects.events:
        return _not_started(schedule, call.moment_ms, effects)
    noted = [*_claim(schedule, call.moment_ms, facts), _started(schedule, call.moment_ms)]
    return Decision(JUDGED, [*effects.changes, *noted], effects.internal_calls, effects.events, judged=effects.judged)


def _started(schedule: Schedule, moment_ms: int) -> SetDefinition:
    after = replace(schedule, last_moment_ms=moment_ms, last_start_ms=moment_ms, why_not="", fails=())
    return SetDefinition(ObjectType.SCHEDULE, after)


def _not_started(schedule: Schedule, moment_ms: int, effects: Effects) -> Decision:
    """Returns the decision where a condition does not hold: the moment is judged, but while no monitor listens.

    What lies on the queue is asked when a monitor comes: until then it may still be filled.
    """
    shown = [each for each in _explained(effects) if each.holds == "NO"]
    fails = tuple(each.number for each in shown)
    if "8" in fails and {*fails} <= {"8", "S"}:
        return Decision(WAITS, judged=effects.judged)
    why = f"{not_holding(list(fails))}: " + "; ".join(f"{each.number} {each.seen}" for each in shown)
    return replace(_settled(schedule, moment_ms, why, fails), judged=effects.judged)


def decide_run_schedule(call: RunSchedule, facts: ScheduleFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides a start by hand: as at a moment, with no regard to a pause of the schedule, and none to ONLYIF."""
    schedule = facts.schedule
    if schedule is None or schedule.q_name != call.q_name:
        raise UnknownObjectName(f"SCHEDULE({call.name}) QUEUE({call.q_name})")
    if facts.queue is None:
        raise UnknownObjectName(f"QLOCAL({schedule.q_name})")
    effects = _triggered(replace(schedule, only_if=OnlyIf.NONE), facts.queue, now, facts, now, ids)
    if not effects.events:
        seen = [f"{each.number} {each.seen}; {each.remedy}" for each in _explained(effects) if each.holds == "NO"]
        raise CommandFailed(f"SCHEDULE({call.name}) starts nothing now: {'; '.join(seen)}")
    return Decision(Done(), effects.changes, effects.internal_calls, effects.events, judged=effects.judged)


def _triggered(
    schedule: Schedule, queue: QueueFacts, moment_ms: int, facts: ScheduleFacts, now: int, ids: Ids
) -> Effects:
    situation = Situation(
        Happened.MOMENT,
        queue,
        facts.process,
        _for_group(queue, facts.initiation),
        facts.q_mgr.trigger_interval,
        now,
        schedule=schedule,
        moment_ms=moment_ms,
    )
    return trigger(situation, facts.q_mgr.name, ids)


def _for_group(queue: QueueFacts, initiation: QueueFacts | None) -> QueueFacts | None:
    """Returns the initiation queue, where it may be used: that of a shared queue is shared, for one start in all."""
    if queue.shared is None or (initiation is not None and initiation.shared is not None):
        return initiation
    return None


def _explained(effects: Effects) -> list[Explanation]:
    (judged,) = effects.judged
    assert judged.verdict is not None
    return explanations(judged.situation, judged.verdict)


def _settled(schedule: Schedule, moment_ms: int, why: str, fails: tuple[str, ...] = ()) -> Decision:
    after = replace(schedule, last_moment_ms=moment_ms, why_not=why[:1024], fails=fails)
    events = (MomentNotStarted(schedule.name, moment_ms, why),) if is_lost(after) else ()
    return Decision(JUDGED, [SetDefinition(ObjectType.SCHEDULE, after)], events=events)


def _shared_initiation(schedule: Schedule, facts: ScheduleFacts) -> QueueFacts | None:
    """Returns the queue with which the group keeps the schedule's last moment; None where it is this member's alone."""
    queue, initiation = facts.queue, facts.initiation
    if queue is None or initiation is None or initiation.shared is None:
        return None
    is_of_group = queue.shared is not None if schedule.q_name else schedule.qsg_disp is QsgDisp.COPY
    return initiation if is_of_group else None


def _is_claimed(schedule: Schedule, moment_ms: int, facts: ScheduleFacts) -> bool:
    initiation = _shared_initiation(schedule, facts)
    if initiation is None:
        return False
    last_ms, timed_ms = initiation.definition.moments.get(schedule.name, (0, 0))
    return last_ms >= moment_ms and timed_ms >= _timed_ms(schedule)


def _timed_ms(schedule: Schedule) -> int:
    """Returns when the group's schedule was timed, alike on each member; 0 for one that is a member's own."""
    return schedule.timed_ms if schedule.qsg_disp is QsgDisp.COPY else 0


def _claim(schedule: Schedule, moment_ms: int, facts: ScheduleFacts) -> list[AnyChange]:
    initiation = _shared_initiation(schedule, facts)
    if initiation is None:
        return []
    moments = {
        name: kept
        for name, kept in initiation.definition.moments.items()
        if name in facts.schedules or moment_ms - kept[0] <= FORGOTTEN_MS
    }
    moments[schedule.name] = (moment_ms, _timed_ms(schedule))
    return [SetDefinition(ObjectType.QLOCAL, replace(initiation.definition, moments=moments))]
