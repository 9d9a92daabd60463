"""A shared queue as its group holds it, and its state transitions: the one copy of that arithmetic for every store.

Each member sees it in its own way: its own handles, and the readers of the others. Only committed messages are counted
(seed 001, condition 3, note b), and those got under a unit of work do not wait any more, as on a private queue (12,
note b). Counters show what moved since a member last looked, so a member that is notified late, or once for several
changes, still knows what happened.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import msgspec
from msgspec.structs import replace

from trigmon.mq.attributes import LocalQueue
from trigmon.mq.enums import OpenOption, TriggerControl, TriggerType
from trigmon.rules.model.group_members import Use
from trigmon.rules.model.handles import HandleFacts
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.shared_view import NO_DEPTH, Reader, Shared

_INPUT = OpenOption.INPUT_SHARED.value | OpenOption.INPUT_EXCLUSIVE.value


_NO_USE = Use()


class SharedQueue(msgspec.Struct, frozen=True):
    """The state of a shared queue in its group. Its counters: :class:`trigmon.rules.model.shared_view.Shared`."""

    definition: LocalQueue
    depths: tuple[int, ...] = NO_DEPTH
    uses: dict[str, Use] = {}
    put_totals: tuple[int, ...] = NO_DEPTH
    rises: tuple[int, ...] = NO_DEPTH
    crossings: int = 0
    triggers: int = 0
    disarms: int = 0

    def seen_by(self, member: str, trigger_stamp_ms: int | None) -> QueueFacts:
        """Returns the queue as one member sees it, with the stamp that is that member's own."""
        own = self.uses.get(member, _NO_USE)
        readers = []
        is_exclusive, opens, puts, gets = False, 0, 0, 0
        for name, use in sorted(self.uses.items()):
            if use.inputs and name != member:
                readers.append(Reader(name, use.inputs, use.is_exclusive))
            is_exclusive = is_exclusive or use.is_exclusive
            opens, puts, gets = opens + use.opens, puts + use.puts, gets + use.gets
        return QueueFacts(
            self.definition,
            self.depths,
            own.inputs,
            is_exclusive,
            own.outputs,
            opens,
            puts,
            gets,
            trigger_stamp_ms,
            shared=Shared(tuple(readers), self.put_totals, self.rises, self.crossings, self.triggers, self.disarms),
        )


def came(queue: SharedQueue, counts: Sequence[int]) -> SharedQueue:
    """Returns the queue after ``counts`` messages by priority became available, put outside syncpoint or committed."""
    if not any(counts):
        return queue
    after = _sum(queue.depths, counts)
    lay, arrived = _of_at_least(queue.depths), _of_at_least(counts)
    rises = tuple(map(_after_rise, queue.rises, lay, arrived))
    definition = queue.definition
    lowest, depth = definition.trigger_msg_priority, definition.trigger_depth
    has_crossed = definition.trigger_type is TriggerType.DEPTH and (
        lay[lowest] < depth <= lay[lowest] + arrived[lowest]
    )
    return replace(
        queue,
        depths=after,
        put_totals=_sum(queue.put_totals, counts),
        rises=rises,
        crossings=queue.crossings + has_crossed,
    )


def lies(queue: SharedQueue, counts: Sequence[int]) -> SharedQueue:
    """Returns the queue with ``counts`` more (or fewer) messages by priority, put by no application: no occasion."""
    return replace(queue, depths=_sum(queue.depths, counts)) if any(counts) else queue


def at_work(queue: SharedQueue, member: str, puts: int = 0, gets: int = 0) -> SharedQueue:
    """Returns the queue with so many more, or fewer, uncommitted puts and gets of a member."""
    use = queue.uses.get(member, _NO_USE)
    return _with_use(queue, member, replace(use, puts=use.puts + puts, gets=use.gets + gets))


def opened(queue: SharedQueue, member: str, handle: HandleFacts, by: int) -> SharedQueue:
    """Returns the queue after a member opened a handle (``by`` is 1), or closed one (-1)."""
    use, options = queue.uses.get(member, _NO_USE), handle.options
    changed = replace(
        use,
        opens=use.opens + by,
        inputs=use.inputs + (by if options & _INPUT else 0),
        is_exclusive=(by > 0) if options & OpenOption.INPUT_EXCLUSIVE else use.is_exclusive,
        outputs=use.outputs + (by if options & OpenOption.OUTPUT else 0),
    )
    return _with_use(queue, member, changed)


def left(queue: SharedQueue, member: str) -> SharedQueue:
    """Returns the queue after a member has gone: nothing is open or uncommitted through it."""
    return _with_use(queue, member, _NO_USE)


def has_fired(queue: SharedQueue, *, is_for_group: bool, is_disarmed: bool) -> SharedQueue:
    """Returns the queue after a member wrote a trigger message; the first to fire DEPTH switches control off."""
    is_first = is_disarmed and queue.definition.trigger_control is TriggerControl.ON
    return replace(queue, triggers=queue.triggers + is_for_group, disarms=queue.disarms + is_first)


def counts_of(priorities: Sequence[int]) -> tuple[int, ...]:
    """Returns how many there are of each priority."""
    counts = [0] * len(NO_DEPTH)
    for priority in priorities:
        counts[priority] += 1
    return tuple(counts)


def _with_use(queue: SharedQueue, member: str, use: Use) -> SharedQueue:
    uses = {name: each for name, each in queue.uses.items() if name != member}
    return replace(queue, uses=uses if use == _NO_USE else {**uses, member: use})


def _sum(counts: Sequence[int], more: Sequence[int]) -> tuple[int, ...]:
    return tuple([count + by for count, by in zip(counts, more, strict=True)])


def _of_at_least(counts: Sequence[int]) -> list[int]:
    """Returns by priority how many have that priority or a higher one."""
    return list(accumulate(reversed(counts)))[::-1]


def _after_rise(times: int, lay: int, arrived: int) -> int:
    return times + (lay == 0 and arrived > 0)
