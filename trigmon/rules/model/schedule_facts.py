"""What a verb gets that concerns one schedule: its definition, and the queue and process that it is to start."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from msgspec.structs import replace

from trigmon.mq.attributes import LocalQueue, Schedule
from trigmon.rules.model.facts import WIDE, Wants, WideFacts
from trigmon.rules.model.queue_facts import QueueFacts

if TYPE_CHECKING:
    from trigmon.rules.model.state import Standing


class ScheduleWants(Wants, frozen=True):
    """Asks for one schedule, whose queue is ``object_name``: :class:`ScheduleFacts`."""

    schedule: str = ""


class ScheduleFacts(WideFacts, frozen=True):
    """What a verb gets that concerns one schedule. ``schedules`` are the names of this member's."""

    schedule: Schedule | None = None
    schedules: Collection[str] = ()


WIDE[ScheduleWants] = ScheduleFacts


def about_schedule(standing: Standing, facts: ScheduleFacts, wants: ScheduleWants) -> ScheduleFacts:
    """Returns the facts with the schedule; one without a queue is judged by a queue that has no name."""
    schedule = standing.schedules.get(wants.schedule)
    facts = replace(facts, schedule=schedule, schedules=standing.schedules.keys())
    if schedule is None or schedule.q_name:
        return facts
    definition = LocalQueue(name="", process_name=schedule.process_name, initiation_q_name=schedule.initiation_q_name)
    return replace(
        facts,
        queue=QueueFacts(definition),
        process=standing.processes.get(schedule.process_name),
        initiation=standing.queues.get(schedule.initiation_q_name),
    )


def is_lost(schedule: Schedule) -> bool:
    """Returns whether the last moment was to start something and could not; for an empty queue it was not to (S)."""
    return bool(schedule.fails) and "S" not in schedule.fails
