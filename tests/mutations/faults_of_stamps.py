"""The interval's stamp: not kept, kept too long, set at the wrong moment, set for the wrong queue."""

from __future__ import annotations

from msgspec.structs import replace

from tests.mutations.fault import Fault
from tests.mutations.planting import Patches, afterwards, followed, occasion_of, triggering, without
from trigmon.mq.attributes import LocalQueue
from trigmon.rules.model.changes import DropDefinition, EndUnit, SetDefinition, StampTrigger
from trigmon.rules.model.situation import Happened
from trigmon.rules.model.state import Standing
from trigmon.simulate.in_process import InProcess
from trigmon.store.memory.store import MemoryStore

OCCASIONS = ("1", "11", "12", "13", "13a", "13b", "13c")


def _stamp(standing: Standing, q_name: str, stamp: int | None) -> None:
    queue = standing.queues.get(q_name)
    if queue is not None:
        standing.write(standing.queues, q_name, replace(queue, trigger_stamp_ms=stamp))


def _not_by(occasion: str):
    return afterwards(lambda found, s: without(found, StampTrigger) if occasion_of(found) == occasion else found)


def _of_all(right, standing: Standing, change: StampTrigger) -> None:
    for q_name in list(standing.queues):
        _stamp(standing, q_name, change.now)


def _by_quiet_puts(trigger):
    def spoiled(situation, *args, **named):
        found = trigger(situation, *args, **named)
        if situation.happened is not Happened.PUT or found.events:
            return found
        return replace(found, changes=[*found.changes, StampTrigger(situation.queue.definition.name, situation.now)])

    return spoiled


def _at_release(patches: Patches) -> None:
    """A trigger message of a unit of work stamps its queue when the unit ends."""

    def not_in_units(trigger):
        def spoiled(situation, q_mgr_name, ids, unit_id=0, *rest, **named):
            found = trigger(situation, q_mgr_name, ids, unit_id, *rest, **named)
            return without(found, StampTrigger) if unit_id else found

        return spoiled

    def ended(right, standing, change):
        right(standing, change)
        for held in change.unit.held:
            if held.message is not None:
                _stamp(standing, held.message.q_name, change.now)

    triggering(not_in_units)(patches)
    followed(EndUnit, ended)(patches)


def _over_a_restart(patches: Patches) -> None:
    right = MemoryStore.open

    def opened(self, q_mgr_name, now):
        before = {name: queue.trigger_stamp_ms for name, queue in self.standing.queues.items()}
        first = right(self, q_mgr_name, now)
        for name in self.standing.queues.keys() & before.keys():
            self.standing.queues[name] = replace(self.standing.queues[name], trigger_stamp_ms=before[name])
        return first

    patches.setattr(MemoryStore, "open", opened)


def _over_a_deletion(patches: Patches) -> None:
    kept: dict[str, int | None] = {}

    def dropped(right, standing, change):
        if change.name in standing.queues:
            kept[change.name] = standing.queues[change.name].trigger_stamp_ms
        right(standing, change)

    def defined(right, standing, change):
        right(standing, change)
        if isinstance(change.definition, LocalQueue) and change.definition.name in kept:
            _stamp(standing, change.definition.name, kept.pop(change.definition.name))

    followed(DropDefinition, dropped)(patches)
    followed(SetDefinition, defined)(patches)
    right = InProcess.__init__

    def begun(self, q_mgr, store):
        kept.clear()
        right(self, q_mgr, store)

    patches.setattr(InProcess, "__init__", begun)


def _lost_by_definition(right, standing: Standing, change: SetDefinition) -> None:
    right(standing, change)
    if isinstance(change.definition, LocalQueue):
        _stamp(standing, change.definition.name, None)


def _lost_by_backout(right, standing: Standing, change: EndUnit) -> None:
    right(standing, change)
    if change.outcome.name == "BACKED_OUT":
        for held in change.unit.held:
            if held.message is not None:
                _stamp(standing, held.message.q_name, None)


FAULTS = [
    *(Fault(f"stamp: not set by occasion {occasion}", _not_by(occasion)) for occasion in OCCASIONS),
    Fault("stamp: not kept at all", followed(StampTrigger, lambda right, standing, change: None)),
    Fault("stamp: one for all queues", followed(StampTrigger, _of_all)),
    Fault("stamp: set by puts that do not fire", triggering(_by_quiet_puts)),
    Fault("stamp: set at release instead of at making", _at_release),
    Fault("stamp: kept over a restart", _over_a_restart),
    Fault("stamp: kept over a deletion", _over_a_deletion),
    Fault("stamp: lost when the queue is altered", followed(SetDefinition, _lost_by_definition)),
    Fault("stamp: lost by a backout", followed(EndUnit, _lost_by_backout)),
    Fault(
        "stamp: not set by a trigger message that becomes a dead letter",
        afterwards(lambda found, s: without(found, StampTrigger) if found.internal_calls else found),
    ),
]
