"""The table of trigger conditions: which occasion asks for which requirements.

Left the occasion, right what must hold besides. Sources: seed 001, conditions 1 to 14; 13a, 13b and 13c are the three
followers of its 13. Every condition that an event asks for is evaluated, so a verdict is always complete; at most one
occasion fires for one event on one queue. The rows that are ours, not MQ's, stand in
:mod:`trigmon.rules.triggers.extensions`.
"""

from __future__ import annotations

from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.model.verdict import Finding, Verdict
from trigmon.rules.triggers import conditions
from trigmon.rules.triggers.conditions import Condition
from trigmon.rules.triggers.extensions import EXTENSIONS, OUR_OCCASIONS

c01 = conditions.condition_01_a_message_was_put
c02 = conditions.condition_02_priority_suffices
c03 = conditions.condition_03_depth_was_just_below
c04 = conditions.condition_04_nobody_reads_the_queue
c05 = conditions.condition_05_get_is_allowed
c06 = conditions.condition_06_process_is_defined
c07 = conditions.condition_07_initiation_queue_is_usable
c08 = conditions.condition_08_a_monitor_listens
c09 = conditions.condition_09_trigger_control_is_on
c10 = conditions.condition_10_trigger_type_is_set
c11 = conditions.condition_11_put_while_others_wait
c12 = conditions.condition_12_last_reader_closed
c13 = conditions.condition_13_criteria_changed
c13a = conditions.condition_13a_initiation_put_allowed
c13b = conditions.condition_13b_get_allowed
c13c = conditions.condition_13c_monitor_opened
c14 = conditions.condition_14_priority_as_counted

TABLE: dict[Condition, tuple[Condition, ...]] = {
    c01: (c14, c02, c03, c04, c05, c06, c07, c08, c09, c10),
    c11: (c14, c02, c04, c05, c06, c07, c08, c09, c10),
    c12: (c06, c07, c08, c09, c10),
    c13: (c04, c05, c06, c07, c09, c10),
    c13a: (c04, c05, c06, c07, c08, c09, c10),
    c13b: (c04, c06, c07, c08, c09, c10),
    c13c: (c04, c05, c06, c07, c09, c10),
}

OCCASIONS: dict[Happened, tuple[Condition, ...]] = {
    Happened.PUT: (c01, c11),
    Happened.CLOSE: (c12,),
    Happened.CHANGE: (c13,),
    Happened.INITIATION_PUT_ALLOWED: (c13a,),
    Happened.GET_ALLOWED: (c13b,),
    Happened.MONITOR_OPENED: (c13c,),
}

Law = dict[Condition, tuple[Condition, ...]]
Plan = dict[Happened, tuple[tuple[Condition, ...], tuple[tuple[int, tuple[int, ...]], ...]]]


def plan_of(law: Law, occasions: dict[Happened, tuple[Condition, ...]]) -> Plan:
    """Returns the conditions of an event, each once, with the places of every occasion and of its requirements."""
    plan: Plan = {}
    for happened, candidates in occasions.items():
        asked = tuple(dict.fromkeys(c for occasion in candidates for c in (occasion, *law[occasion])))
        rows = tuple((asked.index(o), tuple(asked.index(c) for c in law[o])) for o in candidates)
        plan[happened] = (asked, rows)
    return plan


_PLAN = plan_of(TABLE, OCCASIONS)
_OUR_PLAN = plan_of(EXTENSIONS, OUR_OCCASIONS)


def _all_hold(findings: tuple[Finding, ...], places: tuple[int, ...]) -> bool:
    for place in places:  # noqa: SIM110 - a loop costs a third of a generator here, and each put pays for it
        if not findings[place].holds:
            return False
    return True


def judge(situation: Situation) -> Verdict:
    """Evaluates every condition that the event asks for, and returns which occasion fires."""
    happened = situation.happened
    asked, plan = _PLAN.get(happened) or _OUR_PLAN[happened]
    findings = tuple([condition(situation) for condition in asked])
    for occasion, required in plan:
        if findings[occasion].holds and _all_hold(findings, required):
            return Verdict(findings[occasion].number, findings)
    return Verdict("", findings)
