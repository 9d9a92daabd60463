"""What follows an event: how many trigger messages, what they say, where else they go, DEPTH's switch."""

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
    occasion_of,
    triggering,
    with_message,
    without,
)
from trigmon.mq.enums import Inhibit, ObjectType, TriggerControl, TriggerType, UnitOutcome
from trigmon.rules.dead_letters import dead_letter
from trigmon.rules.model.changes import AddMessage, EndUnit, SetDefinition
from trigmon.rules.model.internal_calls import DeadLetter
from trigmon.rules.model.situation import Happened
from trigmon.rules.triggers import effects

OCCASIONS = ("1", "11", "12", "13", "13a", "13b", "13c")
LATER = OCCASIONS[2:]


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
        standing.write(standing.queues, q_name, replace(queue, definition=definition))


def _at_end(control: TriggerControl, *outcomes: UnitOutcome):
    def ended(right, standing, change):
        right(standing, change)
        if change.outcome in outcomes:
            for held in change.unit.held:
                if held.message is not None:
                    _switch(standing, held.message.q_name, control)

    return followed(EndUnit, ended)


def _not_in_units(trigger):
    def spoiled(situation, q_mgr_name, ids, unit_id=0, **named):
        found = trigger(situation, q_mgr_name, ids, unit_id, **named)
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
        afterwards(lambda found, s: without(found, SetDefinition) if found.internal_calls else found),
    ),
]

# -- how many -----------------------------------------------------------------------------------------------


def _one_a_message(occasion: str, kind: TriggerType):
    """As many trigger messages as messages wait."""

    def wrap(trigger):
        def spoiled(situation, q_mgr_name, ids, *args, **named):
            found = trigger(situation, q_mgr_name, ids, *args, **named)
            if not found.events or occasion_of(found) != occasion or kind_of(situation) is not kind:
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


def _own_message_forgotten(trigger):
    """Of a queue that is its own initiation queue."""

    def spoiled(s, q_mgr_name, ids, unit_id=0, placed=0, **named):
        own = s.happened is Happened.PUT and s.queue.definition.initiation_q_name == s.queue.definition.name
        return trigger(s, q_mgr_name, ids, unit_id, placed - own, **named)

    return spoiled


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


def _dead_for_a_while(right, call, *rest):
    return right(replace(call, descriptor=replace(call.descriptor, persistence=0)), *rest)


def _round_and_round(right, call, facts, *rest):
    decision = right(call, facts, *rest)
    chained = [told for told in decision.events if not hasattr(told, "verdict")]
    return (
        replace(decision, internal_calls=[replace(call, q_name=chained[0].q_name)])
        if chained and call.q_name != chained[0].q_name
        else decision
    )


def _dlq_untriggered(patches: Patches) -> None:
    patches.setattr(dead_letter, "trigger", lambda *args, **named: effects.Effects())


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
            afterwards(lambda found, s: with_message(found, lambda c: replace(c, is_persistent=True))),
        ),
    ),
    Fault("message: at the priority of the triggered queue", _described(priority=7)),
    Fault("message: without the traceparent of the put", _described(traceparent="")),
    Fault(
        "message: expires", afterwards(lambda found, s: with_message(found, lambda c: replace(c, expires_ms=s.now + 1)))
    ),
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
    Fault("initiation queue: its own message takes no room", triggering(_own_message_forgotten)),
    Fault("dead letter: none is made", decided(DeadLetter, _dropped)),
    Fault("dead letter: a queue that takes no puts takes it", decided(DeadLetter, _dead_anyway)),
    Fault("dead letter: that of a moment is not persistent", decided(DeadLetter, _dead_for_a_while)),
    Fault("dead letter: triggers nothing", _dlq_untriggered),
    Fault("dead letter: has a dead letter of its own", decided(DeadLetter, _round_and_round)),
]

FAULTS = [*SWITCH, *COUNT, *CONTENT]
