"""Units of work: trigger messages released at the wrong end, and counts that follow an end wrongly."""

from __future__ import annotations

from msgspec.structs import replace

from tests.mutations.fault import Fault
from tests.mutations.planting import (
    DEPTH,
    EVERY,
    FIRST,
    Patches,
    afterwards,
    both,
    decided,
    followed,
    kind_of,
    triggering,
    with_message,
    with_store,
    with_unit,
)
from trigmon.mq.attributes import LocalQueue
from trigmon.mq.enums import TriggerControl, TriggerType, UnitOutcome
from trigmon.qmgr import follow_ups
from trigmon.rules.model import transitions
from trigmon.rules.model.changes import EndUnit, SetDefinition, TakeMessage
from trigmon.rules.model.internal_calls import DeadLetter
from trigmon.rules.model.situation import Happened
from trigmon.rules.objects import alter, close, open
from trigmon.rules.triggers import effects

OCCASIONS = ("1", "11", "12", "13", "13a", "13b", "13c")
LATER = OCCASIONS[2:]


# -- when it appears ----------------------------------------------------------------------------------------


def _on_backout(kind: TriggerType, released: bool):
    return afterwards(
        lambda found, s: with_message(found, lambda c: replace(c, on_backout=released)) if kind_of(s) is kind else found
    )


def _in_the_units_of(module):
    """From 12 on: the trigger message of this kind of call belongs to the caller's unit of work."""

    def plant(patches: Patches) -> None:
        unit = with_unit(patches)

        def change(found, s):
            if not unit[0]:
                return found
            return with_message(
                found, lambda c: replace(c, unit_id=unit[0], is_held=True, on_backout=kind_of(s) is not EVERY)
            )

        afterwards(change, where=(module,))(patches)

    return plant


def _dead_on_backout(released: bool):
    def dead(right, call, *rest):
        return right(replace(call, on_backout=released), *rest)

    return decided(DeadLetter, dead)


def _dead_at_once(right, call, *rest):
    return right(replace(call, unit_id=0), *rest)


def _as_of_release(patches: Patches) -> None:
    """A held trigger message says what is in force when it is released."""
    store = with_store(patches)
    right = follow_ups._NOTES[EndUnit]

    def noted(self, change, now):
        standing, held = store[0].standing, []
        for one in change.unit.held:
            if one.message is not None and (queue := standing.queues.get(one.message.q_name)) is not None:
                one = replace(
                    one, message=effects.trigger_message(queue, standing.processes.get(queue.definition.process_name))
                )
            held.append(one)
        right(self, replace(change, unit=replace(change.unit, held=tuple(held))), now)

    patches.setitem(follow_ups._NOTES, EndUnit, noted)


def _recalled(patches: Patches) -> None:
    """Control switched off takes held trigger messages back."""
    store = with_store(patches)
    right = follow_ups._NOTES[EndUnit]

    def noted(self, change, now):
        queues = store[0].standing.queues
        held = tuple(
            one
            for one in change.unit.held
            if one.message is None
            or one.message.q_name not in queues
            or queues[one.message.q_name].definition.trigger_control is TriggerControl.ON
            or queues[one.message.q_name].definition.trigger_type is DEPTH
        )
        right(self, replace(change, unit=replace(change.unit, held=held)), now)

    patches.setitem(follow_ups._NOTES, EndUnit, noted)


MOMENT = [
    Fault("release: FIRST on commit only", _on_backout(FIRST, False)),
    Fault("release: DEPTH on commit only", _on_backout(DEPTH, False)),
    Fault("release: EVERY on backout as well", _on_backout(EVERY, True)),
    Fault(
        "release: at once, in a unit of work or not",
        afterwards(lambda found, s: with_message(found, lambda c: replace(c, unit_id=0, is_held=False))),
    ),
    Fault(
        "release: its own unit gets it before the end",
        afterwards(lambda found, s: with_message(found, lambda c: replace(c, is_held=False))),
    ),
    Fault("release: 12 in the caller's unit of work", _in_the_units_of(close)),
    Fault("release: 13, 13a and 13b in the caller's unit of work", _in_the_units_of(alter)),
    Fault("release: 13c in the caller's unit of work", _in_the_units_of(open)),
    Fault("release: a dead trigger message of EVERY on backout as well", _dead_on_backout(True)),
    Fault("release: a dead trigger message of FIRST on commit only", _dead_on_backout(False)),
    Fault("release: a dead trigger message at once", decided(DeadLetter, _dead_at_once)),
    Fault("units: trigger messages do not count towards MAXUMSGS", afterwards(lambda f, s: replace(f, in_unit=0))),
    Fault("release: says what is in force then", _as_of_release),
    Fault("release: recalled when control was switched off", _recalled),
]

# -- what stands --------------------------------------------------------------------------------------------


def _uncounted_backout(right, standing, change):
    """A get that is backed out does not come back into the count."""
    right(standing, change)
    if change.outcome is UnitOutcome.BACKED_OUT:
        for (q_name, priority), count in change.unit.gets.items():
            transitions._count(standing, q_name, priority, -count)


def _counted_backout(right, standing, change):
    """A put that is backed out stays in the count."""
    right(standing, change)
    if change.outcome is UnitOutcome.BACKED_OUT:
        for (q_name, priority), count in change.unit.puts.items():
            if q_name in standing.queues and not any(h.q_name == q_name for h in change.unit.held):
                transitions._count(standing, q_name, priority, count)


def _get_counts_until_commit(right, standing, change):
    right(standing, change)
    transitions._count(standing, change.message.q_name, change.message.priority, 1)


def _settled(right, standing, change):
    right(standing, change)
    for (q_name, priority), count in change.unit.gets.items():
        transitions._count(standing, q_name, priority, -count)


def _own_unit_only(patches: Patches) -> None:
    """An uncommitted put counts for nobody but its own unit of work."""
    store, unit = with_store(patches), with_unit(patches)

    def wrap(trigger):
        def spoiled(situation, *args, **named):
            queue = situation.queue
            depths = list(queue.depths)
            for other in store[0].standing.units.values():
                if other.unit_id != unit[0]:
                    for (q_name, priority), count in other.puts.items():
                        if q_name == queue.definition.name:
                            depths[priority] -= count
            return trigger(replace(situation, queue=replace(queue, depths=tuple(depths))), *args, **named)

        return spoiled

    triggering(wrap)(patches)


def _quiet_setting(right, standing, change):
    """MQSET and commands leave the control of a queue that exists as it is."""
    definition = change.definition
    if isinstance(definition, LocalQueue) and definition.name in standing.queues:
        control = standing.queues[definition.name].definition.trigger_control
        change = replace(change, definition=replace(definition, trigger_control=control))
    right(standing, change)


STATE = [
    Fault("count: a get backed out does not count again", followed(EndUnit, _uncounted_backout)),
    Fault("count: a put backed out goes on counting", followed(EndUnit, _counted_backout)),
    Fault(
        "count: a get counts until it is committed",
        both(followed(TakeMessage, _get_counts_until_commit), followed(EndUnit, _settled)),
    ),
    Fault("count: uncommitted puts of other connections do not count", _own_unit_only),
    Fault("9: control once set stays as it was", followed(SetDefinition, _quiet_setting)),
    Fault(
        "events: a put is judged after its message, not before",
        triggering(
            lambda trigger: (
                lambda s, *args, **named: trigger(
                    replace(
                        s,
                        queue=replace(
                            s.queue, depths=tuple(n + (p == s.priority) for p, n in enumerate(s.queue.depths))
                        ),
                    )
                    if s.happened is Happened.PUT
                    else s,
                    *args,
                    **named,
                )
            )
        ),
    ),
]

FAULTS = [*MOMENT, *STATE]
