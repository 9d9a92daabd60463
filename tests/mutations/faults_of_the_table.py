"""Every cell of the law's table: a requirement asked for too little or too much; and every condition stuck."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.mutations.fault import Fault
from tests.mutations.planting import Patches, held_as, kind_of, number_of, plan_of, put_in_force, replaced
from trigmon.mq.enums import TriggerType
from trigmon.rules.model.situation import Happened
from trigmon.rules.triggers import table
from trigmon.rules.triggers.conditions import Condition
from trigmon.rules.triggers.table import TABLE

REQUIREMENTS = TABLE[table.c01]
ALL = tuple(dict.fromkeys((*TABLE, *REQUIREMENTS)))

# A cell that another guard stands behind is spoiled together with that guard; else nothing would be different.
GUARDED: dict[tuple[Condition, Condition], str] = {
    (table.c01, table.c14): "14 fails only where 2 fails, and 11 reports it too: neither of the two asks for it",
    (table.c11, table.c14): "likewise",
    (table.c11, table.c10): "11 itself is of FIRST and DEPTH, so it is stuck at true for NONE",
    (table.c12, table.c10): "12 itself is of FIRST and DEPTH, so it is stuck at true for NONE",
    (table.c13, table.c09): "13 itself asks for control, so it is stuck at true where control is off",
}
# Asked for in addition, these could never fail: the occasion is just that they have come true.
IMPLIED: dict[tuple[Condition, Condition], str] = {
    (table.c12, table.c04): "12 is that nobody reads any more",
    (table.c13b, table.c05): "13b is that gets are allowed",
    (table.c13c, table.c08): "13c is that a monitor listens",
}


def spoiled(occasion: Condition, requirement: Condition) -> dict[Condition, tuple[Condition, ...]]:
    """The law with one requirement of one occasion taken out, or put in where it was not."""
    row = TABLE[occasion]
    changed = tuple(c for c in row if c is not requirement) if requirement in row else (*row, requirement)
    return {**TABLE, occasion: changed}


def _cell(occasion: Condition, requirement: Condition) -> Callable[[Patches], None]:
    law = spoiled(occasion, requirement)
    if (occasion, requirement) not in GUARDED:
        return lambda patches: put_in_force(patches, law)
    if requirement is table.c14:
        neither = {o: tuple(c for c in row if c is not table.c14) for o, row in TABLE.items()}
        return lambda patches: put_in_force(patches, neither)
    is_none = held_as(lambda s, f: f.holds or kind_of(s) is TriggerType.NONE)
    is_off = held_as(lambda s, f: f.holds or s.queue.definition.trigger_control.value == 0)
    guard = is_off if requirement is table.c09 else is_none
    return lambda patches: put_in_force(patches, law, {occasion: guard(occasion)})


def cells() -> Iterator[Fault]:
    for occasion in TABLE:
        for requirement in REQUIREMENTS:
            if requirement in TABLE[occasion]:
                name = f"table: {number_of(occasion)} does not ask for {number_of(requirement)}"
            elif (occasion, requirement) in IMPLIED:
                continue
            else:
                name = f"table: {number_of(occasion)} asks for {number_of(requirement)}"
            yield Fault(name, _cell(occasion, requirement))


def stuck() -> Iterator[Fault]:
    for condition in ALL:
        number = number_of(condition)
        if condition is table.c01:
            yield Fault("1: always true, whatever happened", _a_put_whatever_happened)
        else:
            yield Fault(f"{number}: always true", replaced(condition, held_as(lambda s, f: True)))
        yield Fault(f"{number}: always false", replaced(condition, held_as(lambda s, f: False)))


def _a_put_whatever_happened(patches: Patches) -> None:
    occasions = {happened: tuple(dict.fromkeys((*here, table.c01))) for happened, here in table.OCCASIONS.items()}
    plan = plan_of(TABLE, occasions)
    always = held_as(lambda s, f: s.happened is not Happened.PUT or f.holds)(table.c01)
    for happened, (asked, rows) in plan.items():
        plan[happened] = (tuple(always if c is table.c01 else c for c in asked), rows)
    patches.setattr(table, "_PLAN", plan)


FAULTS = [*cells(), *stuck()]
