"""Batches of writes: many writes of a kind become one statement, in an order with the same result.

The numbers of units and messages are used once. So within a stretch all messages can be added first, then marked as
got, then committed with their units, then removed, whatever the original order. Any other write ends the stretch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from trigmon.store.postgres import group_sql
from trigmon.store.postgres.pipeline import Array
from trigmon.store.sql import statements as sql

Values = tuple[object, ...]
Write = tuple[str, Sequence[object], int | None]
"""A statement, its values, and how many rows it has to change, if known."""


class Bulk(NamedTuple):
    """The statement for many rows that replaces one for a single row; ``key``: the places of the row's key values."""

    rank: int
    text: str
    types: tuple[str, ...]
    key: tuple[int, ...]


_ADDED = ("int8", "int8", "int8", "int8", "int8", "int8", "int8", "int8", "bytea", "bytea", "bytea", "bytea", "int8")
_ARRAYS = ", ".join(f"?::{kind}[]" for kind in _ADDED)
_COLUMNS = sql.ADD_MESSAGE.partition("VALUES")[0]
BULKS = {
    sql.ADD_MESSAGE: Bulk(0, f"{_COLUMNS} SELECT * FROM unnest({_ARRAYS})", _ADDED, (0,)),
    sql.TAKE_MESSAGE: Bulk(
        1,
        "UPDATE message m SET taken_by = f.unit FROM unnest(?::int8[], ?::int8[]) AS f (unit, id) WHERE m.id = f.id",
        ("int8", "int8"),
        (1,),
    ),
    sql.RESERVE_MESSAGE: Bulk(
        2,
        """
UPDATE message m SET taken_by = f.number, ordinal = f.ordinal
FROM unnest(?::int8[], ?::int8[], ?::int8[]) AS f (number, ordinal, id) WHERE m.id = f.id""",
        ("int8", "int8", "int8"),
        (2,),
    ),
    sql.COMMIT_GETS: Bulk(3, "DELETE FROM message WHERE taken_by = ANY (?::int8[])", ("int8",), (0,)),
    sql.COMMIT_PUTS: Bulk(
        4, "UPDATE message SET put_by = NULL, held = 0 WHERE put_by = ANY (?::int8[])", ("int8",), (0,)
    ),
    sql.REMOVE_MESSAGE: Bulk(5, "DELETE FROM message WHERE id = ANY (?::int8[])", ("int8",), (0,)),
    sql.FORGET_CLIENT: Bulk(5, "DELETE FROM outcome WHERE client_id = ANY (?::text[])", ("text",), (0,)),
    sql.RECORD_BEFORE_FIRST: Bulk(
        6,
        """
INSERT INTO outcome (client_id, number, outcome, at_ms)
SELECT f.client_id, f.number, 0, f.at_ms FROM unnest(?::text[], ?::int8[], ?::int8[]) AS f (client_id, number, at_ms)
ON CONFLICT (client_id, number) DO NOTHING""",
        ("text", "int8", "int8"),
        (0, 1),
    ),
    sql.RECORD_OUTCOME: Bulk(
        7,
        """
INSERT INTO outcome (client_id, number, outcome, at_ms)
SELECT * FROM unnest(?::text[], ?::int8[], ?::int8[], ?::int8[])
ON CONFLICT (client_id, number) DO UPDATE SET outcome = excluded.outcome, at_ms = excluded.at_ms""",
        ("text", "int8", "int8", "int8"),
        (0, 1),
    ),
    sql.FORGET_OUTCOMES: Bulk(
        8,
        """
DELETE FROM outcome o USING unnest(?::text[], ?::int8[]) AS f (client_id, number)
WHERE o.client_id = f.client_id AND o.number < f.number""",
        ("text", "int8"),
        (0, 1),
    ),
}
BULKS |= {
    group_sql.DECIDE: Bulk(
        7,
        """
INSERT INTO decided (member, client_id, number, unit_id, epoch)
SELECT * FROM unnest(?::text[], ?::text[], ?::int8[], ?::int8[], ?::int8[])
ON CONFLICT (member, client_id, number) DO UPDATE SET unit_id = excluded.unit_id, epoch = excluded.epoch""",
        ("text", "text", "int8", "int8", "int8"),
        (1, 2),
    ),
}
"""The bulk statement of a group's own tables, where a member writes only its own rows."""
_Stretch = dict[str, dict[Values, Values]]


class Writes:
    """Waiting statements with their values, in order. ``bytes``: about the size of their messages."""

    def __init__(self) -> None:
        self._stretches: list[_Stretch] = []
        self._expected: dict[int, dict[str, int]] = {}
        self.count = 0
        self.bytes = 0

    def add(self, statement: str, values: Sequence[object], expected: int | None = None) -> None:
        """Adds a write. ``expected``: the rows that it must change, given for all writes of a kind or for none."""
        values = tuple(values)
        self.count += 1
        bulk = BULKS.get(statement)
        if bulk is None:
            self._stretches += ({statement: {(): values}}, {})
            self._expect(-2, statement, expected)
            return
        if not self._stretches:
            self._stretches.append({})
        stretch = self._stretches[-1]
        if statement == sql.COMMIT_GETS and _got_what_was_put(stretch, values[0]):
            stretch = {}
            self._stretches.append(stretch)
        key = tuple([values[place] for place in bulk.key])
        if statement == sql.REMOVE_MESSAGE and stretch.get(sql.ADD_MESSAGE, {}).pop(key, None) is not None:
            return  # added and removed in one batch: nothing to write
        if statement == sql.ADD_MESSAGE:
            self.bytes += len(values[11])  # type: ignore[arg-type]
        rows = stretch.setdefault(statement, {})
        if key in rows:
            stretch = {}
            self._stretches.append(stretch)
            rows = stretch.setdefault(statement, {})
        rows[key] = values
        self._expect(-1, statement, expected)

    def _expect(self, behind: int, statement: str, expected: int | None) -> None:
        if expected is not None:
            of = self._expected.setdefault(len(self._stretches) + behind, {})
            of[statement] = of.get(statement, 0) + expected

    def drain(self) -> Iterator[Write]:
        """Yields the statements to send, in order, and empties the batch."""
        stretches, self._stretches, self.count, self.bytes = self._stretches, [], 0, 0
        expected, self._expected = self._expected, {}
        for number, stretch in enumerate(stretches):
            of = expected.get(number, {})
            for statement in sorted(stretch, key=_rank):
                rows = list(stretch[statement].values())
                if len(rows) == 1:
                    yield statement, rows[0], of.get(statement)
                elif rows:
                    bulk = BULKS[statement]
                    columns = zip(*rows, strict=True)
                    arrays = [Array(*column) for column in zip(bulk.types, columns, strict=True)]
                    yield bulk.text, arrays, of.get(statement)


def _got_what_was_put(stretch: _Stretch, unit: object) -> bool:
    """Returns whether a unit may have got in this stretch what another has put: those rows are committed first."""
    taken = stretch.get(sql.TAKE_MESSAGE, {}) if sql.COMMIT_PUTS in stretch else {}
    return any(taker == unit for taker, _ in taken.values())


def _rank(statement: str) -> int:
    bulk = BULKS.get(statement)
    return bulk.rank if bulk else 0
