"""Reads the first rows of queues from SQLite, until there are enough of them or they hold enough."""

from __future__ import annotations

from contextlib import closing

from trigmon.rules.model.stored_messages import Cursor
from trigmon.store.sql import statements as sql
from trigmon.store.sql.picked_messages import Row
from trigmon.store.sql.row_stream import OpenRows, RowStream, Statement

MOST_ROWS = 128
MOST_BYTES = 256 * 1024


def first_rows(open_rows: OpenRows, number: int, after: Cursor | None) -> tuple[list[Row], bool]:
    """Returns the next rows outside groups of a queue's number, and whether none follow. Raises apsw.Error."""
    rows: list[Row] = []
    size = 0
    statements: list[Statement] = [(sql.FIND_FIRST["plain"], (number,))]
    if after is not None:
        statements = [
            (sql.FIND_AFTER_SAME["plain"], (number, after.priority, after.number)),
            (sql.FIND_AFTER_LOWER["plain"], (number, after.priority)),
        ]
    with closing(RowStream(open_rows, statements)) as stream:
        for row in stream:
            rows.append(row)
            size += len(row[6]) if isinstance(row[6], bytes) else 0  # of a damaged row it may be anything
            if len(rows) >= MOST_ROWS or size >= MOST_BYTES:
                return rows, False
    return rows, True
