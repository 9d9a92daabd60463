"""The verdict on a put to a queue elsewhere: the rules that judge a put here, on what could be seen there.

Each of the fourteen conditions is fulfilled, not fulfilled or not seen. A put fires for certain only where
everything that it takes was seen, and does not fire for certain where something that was seen is not fulfilled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec.structs import asdict, replace

from trigmon.bridge.seen_queue import ZOS, Fact, NotSeen, SeenQueue
from trigmon.mq.attributes import LocalQueue, QueueManagerDefinition, read_attributes
from trigmon.mq.calls import Rehearse
from trigmon.mq.enums import ObjectType, TriggerControl, TriggerType, Usage
from trigmon.mq.explanation import NOT_SEEN, Explanation
from trigmon.mq.replies import Explained
from trigmon.qmgr.ids import Counter
from trigmon.rules.explain import explained
from trigmon.rules.model.facts import World, WorldFacts
from trigmon.rules.model.handles import ConnectionFacts
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.model.verdict import REQUIREMENTS
from trigmon.rules.rehearsal import decide_rehearse
from trigmon.rules.triggers.table import judge
from trigmon.rules.triggers.wording import ORDER, explanations

RESTS_ON: Final[dict[str, tuple[Fact, ...]]] = {
    "1": (),
    "2": (),
    "3": (Fact.DEPTH, Fact.PRIORITIES),
    "4": (Fact.READERS, Fact.GROUP),
    "5": (),
    "6": (Fact.PROCESS,),
    "7": (Fact.INITIATION,),
    "8": (Fact.INITIATION, Fact.MONITOR),
    "9": (),
    "10": (Fact.GROUP,),
    "11": (Fact.DEPTH, Fact.PRIORITIES, Fact.INTERVAL, Fact.LAST_TRIGGER),
    "12": (Fact.DEPTH, Fact.PRIORITIES),
    "13": (Fact.DEPTH, Fact.PRIORITIES),
    "13b": (Fact.DEPTH, Fact.PRIORITIES),
    "14": (),
}
"""By condition the facts beside the queue's attributes without which it cannot be judged."""
_REMEDIES: Final = {
    Fact.ATTRIBUTES: "let the bridge's user inquire the queue: +inq and +dsp",
    Fact.DEPTH: "let the bridge's user inquire the queue: +inq and +dsp",
    Fact.READERS: "let the bridge's user inquire the queue: +inq and +dsp",
    Fact.PROCESS: "let the bridge's user inquire the process: +inq and +dsp",
    Fact.INITIATION: "let the bridge's user inquire the initiation queue: +inq and +dsp",
    Fact.MONITOR: "let the bridge's user inquire the initiation queue: +inq and +dsp",
}


def explain_seen(seen: SeenQueue, priority: int, now: int) -> Explained:
    """Returns the verdict on a put with a priority (-1: DEFPRTY) at ``now``, in ms. Raises PriorityError."""
    definition = seen.queue.definition
    verdict = explained(seen.queue, priority, definition.def_priority, _facts(seen, definition), None, now)
    return _as_seen(seen, definition, verdict, now)


def rehearse_seen(seen: SeenQueue, attributes: Mapping[str, Any], priority: int, now: int) -> Explained:
    """Returns the verdict on a put, and on the change itself, as if the queue elsewhere were altered so.

    Raises PriorityError, AttrValueError, AttrValueFixed, SelectorError.
    """
    before = seen.queue.definition
    definition: LocalQueue = replace(before, **read_attributes(ObjectType.QLOCAL, before.name, dict(attributes)))
    call = Rehearse(q_name=before.name, attributes=dict(attributes), priority=priority)
    reply = decide_rehearse(call, _facts(seen, definition), None, now, Counter(seen.q_mgr_name, 1)).reply
    assert isinstance(reply, Explained)
    return _as_seen(seen, definition, reply, now)


def _facts(seen: SeenQueue, definition: LocalQueue) -> WorldFacts:
    """Returns the facts that the rules get of the queue; an object that could not be seen is not among them."""
    process, initiation = seen.process(definition.process_name), seen.initiation(definition.initiation_q_name)
    processes = () if process is None or isinstance(process, NotSeen) else (process,)
    others = () if initiation is None or isinstance(initiation, NotSeen) else (initiation,)
    world = World((seen.queue, *others), (), processes, (), (), ())
    return WorldFacts(
        q_mgr=QueueManagerDefinition(name=seen.q_mgr_name, trigger_interval=seen.trigger_interval_ms),
        connection=ConnectionFacts(0, "", "", "", 0),
        queue=seen.queue,
        process=processes[0] if processes else None,
        initiation=others[0] if others else None,
        world=world,
    )


def _as_seen(seen: SeenQueue, definition: LocalQueue, verdict: Explained, now: int) -> Explained:
    """Returns the verdict with what could not be seen marked, and with 12 and 13 beside the conditions of a put."""
    unseen = seen.unseen_for(definition, now)
    mark = _Marking(seen, definition, unseen)
    conditions = _not_spared([mark.marked(each) for each in verdict.conditions], verdict.conditions)
    fires, fails, missing = outcome(conditions)
    shown = sorted((*conditions, *_others(seen, definition, mark, now)), key=lambda each: ORDER.index(each.number))
    values = _values(seen, verdict, unseen, missing if fires is None else [])
    if "saving" in values:
        values["saving"] = mark.saving(values["saving"])
    return replace(
        verdict,
        q_name=f"{seen.asked}@{seen.q_mgr_name}",
        fires=fires is True,
        occasion=_occasion(conditions) if fires else "",
        fails=fails,
        conditions=shown,
        values=values,
    )


def _not_spared(marked: list[Explanation], before: Iterable[Explanation]) -> list[Explanation]:
    """Returns the conditions with 3 not fulfilled where 11 spared it, and 11 turned out to be not seen."""
    spared = any(each.number == "11" and each.holds == "yes" for each in before)
    is_seen = any(each.number == "11" and each.holds == "yes" for each in marked)
    if not spared or is_seen:
        return marked
    return [replace(c, holds="NO") if c.number == "3" and c.holds == "does not apply" else c for c in marked]


def outcome(conditions: Iterable[Explanation]) -> tuple[bool | None, list[str], list[str]]:
    """Returns whether a put fires, None where it is not certain; the conditions that fail, and those not seen."""
    by_number = {each.number: each.holds for each in conditions}
    # Of 3 and 11 one is enough; 3 does not apply where 11 lets the put through, or to EVERY.
    third, eleventh = by_number.get("3", "yes"), by_number.get("11", "NO")
    either = "yes" if third in _HOLDS or eleventh == "yes" else NOT_SEEN if NOT_SEEN in (third, eleventh) else "NO"
    required = {number: by_number[number] for number in REQUIREMENTS if number in by_number} | {"3": either}
    fails = [number for number in REQUIREMENTS if required.get(number) == "NO"]
    missing = [number for number in REQUIREMENTS if required.get(number) == NOT_SEEN]
    if "3" in missing and third != NOT_SEEN:
        missing[missing.index("3")] = "11"
    return (False if fails else None if missing else True), fails, missing


_HOLDS: Final = ("yes", "does not apply")


def _occasion(conditions: Iterable[Explanation]) -> str:
    return "11" if any(each.number == "11" and each.holds == "yes" for each in conditions) else "1"


class _Marking:
    """Marks the conditions of one queue that rest on something that was not seen."""

    def __init__(self, seen: SeenQueue, definition: LocalQueue, unseen: Mapping[Fact, str]) -> None:
        self._seen = seen
        self._definition = definition
        self._unseen = unseen

    def marked(self, condition: Explanation) -> Explanation:
        """Returns the condition as it is, or as not seen with the reason."""
        if condition.number == "5" and condition.holds == "NO" and self._gets_are_not_asked():
            about = f"{condition.seen}; of normal usage that counts on z/OS alone, but a program's get fails (2016)"
            return replace(condition, holds="does not apply", seen=about, needed="", remedy="")
        rests_on = (Fact.ATTRIBUTES, *RESTS_ON.get(condition.number, ()))
        lacking = [fact for fact in rests_on if fact in self._unseen and condition.number != "1"]
        # With nobody elsewhere it may hold still; who is seen to read it here is enough for a NO.
        if not lacking:
            return condition
        if condition.holds == "does not apply" and not self._may_apply(condition.number, lacking):
            counts = {Fact.DEPTH, Fact.PRIORITIES} & set(lacking)
            return replace(condition, seen="", needed="") if counts else condition
        if lacking == [Fact.GROUP] and condition.holds == "NO":
            return condition
        if condition.number == "11" and condition.holds == "NO" and not self._may_hold():
            return condition
        why = "; ".join(f"{fact.value}: {self._unseen[fact]}" for fact in lacking)
        remedy = next((_REMEDIES[fact] for fact in lacking if fact in _REMEDIES), "")
        return replace(condition, holds=NOT_SEEN, seen=why, remedy=remedy)

    def saving(self, verdict: dict[str, Any]) -> dict[str, Any]:
        """Returns the verdict on a change with what was not seen marked; ``fires`` is None where it is not certain."""
        shown = [self.marked(Explanation(**each)) for each in verdict["conditions"]]
        fails = [each.number for each in shown if each.holds == "NO"]
        missing = [each.number for each in shown if each.holds == NOT_SEEN]
        fires = False if fails or not shown else None if missing else True
        occasion = next((each.number for each in shown if each.number.startswith("13")), "") if fires else ""
        return {"fires": fires, "occasion": occasion, "fails": fails, "conditions": [asdict(each) for each in shown]}

    def _gets_are_not_asked(self) -> bool:
        return self._definition.usage is Usage.NORMAL and self._seen.platform != ZOS

    def _may_apply(self, number: str, lacking: Iterable[Fact]) -> bool:
        """Returns whether a condition that does not apply by what was seen may apply.

        11 of FIRST and DEPTH does not apply where 3 holds, which rests on the messages that wait.
        """
        if Fact.ATTRIBUTES in lacking:
            return True
        hangs_on_third = number == "11" and self._definition.trigger_type in (TriggerType.FIRST, TriggerType.DEPTH)
        return hangs_on_third and bool({Fact.DEPTH, Fact.PRIORITIES} & set(lacking))

    def _may_hold(self) -> bool:
        """Returns whether 11 may hold although what was seen says no: where the messages that wait are not known."""
        return bool(self._seen.queue.depth) or Fact.DEPTH in self._unseen


def _others(seen: SeenQueue, definition: LocalQueue, mark: _Marking, now: int) -> list[Explanation]:
    """Returns conditions 12 and 13: what a close by the last reader, and a change of the criteria, would bring now."""
    facts = _facts(seen, definition)
    queue = replace(seen.queue, definition=definition)
    interval = seen.trigger_interval_ms
    unread = replace(queue, open_input_count=0)
    was = {"trigger_control": TriggerControl.OFF}
    events: tuple[tuple[str, QueueFacts, Happened, dict[str, Any], str], ...] = (
        ("12", unread, Happened.CLOSE, {"had_readers": 1}, "when the last reader closes it as it is now"),
        ("13", queue, Happened.CHANGE, {"was": was}, "when the criteria are changed as it is now"),
    )
    rows = []
    for number, judged, happened, more, when in events:
        situation = Situation(happened, judged, facts.process, facts.initiation, interval, now, **more)
        shown = [mark.marked(each) for each in explanations(situation, judge(situation))]
        row = next(each for each in shown if each.number == number)
        fails = [each.number for each in shown if each.holds == "NO"]
        missing = [each.number for each in shown if each.holds == NOT_SEEN]
        if row.holds not in ("does not apply", NOT_SEEN):
            comes = "a trigger message would be written"
            if fails or missing:
                comes = f"{', '.join(fails)} would not hold" if fails else f"{', '.join(missing)} could not be seen"
            holds = "NO" if row.holds == "NO" else "not yet" if fails or missing else "yes"
            row = replace(row, holds=holds, seen=f"{row.seen}; {when}: {comes}")
        rows.append(row)
    return rows


def _values(seen: SeenQueue, verdict: Explained, unseen: Mapping[Fact, str], missing: list[str]) -> dict[str, Any]:
    """Returns the values beside the conditions: what MQ tells, None where it was not seen."""
    queue = seen.queue
    shown = {name: verdict.values[name] for name in _KEPT}
    counted = {
        "current_q_depth": (Fact.DEPTH, queue.depth),
        "open_input_count": (Fact.READERS, queue.open_input_count),
        "open_output_count": (Fact.READERS, queue.open_output_count),
        "uncommitted_msgs": (Fact.UNCOMMITTED, seen.uncommitted),
        "trigger_interval_ms": (Fact.INTERVAL, seen.trigger_interval_ms),
    }
    shown |= {name: None if fact in unseen else value for name, (fact, value) in counted.items()}
    saving = {"saving": verdict.values["saving"]} if "saving" in verdict.values else {}
    return {
        **shown,
        **saving,
        "q_mgr_name": seen.q_mgr_name,
        "base_q_name": queue.definition.name,
        "handles": [asdict(handle) for handle in seen.handles],
        "monitors": [asdict(handle) for handle in seen.monitors],
        "not_seen": missing,
        "unseen": {fact.name.lower(): f"{fact.value}: {why}" for fact, why in unseen.items()},
    }


_KEPT: Final = ("priority", "counted_priority", "trigger_msg_priority", "process_name", "initiation_q_name")
