"""What is left to do of rows, a slice at a time, so that nobody waits for all of them.

Rows that no call can meet any more go: those of queues that were deleted with their messages, those that a committed
unit of work had got, and those that one which was backed out had put. Rows that a large unit's end has made available
are rewritten: what it put and committed, and what it got and gave back. Until then looks find them by the unit, and a
row is rewritten before anything else is done to it.

What is left of units is on record, by the units' numbers, from the turn on in which they ended; a start does the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from trigmon.store.sql import statements as sql

AT_ONCE = 1000
"""Rows that are written at a time: a few milliseconds' work."""
MOST_UNITS = 16
"""Each unit whose rows are being made available is one more place where looks look."""
KEY = "leftovers"
"""Of ``meta``: the record."""
GOT, PUT, COMMITTED, RETURNED = "got", "put", "committed", "returned"
_SLICES = {
    COMMITTED: sql.COMMIT_SLICE_OF_PUTS,
    RETURNED: sql.RETURN_SLICE_OF_GETS,
    GOT: sql.CLEAR_SLICE_OF_GETS,
    PUT: sql.CLEAR_SLICE_OF_PUTS,
}
_ONE = {COMMITTED: sql.COMMIT_PUT, RETURNED: sql.RETURN_GET}
# At a start; the other two are what becomes of every unit that was in flight.
_REST = {GOT: sql.COMMIT_GETS, COMMITTED: sql.COMMIT_PUTS}
LOOKS: dict[str, Mapping[str, str]] = {COMMITTED: sql.COMMITTED, RETURNED: sql.RETURNED}
"""The looks among what units have made available, by those among other messages."""


class Leftovers:
    """What is left. ``execute`` runs a statement, ``rows`` returns what one finds.

    ``available``: by the number of a queue, the units that have made messages of it available that are not rewritten
    yet, each with what it had done to them. ``at_once``: how many rows are written at a time.
    """

    at_once: ClassVar[int] = AT_ONCE

    def __init__(self, execute: Callable[..., object], rows: Callable[..., list[Any]]) -> None:
        self._execute = execute
        self._rows = rows
        self._queues: dict[int, None] = {}
        # By unit what is left of it, with the queues on which that is available.
        self._units: dict[str, Mapping[str, Sequence[int]]] = {}
        self.available: dict[int, list[tuple[str, int]]] = {}

    def __bool__(self) -> bool:
        return bool(self._queues or self._units)

    def recover(self) -> None:
        """At a start, before anything else is done to rows: the rest is done.

        The record is there from now on, so that one that is lost is seen to be.
        """
        self._read_units()
        for unit, left in self._units.items():
            for what, statement in _REST.items():
                if what in left:
                    self._execute(statement, (int(unit),))
        self._set({})

    def read(self, names: dict[int, str]) -> set[int]:
        """Takes up what is on record, since a call may have been taken back; the numbers of those of the queues."""
        self._queues = {number: None for number, name in names.items() if name.startswith(sql.DROPPED)}
        if self._units:
            self._read_units()
        return set(self._queues)

    def _read_units(self) -> None:
        found = self._rows(sql.GET_META, (KEY,))
        units = json.loads(found[0][0]) if found else {}
        # An earlier version has written what is left as a word.
        self._know({unit: {left: []} if isinstance(left, str) else left for unit, left in units.items()})

    def of_queue(self, number: int) -> None:
        """All that lies on a queue, which gives its name free."""
        self._execute(sql.SET_DROPPED, (number,))
        self._queues[number] = None

    def of_unit(self, unit_id: int, left: Mapping[str, Sequence[int]]) -> None:
        """What is left of a unit of work, each with the queues on which it is available."""
        self._set({**self._units, str(unit_id): left})

    @property
    def has_room(self) -> bool:
        """Whether one more unit may make its messages available without rewriting them."""
        return len({unit for units in self.available.values() for unit in units}) < MOST_UNITS

    def rewrite(self, queue: int, number: int) -> None:
        """A message that is available, and to which something is to be done, is what its unit's end has made of it."""
        for what, unit in self.available.get(queue, ()):
            self._execute(_ONE[what], (number, unit))

    def remove(self) -> None:
        """The next slice is done: first of what looks meet."""
        if self._queues and not self.available:
            number = next(iter(self._queues))
            if self._is_last(sql.CLEAR_SLICE, number):
                self._execute(sql.DROP_QUEUE, (number,))
                del self._queues[number]
            return
        parts = [(unit, what) for unit, left in self._units.items() for what in left]
        unit, what = min(parts, key=lambda part: part[1] not in _ONE)
        if self._is_last(_SLICES[what], int(unit)):
            left = {other: queues for other, queues in self._units[unit].items() if other != what}
            units = {**self._units, unit: left}
            self._set({each: of for each, of in units.items() if of})

    def _is_last(self, statement: str, number: int) -> bool:
        return len(self._rows(statement, (number, self.at_once))) < self.at_once

    def _set(self, units: dict[str, Mapping[str, Sequence[int]]]) -> None:
        self._know(units)
        self._execute(sql.SET_META, (KEY, json.dumps(units)))

    def _know(self, units: dict[str, Mapping[str, Sequence[int]]]) -> None:
        self._units = units
        self.available = {}
        for unit, left in units.items():
            for what, queues in left.items():
                for queue in queues:
                    self.available.setdefault(queue, []).append((what, int(unit)))
