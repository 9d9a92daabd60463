"""Marks, locks and gets under syncpoint if persistent: what is given back, seen or counted where it must not be."""

from __future__ import annotations

from msgspec.structs import replace

from tests.mutations.fault import Fault
from tests.mutations.planting import Patches, decided, followed
from trigmon.mq.calls import Backout
from trigmon.mq.errors import OptionsError, SecondMarkNotAllowed
from trigmon.rules.messages import browse_lock, get, get_options
from trigmon.rules.messages.units_of_work import decide_abandon, decide_backout
from trigmon.rules.model.changes import BeginUnit, CarryOver, TakeMessage
from trigmon.rules.model.internal_calls import Abandon
from trigmon.rules.objects import close
from trigmon.store.memory import store
from trigmon.store.memory.rows import Row, Rows, once_more


def _unless(error):
    """Marks are checked, but for one refusal."""

    def plant(patches: Patches) -> None:
        right = get_options.check_mark

        def check(*args):
            try:
                right(*args)
            except error:
                return

        patches.setattr(get_options, "check_mark", check)

    return plant


def _in_the_next_unit(change_of):
    """The unit that a carried get begins, as it is, changed."""

    def begun(right, standing, change):
        right(standing, change)
        if change.carried is not None:
            unit = standing.units[change.unit_id]
            standing.write(standing.units, unit.unit_id, change_of(unit, change.carried))

    return followed(BeginUnit, begun)


def _counted_at_once(patches: Patches) -> None:
    def carry_over(store, change):
        row = store._rows.row(change.message)
        store._rows.set(Row(once_more(row.message), row.put_by, change.unit_id))

    patches.setitem(store._WRITE, CarryOver, carry_over)


def _left_behind(patches: Patches) -> None:
    patches.delitem(store._WRITE, CarryOver)


def _instead(module, name, function):
    return lambda patches: patches.setattr(module, name, function)


MARKS = [
    Fault(
        "mark: an application's backout gives the message back",
        decided(Backout, lambda right, *args: decide_abandon(*args)),
    ),
    Fault(
        "mark: a lost connection's backout skips the message",
        decided(Abandon, lambda right, *args: decide_backout(*args)),
    ),
    Fault("mark: a second one in a unit is allowed", _unless(SecondMarkNotAllowed)),
    Fault("mark: it is allowed outside syncpoint", _unless(OptionsError)),
    Fault("mark: it is still one in the next unit", _in_the_next_unit(lambda unit, one: replace(unit, marked=one))),
    Fault("mark: the next unit does not count it", _in_the_next_unit(lambda unit, one: replace(unit, count=0))),
    Fault("mark: the next unit does not give it back", _in_the_next_unit(lambda unit, one: replace(unit, gets={}))),
    Fault("mark: the count rises at the backout that is skipped", _counted_at_once),
    Fault("mark: its row goes back to the queue", _left_behind),
    Fault(
        "mark: nothing is marked",
        followed(TakeMessage, lambda right, standing, change: right(standing, replace(change, marked=None))),
    ),
]

LOCKS = [
    Fault("lock: others see the message", _instead(Rows, "_is_locked", lambda *_: False)),
    Fault(
        "lock: its own handle does not see the message",
        _instead(Rows, "_is_locked", lambda self, number, selection: number in self.locks),
    ),
    Fault("lock: a close leaves it", _instead(close, "released", lambda handle: [])),
    Fault("lock: a browse that finds nothing leaves it", _instead(get, "after_nothing", lambda *_: [])),
    Fault(
        "lock: a browse without one leaves it",
        _instead(
            get, "after_browse", lambda o, *rest: browse_lock.after_browse(o, *rest) if o & browse_lock.LOCK else []
        ),
    ),
    Fault("lock: it needs no browse", _instead(get_options, "LOCK", 0)),
    Fault(
        "lock: it stays when its message is taken",
        followed(
            TakeMessage,
            lambda right, standing, change: _with_locks(right, standing, change, dict(standing.locks)),
        ),
    ),
]


def _with_locks(right, standing, change, before):
    handles = {number: standing.handles[handle] for number, handle in before.items()}
    right(standing, change)
    for number, handle in handles.items():
        standing.write(standing.locks, number, handle.handle)
        standing.write(standing.handles, handle.handle, handle)


IF_PERSISTENT = [
    Fault(
        "if persistent: every message is got in the unit",
        _instead(get, "syncpoint_of", lambda options, message: options | (2 if options & 0x1000 else 0)),
    ),
    Fault("if persistent: none is", _instead(get, "syncpoint_of", lambda options, message: options)),
]

FAULTS = [*MARKS, *LOCKS, *IF_PERSISTENT]
