"""How faults are planted: conditions and rows of the law replaced, effects wrapped, state moved wrongly."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from trigmon.mq.calls import Call
from trigmon.mq.enums import OpenOption, TriggerType
from trigmon.rules.dead_letters import dead_letter
from trigmon.rules.messages import put
from trigmon.rules.model import transitions
from trigmon.rules.model.changes import AddMessage, Change
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.model.state import Standing
from trigmon.rules.model.verdict import Finding
from trigmon.rules.objects import alter, close, open
from trigmon.rules.triggers import effects, table
from trigmon.rules.triggers.conditions import Condition
from trigmon.rules.verbs import VERBS
from trigmon.store.memory.store import MemoryStore

Patches = pytest.MonkeyPatch
Law = Mapping[Condition, tuple[Condition, ...]]
FIRST, EVERY, DEPTH = TriggerType.FIRST, TriggerType.EVERY, TriggerType.DEPTH
INPUT = OpenOption.INPUT_SHARED.value | OpenOption.INPUT_EXCLUSIVE.value
WHO_TRIGGER = (put, close, open, alter, dead_letter)


def number_of(condition: Condition) -> str:
    """The seed's number, from the function's name."""
    return condition.__name__.split("_")[1].lstrip("0")


# -- the table ----------------------------------------------------------------------------------------------


def plan_of(law: Law, occasions: Mapping[Happened, tuple[Condition, ...]] = table.OCCASIONS) -> dict[Happened, Any]:
    """The plan that the table module draws up of a law, as it does at import."""
    plan = {}
    for happened, here in occasions.items():
        asked = tuple(dict.fromkeys(c for occasion in here for c in (occasion, *law[occasion])))
        plan[happened] = (asked, tuple((asked.index(o), tuple(asked.index(c) for c in law[o])) for o in here))
    return plan


def put_in_force(patches: Patches, law: Law, instead: Mapping[Condition, Condition] | None = None) -> None:
    """Another law, and other functions in the places of conditions."""
    plan = plan_of(law)
    for happened, (asked, rows) in plan.items():
        plan[happened] = (tuple((instead or {}).get(c, c) for c in asked), rows)
    patches.setattr(table, "_PLAN", plan)


def replaced(condition: Condition, by: Callable[[Condition], Condition]) -> Callable[[Patches], None]:
    """Plants another function in the place of a condition."""
    return lambda patches: put_in_force(patches, table.TABLE, {condition: by(condition)})


def found_with(change: Callable[[Situation], Situation]) -> Callable[[Condition], Condition]:
    """The condition, judged on a changed situation."""

    def spoil(condition: Condition) -> Condition:
        return lambda s: condition(change(s))

    return spoil


def held_as(holds: Callable[[Situation, Finding], bool]) -> Callable[[Condition], Condition]:
    """The condition with another answer to whether it holds."""

    def spoil(condition: Condition) -> Condition:
        def spoiled(s: Situation) -> Finding:
            finding = condition(s)
            return replace(finding, holds=holds(s, finding))

        return spoiled

    return spoil


def of_queue(change: Callable[[QueueFacts, Situation], QueueFacts]) -> Callable[[Condition], Condition]:
    """The condition, judged on a changed queue."""
    return found_with(lambda s: replace(s, queue=change(s.queue, s)))


def kind_of(s: Situation) -> TriggerType:
    """The trigger type of the queue that is judged."""
    return s.queue.definition.trigger_type


def has_waited(s: Situation) -> bool:
    """Whether the interval has passed since the queue's last trigger message, if there was one."""
    stamp = s.queue.trigger_stamp_ms
    return stamp is None or s.now - stamp >= s.trigger_interval_ms


# -- what follows -------------------------------------------------------------------------------------------

Trigger = Callable[..., effects.Effects]


def triggering(wrap: Callable[[Trigger], Trigger], where: tuple[Any, ...] = WHO_TRIGGER) -> Callable[[Patches], None]:
    """Plants a wrapper around :func:`trigmon.rules.triggers.effects.trigger` where rules call it."""

    def plant(patches: Patches) -> None:
        wrapped = wrap(effects.trigger)
        for module in where:
            patches.setattr(module, "trigger", wrapped)

    return plant


def afterwards(change: Callable[[effects.Effects, Situation], effects.Effects], **where: Any) -> Any:
    """Plants a change of what follows whenever something fired."""

    def wrap(trigger: Trigger) -> Trigger:
        def spoiled(situation: Situation, *args: Any, **named: Any) -> effects.Effects:
            found = trigger(situation, *args, **named)
            return change(found, situation) if found.events else found

        return spoiled

    return triggering(wrap, **where)


def without(found: effects.Effects, kind: type[Change]) -> effects.Effects:
    """What follows, less one kind of change."""
    return replace(found, changes=[change for change in found.changes if not isinstance(change, kind)])


def with_message(found: effects.Effects, change: Callable[[AddMessage], AddMessage]) -> effects.Effects:
    """What follows, with its trigger message changed."""
    return replace(found, changes=[change(c) if isinstance(c, AddMessage) else c for c in found.changes])


def occasion_of(found: effects.Effects) -> str:
    """The number of the occasion that fired."""
    return found.events[0].verdict.occasion


# -- state --------------------------------------------------------------------------------------------------


def followed(kind: type[Change], wrap: Callable[[Callable[..., None], Standing, Any], None]) -> Any:
    """Plants another way in which what stands follows a change: ``wrap(as it should be, standing, change)``."""

    def plant(patches: Patches) -> None:
        right = transitions.FOLLOW[kind]
        patches.setitem(transitions.FOLLOW, kind, lambda standing, change: wrap(right, standing, change))

    return plant


def decided(call: type[Call], wrap: Callable[..., Any]) -> Callable[[Patches], None]:
    """Plants another decision of a verb: ``wrap(as it should be, call, facts, found, now, ids)``."""

    def plant(patches: Patches) -> None:
        verb = VERBS[call]
        right = verb.decide
        patches.setitem(VERBS, call, msgspec.structs.replace(verb, decide=lambda *args: wrap(right, *args)))

    return plant


def with_store(patches: Patches) -> list[MemoryStore]:
    """A list that will hold the store of the play going on."""
    there: list[MemoryStore] = []

    def begin(self: MemoryStore) -> None:
        there[:] = [self]

    patches.setattr(MemoryStore, "begin", begin)
    return there


def with_unit(patches: Patches) -> list[int]:
    """A list that will hold the unit of work, if any, of the connection whose call is decided."""
    there = [0]
    right = Standing.facts

    def facts(self: Standing, wants: Any) -> Facts:
        found = right(self, wants)
        there[0] = found.connection.unit_id
        return found

    patches.setattr(Standing, "facts", facts)
    return there


def both(*plants: Callable[[Patches], None]) -> Callable[[Patches], None]:
    """Plants several at once."""

    def plant(patches: Patches) -> None:
        for one in plants:
            one(patches)

    return plant
