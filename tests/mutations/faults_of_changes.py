"""Occasions 13, 13a, 13b and 13c: changes and monitors seen where there are none, or not seen."""

from __future__ import annotations

from msgspec.structs import replace

from tests.mutations.fault import Fault
from tests.mutations.planting import (
    DEPTH,
    EVERY,
    FIRST,
    INPUT,
    Patches,
    decided,
    found_with,
    has_waited,
    held_as,
    kind_of,
    put_in_force,
    replaced,
    with_store,
)
from trigmon.mq.calls import Alter, Define, Open, Set
from trigmon.mq.enums import Inhibit, ObjectType, OpenOption, TriggerControl, TriggerType
from trigmon.rules.model.changes import SetDefinition
from trigmon.rules.model.decision import Decision
from trigmon.rules.model.facts import Neighbour
from trigmon.rules.model.situation import Happened
from trigmon.rules.model.state import Standing
from trigmon.rules.objects import alter, define, open
from trigmon.rules.objects import inquire_set as setting
from trigmon.rules.triggers import table

# -- 13, 13a, 13b -------------------------------------------------------------------------------------------


def _not_compared(attribute: str, value: object):
    """A change is judged as if the attribute had had another value before."""

    def plant(patches: Patches) -> None:
        right = alter.situations

        def situations(facts, queue, neighbour, before, served, now):
            return right(facts, queue, neighbour, replace(before, **{attribute: value}), served, now)

        patches.setattr(alter, "situations", situations)

    return plant


def _criterion(name: str):
    """An attribute that is none is taken for a criterion."""

    def plant(patches: Patches) -> None:
        patches.setattr(alter, "_CRITERIA", (*alter._CRITERIA, name))
        counts = found_with(lambda s: replace(s, was={"trigger_type" if k == name else k: v for k, v in s.was.items()}))
        put_in_force(patches, table.TABLE, {table.c13: counts(table.c13)})

    return plant


def _just_set(facts, neighbour, definition, served, now, ids):
    return Decision(changes=[SetDefinition(ObjectType.QLOCAL, definition)])


def _unnoticed(call, module):
    """Changes made by one verb are no occasion."""

    def plant(patches: Patches) -> None:
        def deciding(right, *args):
            with patches.context() as inner:
                inner.setattr(module, "altered", _just_set)
                return right(*args)

        decided(call, deciding)(patches)

    return plant


def _apart(patches: Patches) -> None:
    """One command that is two occasions for a queue is judged for each."""
    right = alter.situations
    patches.setattr(alter, "situations", lambda *args: [[s] for group in right(*args) for s in group])


def _as_it_was(patches: Patches) -> None:
    right = alter.situations

    def situations(facts, queue, neighbour, before, served, now):
        return (
            right(facts, queue, neighbour, before, served, now)
            if queue is neighbour.queue
            else [
                [replace(s, queue=neighbour.queue) if s.happened is Happened.CHANGE else s for s in group]
                for group in right(facts, queue, neighbour, before, served, now)
            ]
        )

    patches.setattr(alter, "situations", situations)


def _old_neighbours(patches: Patches) -> None:
    """A change is judged with the process and initiation queue that the old definition names."""

    def neighbour(queue, definition, facts):
        old = queue.definition
        process = next((p for p in facts.world.processes if p.name == old.process_name), None)
        initiation = next((q for q in facts.world.queues if q.definition.name == old.initiation_q_name), None)
        return Neighbour(queue, process, initiation)

    patches.setattr(define, "neighbour", neighbour)


def _gets_for_puts(patches: Patches) -> None:
    right = alter.situations

    def situations(facts, queue, neighbour, before, served, now):
        if before.inhibit_get is Inhibit.INHIBITED and queue.definition.inhibit_get is Inhibit.ALLOWED:
            before = replace(before, inhibit_put=Inhibit.INHIBITED)
        return right(facts, queue, neighbour, before, served, now)

    patches.setattr(alter, "situations", situations)


def _some_served(choose):
    def plant(patches: Patches) -> None:
        right = alter.situations
        patches.setattr(alter, "situations", lambda f, q, n, b, served, now: right(f, q, n, b, choose(served), now))

    return plant


def _all_served(patches: Patches) -> None:
    """Every queue is judged, whichever initiation queue it names."""

    def served(self, initiation_q):
        initiation = self.queues.get(initiation_q)
        return tuple(
            Neighbour(q, self.processes.get(q.definition.process_name), initiation)
            for _, q in sorted(self.queues.items())
        )

    patches.setattr(Standing, "_served", served)


CRITERIA = ("trigger_control", "trigger_type", "trigger_msg_priority", "trigger_depth")
NO_CRITERIA = (
    "trigger_data",
    "process_name",
    "initiation_q_name",
    "def_priority",
    "inhibit_put",
    "description",
    "max_q_depth",
)

THIRTEEN = [
    *(
        Fault(
            f"13: {name} is no criterion",
            lambda patches, name=name: patches.setattr(alter, "_CRITERIA", tuple(n for n in CRITERIA if n != name)),
        )
        for name in CRITERIA
    ),
    *(Fault(f"13: {name} is a criterion", _criterion(name)) for name in NO_CRITERIA),
    Fault(
        "13: trigger_depth is a criterion for FIRST and EVERY",
        replaced(
            table.c13,
            found_with(
                lambda s: replace(s, was={"trigger_type" if k == "trigger_depth" else k: v for k, v in s.was.items()})
            ),
        ),
    ),
    Fault("13: changed without comparing, control", _not_compared("trigger_control", TriggerControl.OFF)),
    Fault("13: changed without comparing, type", _not_compared("trigger_type", TriggerType.NONE)),
    Fault("13: changed without comparing, threshold", _not_compared("trigger_msg_priority", 99)),
    Fault("13: changed without comparing, depth", _not_compared("trigger_depth", 0)),
    Fault("13: MQSET is not noticed", _unnoticed(Set, setting)),
    Fault("13: ALTER is not noticed", _unnoticed(Alter, define)),
    Fault("13: DEFINE REPLACE is not noticed", _unnoticed(Define, define)),
    Fault("13: judged by the values before", _as_it_was),
    Fault("13: judged with the old process and initiation queue", _old_neighbours),
    Fault("13: two occasions in one command write two", _apart),
    Fault(
        "13: waits for the interval",
        replaced(table.c13, held_as(lambda s, f: f.holds and has_waited(s))),
    ),
    *(
        Fault(
            f"{number}: not for {kind.name}",
            replaced(c, held_as(lambda s, f, kind=kind: f.holds and kind_of(s) is not kind)),
        )
        for number, c in (("13", table.c13), ("13a", table.c13a), ("13b", table.c13b), ("13c", table.c13c))
        for kind in (FIRST, EVERY, DEPTH)
    ),
    Fault("13a: allowed without comparing", _not_compared("inhibit_put", Inhibit.INHIBITED)),
    Fault("13a: gets allowed again are enough", _gets_for_puts),
    Fault("13a: only the first queue is judged", _some_served(lambda served: served[:1])),
    Fault("13a: no queue is judged", _some_served(lambda served: ())),
    Fault("13a and 13c: queues of other initiation queues are judged", _all_served),
    Fault("13b: allowed without comparing", _not_compared("inhibit_get", Inhibit.INHIBITED)),
]

# -- 13c ----------------------------------------------------------------------------------------------------


def _monitor(change):
    def plant(patches: Patches) -> None:
        right = open._monitor_opened

        def opened(queue, facts, found, now, ids):
            return right(*change(queue, facts), found, now, ids)

        patches.setattr(open, "_monitor_opened", opened)

    return plant


def _its_own_do_not_count(patches: Patches) -> None:
    store = with_store(patches)

    def change(queue, facts):
        handles = [
            h for h in store[0].standing.handles.values() if h.q_name == queue.definition.name and h.options & INPUT
        ]
        alone = all(h.connection == facts.connection.connection for h in handles)
        return (replace(queue, open_input_count=0) if alone else queue), facts

    _monitor(change)(patches)


def _browser_is_a_monitor(right, call, facts, found, now, ids):
    decision = right(call, facts, found, now, ids)
    if facts.queue is None or not call.options & OpenOption.BROWSE or call.options & (INPUT | 1):
        return decision
    more = open._monitor_opened(facts.queue, facts, None, now, ids)
    return replace(
        decision,
        changes=[*decision.changes, *(c for effect in more for c in effect.changes)],
        events=(*decision.events, *(t for effect in more for t in effect.events)),
    )


THIRTEEN_C = [
    Fault(
        "13c: the second monitor as well", _monitor(lambda queue, facts: (replace(queue, open_input_count=0), facts))
    ),
    Fault("13c: a monitor's second handle as well", _its_own_do_not_count),
    Fault(
        "13c: only the first queue is judged",
        _monitor(lambda queue, facts: (queue, replace(facts, served=facts.served[:1]))),
    ),
    Fault("13c: no queue is judged", _monitor(lambda queue, facts: (queue, replace(facts, served=())))),
    Fault("13c: a browser as well", decided(Open, _browser_is_a_monitor)),
    Fault(
        "13c: waits for the interval",
        replaced(table.c13c, held_as(lambda s, f: f.holds and has_waited(s))),
    ),
]

FAULTS = [*THIRTEEN, *THIRTEEN_C]
