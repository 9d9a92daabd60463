"""Puts of open units of work, kept in memory until the commit: their rows are written once, as committed ones.

A crash backs them out whether they have rows or not. Whatever looks for them, or needs them on disk, has their rows
written first, as uncommitted ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from trigmon.mq.enums import UnitOutcome
from trigmon.rules.model import changes as c

MOST_BYTES = 8 << 20
"""Content kept in memory at most, of all units together."""
_LEAVES_ROWS = {c.BeginUnit, c.SkipUnit, c.TakeMessage, c.RemoveMessage, c.CarryOver}
"""Changes that neither concern these puts nor their queues: a message that was found has a row."""

Puts = list[c.AddMessage]


class UnitPuts:
    """The puts ``by_unit`` of work, in order. ``add_rows`` writes rows of puts, of a unit or (0) as committed ones.

    ``keep_ids_behind`` records that a message's number is in use. ``note`` notes an undo.
    """

    def __init__(
        self,
        add_rows: Callable[[Sequence[c.AddMessage], int], None],
        keep_ids_behind: Callable[[int], None],
        note: Callable[[Callable[[], object]], None],
    ) -> None:
        self._add_rows = add_rows
        self._keep_ids_behind = keep_ids_behind
        self._note = note
        self.by_unit: dict[int, Puts] = {}
        self._size = 0

    def to_write(self, change: c.AnyChange, most: int) -> c.AnyChange | None:
        """Returns the change that is to be written now, behind the rows that it needs; None for a put that is kept.

        ``most``: puts kept of one unit.
        """
        if isinstance(change, c.AddMessage):
            if change.unit_id and not change.is_held and self._fit([change], most):
                self._keep([change])
                return None
            self.write(change.unit_id)  # the rows of a unit are written in the order of its puts
        elif isinstance(change, c.EndUnit):
            return self._end(change)
        elif type(change) not in _LEAVES_ROWS:
            self.write_all()
        return change

    def keeps(self, puts: Puts, most: int) -> bool:
        """Returns whether puts that are alike are kept; if not, none is. ``most`` as above."""
        if not self._fit(puts, most):
            return False
        self._keep(puts)
        return True

    def write_for(self, unit_id: int, q_name: str) -> None:
        """Writes the rows that a look of this unit at this queue has to find."""
        if any(put.q_name == q_name for put in self.by_unit.get(unit_id, ())):
            self.write(unit_id)

    def write_all(self) -> None:
        """Writes the rows of all units."""
        for unit_id in list(self.by_unit):
            self.write(unit_id)

    def write(self, unit_id: int) -> None:
        """Writes the rows of a unit as uncommitted ones."""
        if unit_id in self.by_unit:
            self._add_rows(self._take(unit_id), unit_id)

    def _fit(self, puts: Puts, most: int) -> bool:
        """Returns whether there is room for puts of one unit."""
        kept = len(self.by_unit.get(puts[0].unit_id, ()))
        return kept + len(puts) <= most and self._size + size_of(puts) <= MOST_BYTES

    def _keep(self, puts: Puts) -> None:
        unit_id = puts[0].unit_id
        self._keep_ids_behind(puts[-1].number)
        self.by_unit.setdefault(unit_id, []).extend(puts)
        self._size += size_of(puts)
        self._note(partial(self._drop_last, unit_id, len(puts)))

    def _drop_last(self, unit_id: int, count: int) -> None:
        puts = self.by_unit[unit_id]
        self._size -= size_of(puts[-count:])
        del puts[-count:]
        if not puts:
            del self.by_unit[unit_id]

    def _end(self, change: c.EndUnit) -> c.EndUnit:
        """Returns the end of a unit without its puts, if all of them are here; else it finds their rows."""
        unit = change.unit
        if len(self.by_unit.get(unit.unit_id, ())) != sum(unit.puts.values()):
            self.write(unit.unit_id)
            return change
        if unit.puts:
            puts = self._take(unit.unit_id)
            if change.outcome is UnitOutcome.COMMITTED:
                self._add_rows(puts, 0)
        return replace(change, unit=replace(unit, puts={}))

    def _take(self, unit_id: int) -> Puts:
        puts = self.by_unit.pop(unit_id)
        self._size -= size_of(puts)
        self._note(partial(self._bring_back, unit_id, puts))
        return puts

    def _bring_back(self, unit_id: int, puts: Puts) -> None:
        self.by_unit[unit_id] = puts
        self._size += size_of(puts)


def size_of(puts: Sequence[c.AddMessage]) -> int:
    """Returns how many bytes of content these puts have."""
    return sum([len(put.data) for put in puts])
