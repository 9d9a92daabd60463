"""Occasions 11 and 12: a put while others wait judged by the wrong interval or depth, a close that is none."""

from __future__ import annotations

from msgspec.structs import replace

from tests.mutations.fault import Fault
from tests.mutations.planting import (
    DEPTH,
    FIRST,
    INPUT,
    Patches,
    decided,
    found_with,
    has_waited,
    held_as,
    kind_of,
    of_queue,
    replaced,
)
from trigmon.mq.calls import Backout, Close, Commit, Disconnect, LostConnection
from trigmon.qmgr.manager import QueueManager
from trigmon.rules.model.internal_calls import Forget
from trigmon.rules.model.situation import Situation
from trigmon.rules.objects import close
from trigmon.rules.triggers import table


def _depth_waits_too(s: Situation, f) -> bool:
    return f.holds and not (kind_of(s) is DEPTH and not has_waited(s))


ELEVEN = [
    Fault(
        "11: the interval is not asked", replaced(table.c11, of_queue(lambda q, s: replace(q, trigger_stamp_ms=None)))
    ),
    Fault(
        "11: exactly the interval is not enough", replaced(table.c11, found_with(lambda s: replace(s, now=s.now - 1)))
    ),
    Fault(
        "11: a millisecond less than the interval is enough",
        replaced(table.c11, found_with(lambda s: replace(s, now=s.now + 1))),
    ),
    Fault(
        "11: never written counts as not passed",
        replaced(
            table.c11,
            held_as(lambda s, f: f.holds and not (kind_of(s) is FIRST and s.queue.trigger_stamp_ms is None)),
        ),
    ),
    Fault("11: DEPTH waits for the interval", replaced(table.c11, held_as(_depth_waits_too))),
    Fault(
        "11: DEPTH must be past its depth",
        replaced(
            table.c11,
            held_as(
                lambda s, f: (
                    f.holds
                    and not (
                        kind_of(s) is DEPTH
                        and s.queue.waiting(s.queue.definition.trigger_msg_priority) == s.queue.definition.trigger_depth
                    )
                )
            ),
        ),
    ),
    Fault(
        "11: not for FIRST",
        replaced(table.c11, held_as(lambda s, f: f.holds and kind_of(s) is not FIRST)),
    ),
    Fault(
        "11: not for DEPTH",
        replaced(table.c11, held_as(lambda s, f: f.holds and kind_of(s) is not DEPTH)),
    ),
]

# -- 12 -----------------------------------------------------------------------------------------------------


def _without_12(s: Situation, f) -> bool:
    """12 as it would be if it did not ask for its types."""
    waiting = s.queue.waiting(s.queue.definition.trigger_msg_priority)
    return f.holds or (waiting > 0 and s.had_readers > 0 and s.queue.open_input_count == 0)


def _any_handle(right, call, facts, found, now, ids):
    """A close of a handle that was not for input is taken for the last reader's."""
    handle = facts.handle
    if handle is None or facts.queue is None or handle.options & INPUT:
        return right(call, facts, found, now, ids)
    queue = replace(facts.queue, open_input_count=facts.queue.open_input_count + 1)
    return right(
        call, replace(facts, queue=queue, handle=replace(handle, options=handle.options | INPUT)), found, now, ids
    )


def _ends(first_closes: bool, end: type):
    def ending(right, call, facts, found, now, ids):
        ends = [end(unit=facts.connection.unit_number)] if facts.connection.unit_id else []
        closes = close._closes(facts)
        return replace(
            right(call, facts, found, now, ids),
            internal_calls=[*closes, *ends, Forget()] if first_closes else [*ends, *closes, Forget()],
        )

    return ending


def _backwards(right, call, facts, found, now, ids):
    connection = replace(facts.connection, handles=tuple(reversed(facts.connection.handles)))
    return right(call, replace(facts, connection=connection), found, now, ids)


def _stop_closes(patches: Patches) -> None:
    right = QueueManager.stop

    def stop(self):
        self.lost(list(self._sessions.values()))
        return right(self)

    patches.setattr(QueueManager, "stop", stop)


TWELVE = [
    Fault("12: any reader's close", replaced(table.c12, of_queue(lambda q, s: replace(q, open_input_count=0)))),
    Fault("12: EVERY as well", replaced(table.c12, held_as(_without_12))),
    Fault(
        "12: not for FIRST",
        replaced(table.c12, held_as(lambda s, f: f.holds and kind_of(s) is not FIRST)),
    ),
    Fault(
        "12: not for DEPTH",
        replaced(table.c12, held_as(lambda s, f: f.holds and kind_of(s) is not DEPTH)),
    ),
    Fault(
        "12: waits for the interval",
        replaced(table.c12, held_as(lambda s, f: f.holds and has_waited(s))),
    ),
    Fault("12: any handle's close", decided(Close, _any_handle)),
    Fault(
        "12: not when a browser is left", replaced(table.c12, held_as(lambda s, f: f.holds and s.queue.open_count == 1))
    ),
    Fault("12: a lost connection closes before it backs out", decided(LostConnection, _ends(True, Backout))),
    Fault("12: a lost connection commits", decided(LostConnection, _ends(False, Commit))),
    Fault("12: a disconnect backs out", decided(Disconnect, _ends(False, Backout))),
    Fault("12: a disconnect closes in the wrong order", decided(Disconnect, _backwards)),
    Fault("12: a lost connection closes in the wrong order", decided(LostConnection, _backwards)),
    Fault("12: a restart is a close", _stop_closes),
]

FAULTS = [*ELEVEN, *TWELVE]
