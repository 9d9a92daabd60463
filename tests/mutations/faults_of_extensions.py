"""What is ours: every cell of the rows B, M, R and S, their intervals, and the control that comes back by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from tests.mutations.fault import Fault
from tests.mutations.planting import Patches, number_of
from trigmon.mq.enums import ObjectType, Recover, TriggerType
from trigmon.mq.timed_enums import Missed, OnlyIf
from trigmon.qmgr import schedule_times
from trigmon.rules.model import situation, state
from trigmon.rules.model.situation import Happened
from trigmon.rules.objects import close, open, schedule_moments, timed_triggers
from trigmon.rules.reservations import end_reservation
from trigmon.rules.triggers import effects, extensions, table
from trigmon.rules.triggers.conditions import Condition
from trigmon.rules.triggers.extensions import EXTENSIONS, OUR_OCCASIONS

ROWS = {
    "B": extensions.backstop_passed,
    "M": extensions.oldest_has_waited,
    "R": extensions.reservation_lost,
    "S": extensions.moment_came,
}
# B itself is of type FIRST, so that the type is never NONE there.
IMPLIED = {("B", "10")}


def _in_force(
    rows: dict[Condition, Condition], law: dict[Condition, tuple[Condition, ...]]
) -> Callable[[Patches], None]:
    """The plan of our rows with some conditions replaced."""
    said = {rows.get(row, row): asked for row, asked in law.items()}
    occasions = {h: tuple(rows.get(row, row) for row in candidates) for h, candidates in OUR_OCCASIONS.items()}
    return lambda patches: patches.setattr(table, "_OUR_PLAN", table.plan_of(said, occasions))


def cells() -> Iterator[Fault]:
    for row, occasion in ROWS.items():
        for requirement in EXTENSIONS[occasion]:
            if (row, number_of(requirement)) not in IMPLIED:
                rest = tuple(c for c in EXTENSIONS[occasion] if c is not requirement)
                name = f"{row}: does not ask for {number_of(requirement)}"
                yield Fault(name, _in_force({}, {**EXTENSIONS, occasion: rest}))


def _judged(row: str, change: Callable[[Any, Any], Any]) -> Callable[[Patches], None]:
    """The row's condition, its situation changed before it is looked at."""
    right = ROWS[row]
    return _in_force({right: lambda s: right(change(s, s.queue.definition))}, EXTENSIONS)


def _with(definition: str, value: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def changed(s: Any, d: Any) -> Any:
        return replace(s, queue=replace(s.queue, definition=replace(d, **{definition: value(d)})))

    return changed


def _no_stamp(s: Any, d: Any) -> Any:
    return replace(s, queue=replace(s.queue, trigger_stamp_ms=None))


def _nothing_waits(s: Any, d: Any) -> Any:
    return replace(s, queue=replace(s.queue, depths=(0,) * 10))


def _rearm(holds: Callable[[Any], bool]) -> Callable[[Patches], None]:
    def plant(patches: Patches) -> None:
        patches.setattr(close, "comes_back", holds)
        patches.setattr(timed_triggers, "comes_back", holds)

    return plant


def _missed(holds: Callable[[Any], bool]) -> Callable[[Patches], None]:
    return lambda patches: patches.setattr(timed_triggers, "is_missed", holds)


def _left(says: Callable[[Any], Any], when: Callable[[Any], bool] = lambda d: True) -> Callable[[Patches], None]:
    """What is noted of a queue at its last close; by the law where ``when`` does not hold."""
    right = close.left_by_readers

    def noted(queue: Any) -> Any:
        return says(queue.definition) if when(queue.definition) else right(queue)

    return lambda patches: patches.setattr(close, "left_by_readers", noted)


def _forgotten(patches: Patches) -> None:
    right = effects.disarmed
    patches.setattr(effects, "disarmed", lambda definition: replace(right(definition), is_disarmed=False))


def _always_remembered(patches: Patches) -> None:
    right = effects.disarmed
    patches.setattr(effects, "disarmed", lambda definition: replace(right(definition), is_disarmed=True, rearm=1))


def _never_behind(patches: Patches) -> None:
    right = end_reservation.without
    never_behind = lambda r, connection: replace(right(r, connection), holder=0, readers=())  # noqa: E731
    patches.setattr(end_reservation, "without", never_behind)


def _handles_first(patches: Patches) -> None:
    leaves, closes = close._leaves, close._closes
    patches.setattr(close, "_leaves", closes)
    patches.setattr(close, "_closes", leaves)


def _recovers(says: Callable[[Any], bool]) -> Callable[[Patches], None]:
    """RECOVER(ALL) holds for other situations."""
    return lambda patches: patches.setattr(situation.Situation, "recovers_all", property(says))


def _is_monitors(s: Any) -> bool:
    return s.happened is situation.Happened.MONITOR_OPENED and s.process is not None


def _due_of_any_priority(s: Any) -> int:
    return max(0, s.queue.waiting(0) - s.under_way) if s.recovers_all else 1


def _with_priority_zero(s: Any, d: Any) -> Any:
    return replace(s, queue=replace(s.queue, definition=replace(d, trigger_msg_priority=0)))


def _not_persistent(patches: Patches) -> None:
    right = effects._written

    def written(situation: Any, *given: Any) -> Any:
        made = right(situation, *given)
        return made if situation.schedule is None else replace(made, is_persistent=False)

    patches.setattr(effects, "_written", written)


def _over_without_a_monitor(patches: Patches) -> None:
    settled = schedule_moments._settled
    over = lambda schedule, moment_ms, effects: settled(schedule, moment_ms, "no monitor")  # noqa: E731
    patches.setattr(schedule_moments, "_not_started", over)


def _all_missed(patches: Patches) -> None:
    right = schedule_moments.moments_due
    for_all = lambda schedule, *given: right(replace(schedule, missed=Missed.ALL), *given)  # noqa: E731
    patches.setattr(schedule_times, "moments_due", for_all)


def _disarming(patches: Patches) -> None:
    right = effects.trigger

    def fired(situation: Any, *given: Any, **more: Any) -> Any:
        made = right(situation, *given, **more)
        if not made.events or situation.happened is not Happened.MOMENT:
            return made
        off = effects.SetDefinition(ObjectType.QLOCAL, extensions.disarmed(situation.queue.definition))
        return replace(made, changes=[*made.changes, off])

    patches.setattr(schedule_moments, "trigger", fired)


FAULTS = [
    *cells(),
    Fault(
        "S: nothing need wait, whatever ONLYIF says",
        _judged("S", lambda s, d: replace(s, schedule=replace(s.schedule, only_if=OnlyIf.NONE))),
    ),
    Fault("S: any priority is enough", _judged("S", _with_priority_zero)),
    Fault("S: its trigger message is gone with a crash", _not_persistent),
    Fault("S: a moment without a monitor is over", _over_without_a_monitor),
    Fault("S: whatever was missed is started for", _all_missed),
    Fault("S: DEPTH is switched off by a moment", _disarming),
    Fault(
        "S: each member of a group starts for itself",
        lambda patches: patches.setattr(schedule_moments, "_is_claimed", lambda *given: False),
    ),
    Fault(
        "S: a shared queue starts on each member's own initiation queue",
        lambda patches: patches.setattr(schedule_moments, "_for_group", lambda queue, initiation: initiation),
    ),
    Fault("RECOVER: one trigger message in all, whatever it says", _recovers(lambda s: False)),
    Fault(
        "RECOVER: MQ's way is taken for ALL",
        _recovers(lambda s: _is_monitors(s) and s.queue.definition.trigger_type is TriggerType.EVERY),
    ),
    Fault(
        "RECOVER: of FIRST and DEPTH as well",
        _recovers(lambda s: _is_monitors(s) and s.process.recover is Recover.ALL),
    ),
    Fault(
        "RECOVER: messages of any priority",
        lambda patches: patches.setattr(situation.Situation, "due", property(_due_of_any_priority)),
    ),
    Fault(
        "RECOVER: what lies on the initiation queue is written again",
        lambda patches: patches.setattr(open, "_lying", lambda found: Counter()),
    ),
    Fault(
        "RECOVER: what is hidden in a unit of work is written again",
        lambda patches: patches.setattr(state.Standing, "_under_way", lambda self, queue: 0),
    ),
    Fault("B: its interval is not waited for", _judged("B", _no_stamp)),
    Fault("B: ten times the interval", _judged("B", _with("backstop_s", lambda d: d.backstop_s * 10))),
    Fault("M: ten times the wait", _judged("M", _with("max_wait_s", lambda d: d.max_wait_s * 10))),
    Fault("M: half the wait", _judged("M", _with("max_wait_s", lambda d: d.max_wait_s // 2))),
    Fault("M: fires again and again", _judged("M", _no_stamp)),
    Fault("M: nothing is ever the oldest", _judged("M", lambda s, d: replace(s, oldest_ms=None))),
    Fault("R: one message is enough for DEPTH", _judged("R", _with("trigger_depth", lambda d: 1))),
    Fault("R: any priority is enough", _judged("R", _with("trigger_msg_priority", lambda d: 0))),
    Fault("R: while another connection stands behind it", _never_behind),
    Fault(
        "R: the reserved messages do not count",
        _judged("R", _nothing_waits),
    ),
    Fault("R and 12: the handles are closed first", _handles_first),
    Fault("REARM: control never comes back", _rearm(lambda queue: False)),
    Fault(
        "REARM: control comes back while enough wait",
        _rearm(lambda queue: queue.definition.is_disarmed and not queue.open_input_count),
    ),
    Fault(
        "REARM: control comes back while somebody reads",
        _rearm(lambda q: q.definition.is_disarmed and q.waiting(0) < q.definition.trigger_depth),
    ),
    Fault("REARM: what was not committed yet is never looked at again", _missed(lambda queue: False)),
    Fault(
        "REARM: it is looked at before it is committed",
        _missed(lambda queue: queue.definition.is_drained and not queue.open_input_count),
    ),
    Fault(
        "REARM: it is looked at while somebody reads",
        _missed(lambda queue: queue.definition.is_drained and extensions._can_see_enough(queue)),
    ),
    Fault("REARM: who leaves enough has drained it", _left(lambda d: replace(d, is_drained=d.is_disarmed))),
    Fault("REARM: once drained, always drained", _left(lambda d: d, when=lambda d: d.is_drained)),
    Fault("REARM: it is forgotten that DEPTH did it", _forgotten),
    Fault("REARM: MQ's way is taken for AUTO", _always_remembered),
]
