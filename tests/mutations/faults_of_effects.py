"""What follows an event: how many trigger messages, what they say, when they appear, where else they go."""

from __future__ import annotations

from msgspec.structs import replace

from tests.mutations.fault import Fault
from tests.mutations.planting import (
    Patches,
    afterwards,
    both,
    decided,
    followed,
    occasion_of,
    triggering,
    with_store,
    with_unit,
    without,
)
from trigmon.mq.attributes import LocalQueue
from trigmon.mq.enums import Inhibit, ObjectType, TriggerControl, TriggerType, UnitOutcome
from trigmon.qmgr import manager
from trigmon.rules import altering, closing, dead_letter, opening
from trigmon.rules.changes import AddMessage, EndUnit, SetDefinition, TakeMessage
from trigmon.rules.errands import DeadLetter
from trigmon.rules.triggers import effects
from trigmon.rules.triggers.situation import Happened

FIRST, EVERY, DEPTH = TriggerType.FIRST, TriggerType.EVERY, TriggerType.DEPTH
OCCASIONS = ("1", "11", "12", "13", "13a", "13b", "13c")
LATER = OCCASIONS[2:]


def kind_of(s):
    return s.queue.definition.trigger_type


def _added(found, change):
    """What follows with its trigger message changed."""
    return replace(found, changes=[change(c) if isinstance(c, AddMessage) else c for c in found.changes])


# -- DEPTH's switch -----------------------------------------------------------------------------------------


def _left_on(occasion: str):
    return afterwards(lambda found, s: without(found, SetDefinition) if occasion_of(found) == occasion else found)


def _off_too(kind: TriggerType):
    def change(found, s):
        if kind_of(s) is not kind:
            return found
        off = replace(s.queue.definition, trigger_control=TriggerControl.OFF)
        return replace(found, changes=[*found.changes, SetDefinition(ObjectType.QLOCAL, off)])

    return afterwards(change)


def _switch(standing, q_name: str, control: TriggerControl) -> None:
    queue = standing.queues.get(q_name)
    if queue is not None and queue.definition.trigger_type is DEPTH:
        definition = replace(queue.definition, trigger_control=control)
        standing._write(standing.queues, q_name, replace(queue, definition=definition))


def _at_end(control: TriggerControl, *outcomes: UnitOutcome):
    def ended(right, standing, change):
        right(standing, change)
        if change.outcome in outcomes:
            for held in change.unit.held:
                if held.message is not None:
                    _switch(standing, held.message.q_name, control)

    return followed(EndUnit, ended)


def _not_in_units(trigger):
    def spoiled(situation, q_mgr_name, ids, unit_id=0, placed=0):
        found = trigger(situation, q_mgr_name, ids, unit_id, placed)
        return without(found, SetDefinition) if unit_id else found

    return spoiled


SWITCH = [
    *(Fault(f"DEPTH: not switched off at occasion {occasion}", _left_on(occasion)) for occasion in OCCASIONS),
    Fault("DEPTH: FIRST is switched off too", _off_too(FIRST)),
    Fault("DEPTH: EVERY is switched off too", _off_too(EVERY)),
    Fault("DEPTH: switched on again by a backout", _at_end(TriggerControl.ON, UnitOutcome.BACKED_OUT)),
    Fault(
        "DEPTH: switched off only at the end of the unit of work",
        both(triggering(_not_in_units), _at_end(TriggerControl.OFF, UnitOutcome.COMMITTED, UnitOutcome.BACKED_OUT)),
    ),
    Fault(
        "DEPTH: not switched off when the trigger message becomes a dead letter",
        afterwards(lambda found, s: without(found, SetDefinition) if found.errands else found),
    ),
]

# -- how many -----------------------------------------------------------------------------------------------


def _one_a_message(occasion: str, kind: TriggerType):
    """As many trigger messages as messages wait."""

    def wrap(trigger):
        def spoiled(situation, q_mgr_name, ids, *args, **named):
            found = trigger(situation, q_mgr_name, ids, *args, **named)
            if not found.told or occasion_of(found) != occasion or kind_of(situation) is not kind:
                return found
            waiting = situation.queue.waiting(situation.queue.definition.trigger_msg_priority)
            message = next((c for c in found.changes if isinstance(c, AddMessage)), None)
            more = []
            for _ in range(waiting - 1 if message else 0):
                number = ids.message()
                descriptor = replace(message.descriptor, msg_id=ids.msg_id(number))
                more.append(replace(message, number=number, descriptor=descriptor))
            return replace(found, changes=[*found.changes, *more])

        return spoiled

    return triggering(wrap)


COUNT = [
    Fault(f"{occasion}: {kind.name} writes one for each message that waits", _one_a_message(occasion, kind))
    for occasion in LATER
    for kind in (FIRST, EVERY, DEPTH)
    if (occasion, kind) != ("12", EVERY)  # no event at all
]

# -- when it appears ----------------------------------------------------------------------------------------


def _on_backout(kind: TriggerType, released: bool):
    return afterwards(
        lambda found, s: _added(found, lambda c: replace(c, on_backout=released)) if kind_of(s) is kind else found
    )


def _in_the_units_of(module):
    """From 12 on: the trigger message of this kind of call belongs to the caller's unit of work."""

    def plant(patches: Patches) -> None:
        unit = with_unit(patches)

        def change(found, s):
            if not unit[0]:
                return found
            return _added(
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
    right = manager._NOTES[EndUnit]

    def noted(self, change):
        standing, held = store[0].standing, []
        for one in change.unit.held:
            if one.message is not None and (queue := standing.queues.get(one.message.q_name)) is not None:
                one = replace(
                    one, message=effects.trigger_message(queue, standing.processes.get(queue.definition.process_name))
                )
            held.append(one)
        right(self, replace(change, unit=replace(change.unit, held=tuple(held))))

    patches.setitem(manager._NOTES, EndUnit, noted)


def _recalled(patches: Patches) -> None:
    """Control switched off takes held trigger messages back."""
    store = with_store(patches)
    right = manager._NOTES[EndUnit]

    def noted(self, change):
        queues = store[0].standing.queues
        held = tuple(
            one
            for one in change.unit.held
            if one.message is None
            or one.message.q_name not in queues
            or queues[one.message.q_name].definition.trigger_control is TriggerControl.ON
            or queues[one.message.q_name].definition.trigger_type is DEPTH
        )
        right(self, replace(change, unit=replace(change.unit, held=held)))

    patches.setitem(manager._NOTES, EndUnit, noted)


MOMENT = [
    Fault("release: FIRST on commit only", _on_backout(FIRST, False)),
    Fault("release: DEPTH on commit only", _on_backout(DEPTH, False)),
    Fault("release: EVERY on backout as well", _on_backout(EVERY, True)),
    Fault(
        "release: at once, in a unit of work or not",
        afterwards(lambda found, s: _added(found, lambda c: replace(c, unit_id=0, is_held=False))),
    ),
    Fault(
        "release: its own unit gets it before the end",
        afterwards(lambda found, s: _added(found, lambda c: replace(c, is_held=False))),
    ),
    Fault("release: 12 in the caller's unit of work", _in_the_units_of(closing)),
    Fault("release: 13, 13a and 13b in the caller's unit of work", _in_the_units_of(altering)),
    Fault("release: 13c in the caller's unit of work", _in_the_units_of(opening)),
    Fault("release: a dead trigger message of EVERY on backout as well", _dead_on_backout(True)),
    Fault("release: a dead trigger message of FIRST on commit only", _dead_on_backout(False)),
    Fault("release: a dead trigger message at once", decided(DeadLetter, _dead_at_once)),
    Fault("release: says what is in force then", _as_of_release),
    Fault("release: recalled when control was switched off", _recalled),
]

# -- what it says, and where else it goes -------------------------------------------------------------------


def _said(**fields):
    def plant(patches: Patches) -> None:
        right = effects.trigger_message
        patches.setattr(effects, "trigger_message", lambda queue, process: replace(right(queue, process), **fields))

    return plant


def _described(**fields):
    def plant(patches: Patches) -> None:
        right = effects.trigger_descriptor
        patches.setattr(effects, "trigger_descriptor", lambda *args: replace(right(*args), **fields))

    return plant


def _room(rule):
    def plant(patches: Patches) -> None:
        right = effects._why_not
        patches.setattr(effects, "_why_not", lambda q, placed: rule(right, q, placed))

    return plant


def _bigger(q, messages: int = 0, length: int = 0):
    definition = q.definition
    return replace(
        q,
        definition=replace(
            definition, max_q_depth=definition.max_q_depth + messages, max_msg_length=definition.max_msg_length + length
        ),
    )


def _dropped(right, call, facts, *rest):
    return right(call, replace(facts, q_mgr=replace(facts.q_mgr, dead_letter_q_name="")), *rest)


def _dead_anyway(right, call, facts, *rest):
    """The dead-letter queue is not asked whether it takes puts."""
    if facts.queue is None:
        return right(call, facts, *rest)
    definition = replace(facts.queue.definition, inhibit_put=Inhibit.ALLOWED)
    return right(call, replace(facts, queue=replace(facts.queue, definition=definition)), *rest)


def _round_and_round(right, call, facts, *rest):
    decision = right(call, facts, *rest)
    chained = [told for told in decision.told if not hasattr(told, "verdict")]
    return (
        replace(decision, errands=[replace(call, q_name=chained[0].q_name)])
        if chained and call.q_name != chained[0].q_name
        else decision
    )


def _dlq_untriggered(patches: Patches) -> None:
    patches.setattr(dead_letter, "trigger", lambda *args, **named: effects.NOTHING)


CONTENT = [
    Fault("message: without the process's name", _said(process_name="")),
    Fault("message: without trigger data", _said(trigger_data="")),
    Fault("message: without the program", _said(appl_id="")),
    Fault("message: without environment data", _said(env_data="")),
    Fault("message: without user data", _said(user_data="")),
    Fault("message: every type is UNIX", _said(appl_type=6)),
    Fault("message: every type is unknown", _said(appl_type=-1)),
    Fault("message: another queue's name", _said(q_name="OTHER")),
    Fault(
        "message: persistent",
        both(
            _described(persistence=1),
            afterwards(lambda found, s: _added(found, lambda c: replace(c, is_persistent=True))),
        ),
    ),
    Fault("message: at the priority of the triggered queue", _described(priority=7)),
    Fault("message: expires", afterwards(lambda found, s: _added(found, lambda c: replace(c, expires_ms=s.now + 1)))),
    Fault(
        "initiation queue: room for one too many", _room(lambda right, q, placed: right(_bigger(q, messages=1), placed))
    ),
    Fault(
        "initiation queue: room for one too few", _room(lambda right, q, placed: right(_bigger(q, messages=-1), placed))
    ),
    Fault(
        "initiation queue: fullness is not asked",
        _room(lambda right, q, placed: right(_bigger(q, messages=1_000_000), placed)),
    ),
    Fault("initiation queue: those of the same call do not fill it", _room(lambda right, q, placed: right(q, 0))),
    Fault(
        "initiation queue: takes a message one byte too long",
        _room(lambda right, q, placed: right(_bigger(q, length=1), placed)),
    ),
    Fault(
        "initiation queue: refuses a message that just fits",
        _room(lambda right, q, placed: right(_bigger(q, length=-1), placed)),
    ),
    Fault("dead letter: none is made", decided(DeadLetter, _dropped)),
    Fault("dead letter: a queue that takes no puts takes it", decided(DeadLetter, _dead_anyway)),
    Fault("dead letter: triggers nothing", _dlq_untriggered),
    Fault("dead letter: has a dead letter of its own", decided(DeadLetter, _round_and_round)),
]

# -- what stands --------------------------------------------------------------------------------------------


def _uncounted_backout(right, standing, change):
    """A get that is backed out does not come back into the count."""
    right(standing, change)
    if change.outcome is UnitOutcome.BACKED_OUT:
        for (q_name, priority), count in change.unit.gets.items():
            standing._count(q_name, priority, -count)


def _counted_backout(right, standing, change):
    """A put that is backed out stays in the count."""
    right(standing, change)
    if change.outcome is UnitOutcome.BACKED_OUT:
        for (q_name, priority), count in change.unit.puts.items():
            if q_name in standing.queues and not any(h.q_name == q_name for h in change.unit.held):
                standing._count(q_name, priority, count)


def _get_counts_until_commit(right, standing, change):
    right(standing, change)
    standing._count(change.message.q_name, change.message.priority, 1)


def _settled(right, standing, change):
    right(standing, change)
    for (q_name, priority), count in change.unit.gets.items():
        standing._count(q_name, priority, -count)


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

FAULTS = [*SWITCH, *COUNT, *MOMENT, *CONTENT, *STATE]
