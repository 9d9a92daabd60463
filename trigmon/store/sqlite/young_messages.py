"""Committed messages without rows: they lie in memory and in the journal, and a queue that keeps up never needs more.

A message that is got outside syncpoint while it is young is never written to the database. All others are written many
at a time: when there are too many, before any look at rows, before a change that concerns rows they may be among, and
with each commit of the database, since the journal up to there is not replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from trigmon.mq.descriptors import NO_ID
from trigmon.rules.model import changes as c

MOST = 1000
MOST_BYTES = 8 << 20
"""Kept without rows at most."""
_NEEDS_ALL_ROWS = {c.DropDefinition, c.DeleteLogically, c.ReserveMessages}

Puts = dict[int, c.AddMessage]


class _Step(NamedTuple):
    """What the call has done: put ``came``, or those that ``went``, as got or written."""

    came: int = 0
    went: Sequence[c.AddMessage] = ()


class YoungMessages:
    """The young messages of a store, by number. ``add_rows`` writes rows of puts.

    ``is_call_undoable`` returns whether an undo of the call also undoes the rows that are written now.
    """

    def __init__(
        self, add_rows: Callable[[Sequence[c.AddMessage]], None], is_call_undoable: Callable[[], bool]
    ) -> None:
        self._add_rows = add_rows
        self._is_call_undoable = is_call_undoable
        self._puts: Puts = {}
        self._size = 0
        self._steps: list[_Step] = []

    def __len__(self) -> int:
        return len(self._puts)

    def takes(self, change: c.AnyChange) -> bool:
        """Returns whether the change is done without rows; if not, the rows that it needs are written."""
        if isinstance(change, c.AddMessage):
            return not change.unit_id and self.keep(change)
        if isinstance(change, c.RemoveMessage) and change.message.number in self._puts:
            self._note(_Step(went=(self._pop(change.message.number),)))
            return True
        if isinstance(change, c.TakeMessage) and change.message.number in self._puts:
            self._write((self._pop(change.message.number),))
        elif type(change) in _NEEDS_ALL_ROWS:
            self.write_all()
        return False

    def keep(self, put: c.AddMessage) -> bool:
        """Returns whether a message that is committed is kept; if not, it needs a row."""
        if put.descriptor.group_id != NO_ID or len(put.data) > MOST_BYTES:
            return False
        if len(self._puts) >= MOST or self._size + len(put.data) > MOST_BYTES:
            self.write_all()
        self._puts[put.number] = put
        self._size += len(put.data)
        self._note(_Step(came=put.number))
        return True

    def _note(self, step: _Step) -> None:
        if self._is_call_undoable():
            self._steps.append(step)

    def write_all(self) -> None:
        """Writes the rows of all."""
        if self._puts:
            puts = tuple(self._puts.values())
            self._puts.clear()
            self._size = 0
            self._write(puts)

    def _write(self, puts: Sequence[c.AddMessage]) -> None:
        self._add_rows(puts)
        self._note(_Step(went=puts))

    def mark(self) -> None:
        """Begins a call."""
        self._steps.clear()

    def undo(self) -> None:
        """Undoes the call."""
        for step in reversed(self._steps):
            if step.came:
                self._pop(step.came)
            for put in step.went:
                self._puts[put.number] = put
                self._size += len(put.data)
        self._steps.clear()

    def _pop(self, number: int) -> c.AddMessage:
        put = self._puts.pop(number)
        self._size -= len(put.data)
        return put
