"""Recovery of a member's work in the group: by the member itself at its start and end, or by another when it died."""

from __future__ import annotations

from typing import NamedTuple

from trigmon.rules.model.group_members import Use
from trigmon.rules.model.shared_queue import counts_of, left, lies
from trigmon.store.memory.group import OWN_NUMBERS
from trigmon.store.postgres import group_sql as sql
from trigmon.store.postgres.group.group_snapshot import GroupSnapshot
from trigmon.store.postgres.group.group_writes import GroupWrites
from trigmon.store.postgres.pipeline import Array
from trigmon.store.postgres.turn import Turn


class Left(NamedTuple):
    """What was recovered: the queues concerned, and the numbers of puts, gets, open handles and locks."""

    q_names: tuple[str, ...]
    counts: tuple[int, int, int, int]


def recover(turn: Turn, snapshot: GroupSnapshot, writes: GroupWrites, name: str, number: int) -> Left:
    """Backs out the member's uncommitted work and closes its open handles. A repetition finds nothing.

    The work left of its ended units of work goes to the member that recovers it.
    """
    writes.leftovers.adopt(number)
    between = number * OWN_NUMBERS, (number + 1) * OWN_NUMBERS
    of_units = (*between, Array("int8", writes.leftovers.units))
    with_holes = turn.ask(sql.GROUPS_GOT, of_units)
    puts = turn.ask(sql.DROP_PUTS, of_units)
    gets = turn.ask(sql.GIVE_BACK, of_units)
    locks = turn.ask(sql.DROP_LOCKS, between)
    turn.execute(sql.DROP_ROLES, (name,))
    for group in with_holes:
        writes.groups.changed(group, has_new_heads=True)
    for (message,) in locks:
        snapshot.lock(message, None)
    back: dict[int, list[int]] = {}
    for queue, priority in gets:
        back.setdefault(queue, []).append(priority)
    q_names = [q_name for q_name, queue in snapshot.queues.items() if name in queue.uses]
    opens = 0
    for q_name in q_names:
        queue = snapshot.queues[q_name]
        opens += queue.uses.get(name, Use()).opens
        snapshot.write(q_name, lies(left(queue, name), counts_of(back.get(snapshot.numbers[q_name], []))))
    return Left(tuple(q_names), (len(puts), len(gets), opens, len(locks)))
