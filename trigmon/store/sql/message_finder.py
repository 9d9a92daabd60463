"""How a look-up reads what it asks for: from the cached first messages of a queue, by columns, or row by row."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from trigmon.rules.model.handles import UnitFacts
from trigmon.rules.model.state import Standing
from trigmon.rules.model.stored_messages import SLICE, Form, Found, Selection
from trigmon.store.sql.available_rows import open_available
from trigmon.store.sql.group_progress import Groups
from trigmon.store.sql.leftovers import Leftovers
from trigmon.store.sql.message_columns import find_columns
from trigmon.store.sql.queue_heads import QueueHeads
from trigmon.store.sql.reserved_ranges import ReservedRanges
from trigmon.store.sql.row_stream import OpenRows
from trigmon.store.sql.select import Look


class MessageFinder:
    """Finds the messages of a store. ``open_rows`` returns the rows of a statement, read as they are iterated over.

    ``reserves_ranges``: see :class:`trigmon.store.sql.store.RowStore`.
    """

    def __init__(
        self,
        open_rows: OpenRows,
        heads: QueueHeads,
        ranges: ReservedRanges,
        leftovers: Leftovers,
        groups: Groups,
        *,
        reserves_ranges: bool,
    ) -> None:
        self._open_rows = open_rows
        self._heads = heads
        self._ranges = ranges
        self._leftovers = leftovers
        self._groups = groups
        self._reserves_ranges = reserves_ranges
        # Queues whose reserved messages were found to be damaged: look-ups read all of a message until the next start.
        self._checked: set[str] = set()

    def found(self, selection: Selection, number: int, standing: Standing) -> Found:
        """Returns what a selection finds on the queue with this number."""
        has_own = _has_own(standing.units.get(selection.unit_id), selection.q_name)
        if selection.form is Form.COLUMNS:
            return self._by_columns(selection, number, standing, has_own)
        found: Found | None = None
        if not has_own and self._are_rows_final(number):
            found = self._heads.found(selection, number, standing.locks)
        if found is None:
            found = self._by_rows(selection, number, standing, has_own)
        if selection.reserved is not None and found.damaged:
            self._checked.add(selection.q_name)
        return found

    def _by_columns(self, selection: Selection, number: int, standing: Standing, has_own: bool) -> Found:
        """Returns messages by columns; whole where one may be locked, damaged or expire, and is looked at by itself.

        Whole messages, and rows that are to be marked, come :data:`SLICE` at a time: more would make a turn too long.
        """
        of_slice = replace(selection, limit=SLICE) if selection.limit > SLICE else selection
        looked = selection if self._reserves_ranges else of_slice
        found = None
        if not standing.locks and selection.q_name not in self._checked and self._are_rows_final(number):
            found = find_columns(self._open_rows, self._ranges, looked, number)
        if found is None:
            looked = of_slice
            found = self._by_rows(looked, number, standing, has_own)
        return found if looked is selection else replace(found, most=SLICE)

    def _by_rows(self, selection: Selection, number: int, standing: Standing, has_own: bool) -> Found:
        return Look(
            partial(open_available, self._open_rows, self._ranges),
            selection,
            number,
            standing.locks,
            has_groups=self._groups.has_groups(number),
            has_own=has_own,
            available=self._leftovers.available.get(number, ()),
            ranges=self._ranges.of_queue(number),
        ).found()

    def _are_rows_final(self, number: int) -> bool:
        """Returns whether a queue has no messages of groups, and no rows that are to be rewritten."""
        return not self._groups.has_groups(number) and number not in self._leftovers.available


def _has_own(unit: UnitFacts | None, q_name: str) -> bool:
    return unit is not None and any(name == q_name for name, _ in unit.puts)
