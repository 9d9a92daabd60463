"""The deferred work of a group: a record that all members read, in which each member has a part of its own.

Every member looks among the messages that a unit of work has made available, of whichever member it was. Only the
member that has the part does the work, a slice in each of its turns. What a dead member has left goes to the member
that recovers it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from trigmon.store.postgres.group.group_snapshot import GroupSnapshot
from trigmon.store.sql import statements as sql
from trigmon.store.sql.leftovers import Leftovers, Units, available_of

UNITS, QUEUES = "units", "queues"


class GroupLeftovers(Leftovers):
    """The deferred work of a group, as the member of this number knows it from the snapshot.

    ``units``: the ended units of work, of all members, that have work left.
    """

    def __init__(
        self, execute: Callable[..., object], rows: Callable[..., list[Any]], snapshot: GroupSnapshot, number: int
    ) -> None:
        super().__init__(execute, rows)
        self._snapshot = snapshot
        self._number = str(number)
        self._known = "{}"
        self.units: tuple[int, ...] = ()

    def look(self) -> list[str]:
        """Reads the record again if it has changed, or if a change was undone.

        Returns the queues whose available messages may be found in another way than before.
        """
        if self._snapshot.deferred == self._known:
            return []
        before = self.available
        self._known = self._snapshot.deferred
        parts = json.loads(self._known)
        own = parts.get(self._number, {})
        self._units = own.get(UNITS, {})
        self._queues = dict.fromkeys(own.get(QUEUES, ()))
        of_all = {unit: left for part in parts.values() for unit, left in part[UNITS].items()}
        self.units = tuple(map(int, of_all))
        self.available = available_of(of_all)
        concerned = before.keys() | self.available.keys()
        return [q_name for q_name, number in self._snapshot.numbers.items() if number in concerned]

    def of_queue(self, number: int) -> None:
        """Records that a queue is deleted: its rows remain for now, its name is free."""
        self._execute(sql.SET_DROPPED, (number,))
        self._write(self._units, [*self._queues, number])

    def adopt(self, number: int) -> None:
        """Takes over what a dead member has left to do."""
        parts = json.loads(self._snapshot.deferred)
        left = parts.pop(str(number), None)
        if left is not None and str(number) != self._number:
            own = parts.get(self._number, {UNITS: {}, QUEUES: []})
            parts[self._number] = {UNITS: own[UNITS] | left[UNITS], QUEUES: own[QUEUES] + left[QUEUES]}
            self._record(parts)

    def _forget_queue(self, number: int) -> None:
        self._write(self._units, [each for each in self._queues if each != number])

    def _set(self, units: Units) -> None:
        self._write(units, list(self._queues))

    def _write(self, units: Units, queues: list[int]) -> None:
        parts = json.loads(self._snapshot.deferred)
        parts.pop(self._number, None)
        if units or queues:
            parts[self._number] = {UNITS: units, QUEUES: queues}
        self._record(parts)

    def _record(self, parts: dict[str, Any]) -> None:
        self._snapshot.defer(json.dumps(parts))
        self.look()
