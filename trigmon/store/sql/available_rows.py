"""The rows of a look-up without those that a reservation has in its record of ranges: it jumps over each range."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

from trigmon.store.sql import statements as sql
from trigmon.store.sql.reserved_ranges import Range, ReservedRanges, around
from trigmon.store.sql.row_stream import OpenRows, RowStream, Statement, Values

_Jump = Callable[[Values, int, Range], list[Statement]]
"""Returns what a look-up goes on with behind a range, in which it met a row of this priority."""


def _in_get_order(first: str, same: str, lower: str) -> dict[str, _Jump]:
    """Returns the jumps of a look-up from the first message, and of those behind a place that it goes on with."""
    return {
        first: lambda values, priority, over: [(same, (*values, priority, over.last)), (lower, (*values, priority))],
        same: lambda values, priority, over: [(same, (*values[:-1], over.last))],
        lower: lambda values, priority, over: [
            (same, (*values[:-1], priority, over.last)),
            (lower, (*values[:-1], priority)),
        ],
    }


def _of_one_priority(first: str, last: str, before: str, same: str) -> dict[str, _Jump]:
    """Returns the jumps of look-ups of a priority's messages, from the first one on and from the last one back."""
    return {
        first: lambda values, priority, over: [(same, (*values, over.last))],
        last: lambda values, priority, over: [(before, (*values, over.first))],
        before: lambda values, priority, over: [(before, (*values[:-1], over.first))],
    }


_JUMPS = _in_get_order(sql.PASS_FIRST, sql.PASS_AFTER_SAME, sql.PASS_AFTER_LOWER)
for _kind, _found in sql.FIND_FIRST.items():
    _JUMPS |= _in_get_order(_found, sql.FIND_AFTER_SAME[_kind], sql.FIND_AFTER_LOWER[_kind])
for _kind, _found in sql.FIND_FIRST_OF.items():
    _places = sql.FIND_LAST_OF[_kind], sql.FIND_BEFORE[_kind], sql.FIND_AFTER_SAME[_kind]
    _JUMPS |= _of_one_priority(_found, *_places)
FINDS = frozenset({*_JUMPS, sql.FIND_AT})
"""The look-ups that may find a row of a range: of a queue, which is their first value, and of rows as they lie."""


BEHIND = frozenset({sql.PASS_AFTER_SAME, *sql.FIND_AFTER_SAME.values()})
"""Those that find numbers behind one alone, which is their last value."""


def open_available(open_rows: OpenRows, record: ReservedRanges, statement: str, values: Values) -> Any:
    """Returns the rows of a look-up as ``open_rows`` does, without those that are reserved and not marked."""
    ranges = record.of_queue(cast("int", values[0])) if statement in FINDS else ()
    if not ranges or (statement in BEHIND and cast("int", values[-1]) >= ranges[-1].last):
        return open_rows(statement, values)
    return AvailableRows(open_rows, statement, values, ranges)


class AvailableRows(RowStream):
    """The rows of a look-up in FINDS that are in none of the ranges."""

    def __init__(self, open_rows: OpenRows, statement: str, values: Values, ranges: Sequence[Range]) -> None:
        super().__init__(open_rows, [(statement, values)])
        self._ranges = ranges
        self._jumped: set[Statement] = set()  # where an index is damaged, a jump may lead back

    def _part(self, cursor: Any, statement: str, values: Values) -> Iterable[Any]:
        is_behind = statement in BEHIND and cast("int", values[-1]) >= self._ranges[-1].last
        return super()._part(cursor, statement, values) if is_behind else self._outside(cursor, statement, values)

    def _outside(self, cursor: Iterable[Any], statement: str, values: Values) -> Iterator[Any]:
        """Yields the rows up to the first one that is in a range; then the look-up goes on behind that."""
        for row in cursor:
            over = around(self._ranges, row[0])
            if over is None:
                yield row
            elif statement in _JUMPS:
                to = _JUMPS[statement](values, row[1], over)
                if to[0] not in self._jumped:
                    self._jumped.add(to[0])
                    self._left[:0] = to
                    return
