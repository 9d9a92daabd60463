"""The totals of a unit of work on shared queues: rows its end changes, and messages it makes available; pure."""

from __future__ import annotations

from collections.abc import Container

import msgspec

from trigmon.rules.model.handles import UnitFacts
from trigmon.store.sql import statements as sql
from trigmon.store.sql.leftovers import GOT, PUT


class Unit(msgspec.Struct, frozen=True):
    """What only this module knows of a unit of work: the queues it put to, and how many of its own puts it got."""

    put_to: frozenset[str] = frozenset()
    own_gets: dict[tuple[str, int], int] = {}


NO_UNIT = Unit()


def expected(unit: UnitFacts, known: Unit, left: Container[str], *, is_commit: bool) -> dict[str, int]:
    """Returns how many rows each statement that settles a unit of work has to change.

    Of the unit's own puts those that it got itself are gone before, unless that is ``left`` for later.
    """
    puts, gets = sum(unit.puts.values()), sum(unit.gets.values())
    kept = sum(held.on_backout for held in unit.held)
    own = 0 if (GOT if is_commit else PUT) in left else sum(known.own_gets.values())
    if is_commit:
        return {sql.COMMIT_GETS: gets, sql.COMMIT_PUTS: puts - own}
    return {sql.BACK_OUT_PUTS: puts - kept, sql.RELEASE_HELD: kept, sql.BACK_OUT_GETS: gets - own}


def available(unit: UnitFacts, known: Unit, name: str, *, is_commit: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns the messages that become available on a queue, by priority: by puts, and by returned gets."""
    put, back = [0] * 10, [0] * 10
    for held in unit.held:
        if held.q_name == name and (is_commit or held.on_backout):
            back[held.priority] += 1
        if held.q_name == name and is_commit:
            put[held.priority] -= 1
    counts, into = (unit.puts, put) if is_commit else (unit.gets, back)
    for (q_name, priority), count in counts.items():
        if q_name == name:
            into[priority] += count - known.own_gets.get((q_name, priority), 0)
    return tuple(put), tuple(back)
