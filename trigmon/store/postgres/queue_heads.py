"""The first messages of queues, read a few hundred at a time and cached by :mod:`.read_ahead`."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing

from trigmon.rules.model.stored_messages import Cursor, Found, Selection, StoredMessage
from trigmon.store.postgres.pipeline import Row
from trigmon.store.postgres.read_ahead import Ahead
from trigmon.store.postgres.turn import CHUNKS, LARGE_CHUNK, Turn, size
from trigmon.store.sql import statements as sql
from trigmon.store.sql.picked_messages import message_of
from trigmon.store.sql.select import Look


class QueueHeads:
    """The cached first messages of a store's queues."""

    def __init__(self, ahead: Ahead, turn: Turn) -> None:
        self._ahead = ahead
        self._turn = turn
        self._sizes: dict[str, int] = {}

    def found(
        self, selection: Selection, number: int, look: Callable[[Generator[StoredMessage, None, None]], Look]
    ) -> Found | None:
        """Returns the result of a look-up of a queue's first messages; None if the look-up must read the rows."""
        if not _is_first(selection):
            return None
        try:
            with closing(self._messages(selection.q_name, number)) as ahead:
                return look(ahead).found()
        except _Unreadable:
            self._ahead.forget(selection.q_name)
            return None

    def _messages(self, q_name: str, number: int) -> Generator[StoredMessage, None, None]:
        def read(after: Cursor | None) -> tuple[list[StoredMessage], bool]:
            return self._read(q_name, number, after)

        yield from self._ahead.messages(q_name, read)

    def _read(self, q_name: str, number: int, after: Cursor | None) -> tuple[list[StoredMessage], bool]:
        """Returns the next messages outside groups, fewer if the last were large, and whether none follow."""
        first_rows = self._turn.first_rows
        limit = CHUNKS[0 if self._sizes.get(q_name, LARGE_CHUNK) * CHUNKS[1] > LARGE_CHUNK else 1]
        if after is None:
            rows = first_rows(sql.FIND_FIRST["plain"], (number,), limit)
        else:
            rows = first_rows(sql.FIND_AFTER_SAME["plain"], (number, after.priority, after.number), limit)
            if len(rows) < limit and after.priority > 0:
                lower = first_rows(sql.FIND_AFTER_LOWER["plain"], (number, after.priority), limit)
                return self._readable(q_name, rows + lower), len(lower) < limit
        return self._readable(q_name, rows), len(rows) < limit

    def _readable(self, q_name: str, rows: list[Row]) -> list[StoredMessage]:
        if rows:
            self._sizes[q_name] = size(rows) // len(rows)
        messages = [message_of(row, q_name) for row in rows]
        if None in messages:
            raise _Unreadable
        return [message for message in messages if message is not None]


class _Unreadable(Exception):  # noqa: N818
    """A row is damaged, so the cache cannot be filled; a look-up of the rows finds the damage."""


def _is_first(selection: Selection) -> bool:
    """Returns whether it asks for the first messages of a queue without further conditions."""
    return (
        selection.is_anything and selection.summary is None and not selection.is_expired and selection.reserved is None
    )
