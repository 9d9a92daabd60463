"""Reads the first rows of queues from PostgreSQL, fewer where the last ones were large."""

from __future__ import annotations

from trigmon.rules.model.stored_messages import Cursor
from trigmon.store.postgres.pipeline import Row
from trigmon.store.postgres.turn import CHUNKS, LARGE_CHUNK, Turn, size
from trigmon.store.sql import statements as sql


class ChunkReader:
    """The reads of one session. It knows about how large the messages of each queue are."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._sizes: dict[int, int] = {}

    def read(self, number: int, after: Cursor | None) -> tuple[list[Row], bool]:
        """Returns the next rows outside groups of a queue's number, and whether none follow."""
        first_rows = self._turn.first_rows
        limit = CHUNKS[0 if self._sizes.get(number, LARGE_CHUNK) * CHUNKS[1] > LARGE_CHUNK else 1]
        if after is None:
            rows = last = first_rows(sql.FIND_FIRST["plain"], (number,), limit)
        else:
            rows = last = first_rows(sql.FIND_AFTER_SAME["plain"], (number, after.priority, after.number), limit)
            if len(rows) < limit and after.priority > 0:
                last = first_rows(sql.FIND_AFTER_LOWER["plain"], (number, after.priority), limit)
                rows = rows + last
        if rows:
            self._sizes[number] = size(rows) // len(rows)
        return rows, len(last) < limit
