"""Gets that change no row yet: what open units of work have got is not marked, and what is got for good not removed.

The journal has each get. Whatever looks at rows has them changed first, and so has each commit of the database, since
the journal up to there is not replayed. Rows are then removed many at a time, and only those of a backout are marked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from trigmon.mq.descriptors import NO_ID
from trigmon.mq.enums import UnitOutcome
from trigmon.rules.model import changes as c
from trigmon.store.sqlite.got_rows import GotRows

MOST = 1000
"""Messages that are kept so, at most."""
CONCERN_NO_GET = {c.AddMessage, c.BeginUnit, c.SkipUnit}
"""Changes that concern no message that was got."""


class KeptGets:
    """The numbers of messages: those that units of work have got, ``by_unit``, and those that are ``removed``.

    ``note`` notes an undo.
    """

    def __init__(self, rows: GotRows, note: Callable[[Callable[[], object]], None]) -> None:
        self._rows = rows
        self._note = note
        self.by_unit: dict[int, list[int]] = {}
        self.removed: list[int] = []
        self._taken = 0

    def __len__(self) -> int:
        return self._taken + len(self.removed)

    def to_write(self, change: c.AnyChange, *, may_keep: bool) -> c.AnyChange | None:
        """Returns the change that is to be written now, behind the rows that it needs; None for a get that is kept.

        The change is none of CONCERN_NO_GET.
        """
        if isinstance(change, c.TakeMessage):
            if may_keep and change.message.descriptor.group_id == NO_ID:
                self._take(change.unit_id, change.message.number)
                return None
        elif isinstance(change, c.RemoveMessage):
            message = change.message
            if may_keep and message.descriptor.group_id == NO_ID and not self._rows.is_young(message.number):
                self._remove([message.number])
                return None
        elif isinstance(change, c.EndUnit):
            return self._end(change)
        else:
            self.write_all()
        return change

    def write_all(self) -> None:
        """Marks the rows of what is got, and removes those of what is got for good."""
        for unit_id in list(self.by_unit):
            self._write(unit_id)
        if self.removed:
            self._rows.remove(sorted(self.removed))
            self._note(partial(setattr, self, "removed", self.removed))
            self.removed = []

    def forget(self) -> None:
        """Forgets all: what they are of was rolled back."""
        self.by_unit.clear()
        self.removed = []
        self._taken = 0

    def _take(self, unit_id: int, number: int) -> None:
        if len(self) >= MOST:
            self.write_all()
        self.by_unit.setdefault(unit_id, []).append(number)
        self._taken += 1
        self._note(partial(self._drop_last, unit_id))

    def _drop_last(self, unit_id: int) -> None:
        numbers = self.by_unit[unit_id]
        numbers.pop()
        self._taken -= 1
        if not numbers:
            del self.by_unit[unit_id]

    def _remove(self, numbers: Sequence[int]) -> None:
        if len(self) >= MOST:
            self.write_all()
        count = len(self.removed)
        self.removed += numbers
        self._note(partial(self._cut, count))

    def _cut(self, count: int) -> None:
        del self.removed[count:]

    def _end(self, change: c.EndUnit) -> c.EndUnit:
        """Returns the end of a unit without its gets, if all of them are here and final; else it finds their marks."""
        unit = change.unit
        numbers = self.by_unit.get(unit.unit_id)
        if numbers is None:
            return change
        if change.outcome is not UnitOutcome.COMMITTED or len(numbers) != sum(unit.gets.values()):
            self._write(unit.unit_id)
            return change
        self._took(unit.unit_id, numbers)
        self._remove(self._rows.remove_young(numbers))
        return replace(change, unit=replace(unit, gets={}))

    def _write(self, unit_id: int) -> None:
        numbers = self.by_unit[unit_id]
        self._rows.mark(unit_id, numbers)
        self._took(unit_id, numbers)

    def _took(self, unit_id: int, numbers: list[int]) -> None:
        del self.by_unit[unit_id]
        self._taken -= len(numbers)
        self._note(partial(self._bring_back, unit_id, numbers))

    def _bring_back(self, unit_id: int, numbers: list[int]) -> None:
        self.by_unit[unit_id] = numbers
        self._taken += len(numbers)
