"""Deferred work on rows, done a slice at a time, so that no call waits for the end of a large unit of work.

Rows that no call can find any more are removed: those of deleted queues, those that a committed unit of work had got,
and those that a backed-out unit had put. Rows that the end of a large unit has made available are rewritten: its
committed puts and its backed-out gets. Until then look-ups find them by the unit, and a row is rewritten before
anything else is done to it.

The deferred work of units is recorded, by the units' numbers, in the turn in which they end; a start does the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar

from trigmon.rules.model.handles import UnitFacts
from trigmon.store.sql import statements as sql

AT_ONCE = 1000
"""Rows that are written at a time: a few milliseconds' work."""
MOST_UNITS = 16
"""So many units may have rows to rewrite: each one is another place where every look-up searches."""
KEY = "leftovers"
"""The key of the record in the table ``meta``."""
GOT, PUT, COMMITTED, RETURNED = "got", "put", "committed", "returned"
_SLICES = {
    COMMITTED: sql.COMMIT_SLICE_OF_PUTS,
    RETURNED: sql.RETURN_SLICE_OF_GETS,
    GOT: sql.CLEAR_SLICE_OF_GETS,
    PUT: sql.CLEAR_SLICE_OF_PUTS,
}
_ONE = {COMMITTED: sql.COMMIT_PUT, RETURNED: sql.RETURN_GET}
# Done at a start; recovery does the other two to every unit that was in flight.
_REST = {GOT: sql.COMMIT_GETS, COMMITTED: sql.COMMIT_PUTS}
Left = Mapping[str, Sequence[int]]
"""The work left of a unit, each part with the queues on which its messages are available."""
Units = dict[str, Left]
LOOKS: dict[str, Mapping[str, str]] = {COMMITTED: sql.COMMITTED, RETURNED: sql.RETURNED}
"""Maps each look-up of messages to the one among the rows that a unit has made available."""


class Leftovers:
    """The deferred work. ``execute`` runs a statement, ``rows`` returns the rows of one.

    ``available``: by queue number, the units with available messages that are not rewritten yet, each with what it had
    done to them. ``at_once``: rows written at a time.
    """

    at_once: ClassVar[int] = AT_ONCE

    def __init__(self, execute: Callable[..., object], rows: Callable[..., list[Any]]) -> None:
        self._execute = execute
        self._rows = rows
        self._queues: dict[int, None] = {}
        self._units: Units = {}
        self.available: dict[int, list[tuple[str, int]]] = {}

    def __bool__(self) -> bool:
        return bool(self._queues or self._units)

    def recover(self) -> None:
        """Finishes the deferred work at a start, before anything else is done to rows.

        Writes the record even if it is empty, so that its loss can be detected.
        """
        self.load()
        for unit, left in self._units.items():
            for what, statement in _REST.items():
                if what in left:
                    self._execute(statement, (int(unit),))
        self._set({})

    def read(self, names: dict[int, str]) -> set[int]:
        """Reads the record again, as a call may have been undone; returns the numbers of deleted queues with rows."""
        self._queues = {number: None for number, name in names.items() if name.startswith(sql.DROPPED)}
        if self._units:
            self.load()
        return set(self._queues)

    def load(self) -> None:
        """Reads the record of the units."""
        found = self._rows(sql.GET_META, (KEY,))
        self._know(json.loads(found[0][0]) if found else {})

    def of_queue(self, number: int) -> None:
        """Records that a queue is deleted: its rows remain for now, its name is free."""
        self._execute(sql.SET_DROPPED, (number,))
        self._queues[number] = None

    def of_unit(self, unit: UnitFacts, numbers: Mapping[str, int], *, is_commit: bool, has_groups: bool) -> Left:
        """Returns the parts of a unit's end that are too large and are left for later.

        ``numbers``: the queues' numbers by name. Messages of groups become available all at once, since a group's
        completeness is kept on its first item.
        """
        left: dict[str, list[int]] = {}
        goes, stays = (unit.gets, unit.puts) if is_commit else (unit.puts, unit.gets)
        if sum(stays.values()) > self.at_once and not has_groups and self.has_room:
            names = {q_name for q_name, _ in stays}
            left[COMMITTED if is_commit else RETURNED] = [numbers[name] for name in names & numbers.keys()]
        if sum(goes.values()) > self.at_once:
            left[GOT if is_commit else PUT] = []
        return left

    def leave(self, unit: UnitFacts, unit_id: int, left: Left, numbers: Mapping[str, int]) -> None:
        """Records the work left of a unit of work; releases the held messages of a backout at once."""
        for name in {held.q_name for held in unit.held if held.on_backout} if PUT in left else set():
            self._execute(sql.RELEASE_HELD_ON, (unit_id, numbers[name]))
        self._set({**self._units, str(unit_id): left})

    @property
    def has_room(self) -> bool:
        """Whether another unit may defer the rewriting of its messages."""
        return len({unit for units in self.available.values() for unit in units}) < MOST_UNITS

    def rewrite(self, queue: int, numbers: Collection[int]) -> None:
        """Rewrites available messages as their units' ends demand, before anything else is done to them."""
        for what, unit in self.available.get(queue, ()):
            for number in numbers:
                self._execute(_ONE[what], (number, unit))

    def remove(self) -> None:
        """Processes the next slice; rows that look-ups find come first."""
        if self._queues and not self.available:
            number = next(iter(self._queues))
            if self._is_last(sql.CLEAR_SLICE, number):
                self._execute(sql.DROP_QUEUE, (number,))
                self._forget_queue(number)
            return
        parts = [(unit, what) for unit, left in self._units.items() for what in left]
        unit, what = min(parts, key=lambda part: part[1] not in _ONE)
        if self._is_last(_SLICES[what], int(unit)):
            left = {other: queues for other, queues in self._units[unit].items() if other != what}
            units = {**self._units, unit: left}
            self._set({each: of for each, of in units.items() if of})

    def _forget_queue(self, number: int) -> None:
        del self._queues[number]

    def _is_last(self, statement: str, number: int) -> bool:
        return len(self._rows(statement, (number, self.at_once))) < self.at_once

    def _set(self, units: Units) -> None:
        self._know(units)
        self._execute(sql.SET_META, (KEY, json.dumps(units)))

    def _know(self, units: Units) -> None:
        self._units = units
        self.available = available_of(units)


def available_of(units: Units) -> dict[int, list[tuple[str, int]]]:
    """Returns by queue number the units with available messages, each with what it had done to them."""
    available: dict[int, list[tuple[str, int]]] = {}
    for unit, left in units.items():
        for what, queues in left.items():
            for queue in queues:
                available.setdefault(queue, []).append((what, int(unit)))
    return available
