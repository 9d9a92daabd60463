"""Rows that no call can meet any more, and that go a slice at a time, so that nobody waits for all of them.

They are those of queues that were deleted with their messages, those that a committed unit of work had got, and those
that one which was backed out had put. What is left of units is on record, by the units' numbers: a start removes the
rest, before it gives back what units in flight had got.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from trigmon.store.sql import statements as sql

AT_ONCE = 1000
"""Rows that go at a time: a few milliseconds' work."""
_KEY = "leftovers"
_GOT, _PUT = "got", "put"
_SLICES = {_GOT: sql.CLEAR_SLICE_OF_GETS, _PUT: sql.CLEAR_SLICE_OF_PUTS}


class Leftovers:
    """What is left. ``execute`` runs a statement, ``rows`` returns what one finds."""

    def __init__(self, execute: Callable[..., object], rows: Callable[..., list[Any]]) -> None:
        self._execute = execute
        self._rows = rows
        self._queues: dict[int, None] = {}
        self._units: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self._queues or self._units)

    def recover(self) -> None:
        """At a start, before anything else is done to rows: what committed units had got goes."""
        self._read_units()
        for unit, what in self._units.items():
            if what == _GOT:
                self._execute(sql.COMMIT_GETS, (int(unit),))
        if self._units:
            self._set({})

    def read(self, names: dict[int, str]) -> set[int]:
        """Takes up what is on record, since a call may have been taken back; the numbers of those of the queues."""
        self._queues = {number: None for number, name in names.items() if name.startswith(sql.DROPPED)}
        if self._units:
            self._read_units()
        return set(self._queues)

    def _read_units(self) -> None:
        found = self._rows(sql.GET_META, (_KEY,))
        self._units = json.loads(found[0][0]) if found else {}

    def of_queue(self, number: int) -> None:
        """All that lies on a queue, which gives its name free."""
        self._execute(sql.SET_DROPPED, (number,))
        self._queues[number] = None

    def of_unit(self, unit_id: int, *, is_commit: bool) -> None:
        """What a unit of work has got, which is committed, or what it has put, which is backed out."""
        self._set({**self._units, str(unit_id): _GOT if is_commit else _PUT})

    def remove(self) -> None:
        """The next slice goes."""
        if self._queues:
            number = next(iter(self._queues))
            if self._is_last(sql.CLEAR_SLICE, number):
                self._execute(sql.DROP_QUEUE, (number,))
                del self._queues[number]
        else:
            unit, what = next(iter(self._units.items()))
            if self._is_last(_SLICES[what], int(unit)):
                self._set({each: of for each, of in self._units.items() if each != unit})

    def _is_last(self, statement: str, number: int) -> bool:
        return len(self._rows(statement, (number, AT_ONCE))) < AT_ONCE

    def _set(self, units: dict[str, str]) -> None:
        self._units = units
        self._execute(sql.SET_META, (_KEY, json.dumps(units)))
