"""Committed messages without rows: they lie in memory and in the journal, and a queue that keeps up never needs more.

A message that is got while it is young is never written to the database if its get becomes final in time. All others
are written many at a time: the oldest when there are too many, and all before any look at rows, before a change that
concerns rows they may be among, and with each commit of the database, since the journal up to there is not replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice

from trigmon.mq.descriptors import NO_ID
from trigmon.rules.model import changes as c
from trigmon.rules.model import reservation_changes as r
from trigmon.store.sqlite.unit_puts import size_of

MOST = 1000
MOST_BYTES = 8 << 20
"""Kept without rows at most."""
AT_ONCE = 64
"""Rows written by a turn that needs none of them."""
_NEEDS_ALL_ROWS = {c.DropDefinition, c.DeleteLogically, r.ReserveMessages}


class YoungMessages:
    """The young messages of a store, by number. ``add_rows`` writes rows of puts, ``note`` notes an undo."""

    def __init__(
        self,
        add_rows: Callable[[Sequence[c.AddMessage]], None],
        note: Callable[[Callable[[], object]], None],
    ) -> None:
        self._add_rows = add_rows
        self._note = note
        self._puts: dict[int, c.AddMessage] = {}
        self._size = 0

    def __len__(self) -> int:
        return len(self._puts)

    def __contains__(self, number: int) -> bool:
        return number in self._puts

    def takes(self, change: c.AnyChange) -> bool:
        """Returns whether the change is done without rows; if not, the rows that it needs are written."""
        if type(change) is c.AddMessage:
            return not change.unit_id and self.keep(change)
        if type(change) is c.RemoveMessage and change.message.number in self._puts:
            self._note(partial(self._bring_back, (self._pop(change.message.number),)))
            return True
        if type(change) is c.TakeMessage and change.message.number in self._puts:
            self._write((self._pop(change.message.number),))
        elif type(change) in _NEEDS_ALL_ROWS:
            self.write_all()
        return False

    def keep(self, put: c.AddMessage) -> bool:
        """Returns whether a message that is committed is kept; if not, it needs a row."""
        if put.descriptor.group_id != NO_ID or len(put.data) > MOST_BYTES:
            return False
        while len(self._puts) >= MOST or self._size + len(put.data) > MOST_BYTES:
            self.write_oldest()
        self._puts[put.number] = put
        self._size += len(put.data)
        self._note(partial(self._pop, put.number))
        return True

    def keep_all(self, puts: Sequence[c.AddMessage]) -> bool:
        """Returns whether committed messages outside groups are kept; if not, none is."""
        size = size_of(puts)
        if len(puts) > MOST or size > MOST_BYTES:
            return False
        while len(self._puts) + len(puts) > MOST or self._size + size > MOST_BYTES:
            self.write_oldest()
        self._bring_back(puts)
        self._note(partial(self._drop, puts))
        return True

    def write_oldest(self, count: int = AT_ONCE) -> bool:
        """Writes the rows of so many, the oldest; returns whether all have rows now."""
        puts = tuple(islice(self._puts.values(), count))
        self._drop(puts)
        if puts:
            self._write(puts)
        return not self._puts

    def write_these(self, numbers: Sequence[int]) -> None:
        """Writes the rows of those among these numbers."""
        puts = self._of(numbers)
        if puts:
            self._drop(puts)
            self._write(puts)

    def remove(self, numbers: Sequence[int]) -> list[int]:
        """Removes those among these numbers; returns the others, which have rows."""
        puts = self._of(numbers)
        if not puts:
            return list(numbers)
        self._drop(puts)
        self._note(partial(self._bring_back, puts))
        gone = {put.number for put in puts}
        return [number for number in numbers if number not in gone]

    def write_all(self) -> None:
        """Writes the rows of all."""
        if self._puts:
            puts = tuple(self._puts.values())
            self._puts.clear()
            self._size = 0
            self._write(puts)

    def _of(self, numbers: Sequence[int]) -> tuple[c.AddMessage, ...]:
        return tuple(self._puts[number] for number in numbers if number in self._puts)

    def _write(self, puts: Sequence[c.AddMessage]) -> None:
        self._add_rows(puts)
        self._note(partial(self._bring_back, puts))

    def _bring_back(self, puts: Sequence[c.AddMessage]) -> None:
        self._puts.update([(put.number, put) for put in puts])
        self._size += size_of(puts)

    def _drop(self, puts: Sequence[c.AddMessage]) -> None:
        kept = self._puts
        for put in puts:
            del kept[put.number]
        self._size -= size_of(puts)

    def _pop(self, number: int) -> c.AddMessage:
        put = self._puts.pop(number)
        self._size -= len(put.data)
        return put
