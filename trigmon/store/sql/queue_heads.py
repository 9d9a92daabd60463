"""The first messages of queues, read many at a time and cached by :mod:`.read_ahead`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from trigmon.rules.model.stored_messages import Cursor, Form, Found, Selection, StoredMessage
from trigmon.store.sql.picked_messages import Picked, Row, message_of
from trigmon.store.sql.read_ahead import Ahead

ReadRows = Callable[[int, Cursor | None], tuple[list[Row], bool]]
"""Reads rows outside groups of a queue's number, behind a place or from the start; whether none follow."""


class QueueHeads:
    """The cached first messages of a store's queues."""

    def __init__(self, ahead: Ahead, read_rows: ReadRows) -> None:
        self._ahead = ahead
        self._read_rows = read_rows

    def found(self, selection: Selection, number: int, locks: Mapping[int, int]) -> Found | None:
        """Returns the result of a look-up of a queue's first messages; None if the look-up must read the rows.

        ``locks``: locked messages and the handles that locked them. Uncommitted puts are never found.
        """
        if not _is_first(selection):
            return None
        if selection.limit == 1 and not locks:
            first = self._ahead.first(selection.q_name)
            if first is not None and not first.has_expired(selection.now):
                return Found((first,))
        picked = Picked(selection, locks)
        try:
            for message in self._messages(selection.q_name, number):
                if not picked.take_known(message):
                    break
        except _Unreadable:
            self._ahead.forget(selection.q_name)
            return None
        return picked.found

    def _messages(self, q_name: str, number: int) -> Iterator[StoredMessage]:
        """Returns a queue's available messages in get order."""

        def read(after: Cursor | None) -> tuple[list[StoredMessage], bool]:
            rows, is_all = self._read_rows(number, after)
            return _readable(q_name, rows), is_all

        return self._ahead.messages(q_name, read)


class _Unreadable(Exception):  # noqa: N818
    """A row is damaged, so the cache cannot be filled; a look-up of the rows finds the damage."""


def _readable(q_name: str, rows: list[Row]) -> list[StoredMessage]:
    messages = []
    for row in rows:
        message = message_of(row, q_name)
        if message is None:
            raise _Unreadable
        messages.append(message)
    return messages


def _is_first(selection: Selection) -> bool:
    """Returns whether it asks for the first messages of a queue without further conditions."""
    is_plain = selection.is_anything and selection.summary is None and selection.reserved is None
    return is_plain and selection.form is not Form.COLUMNS  # what is reserved does not stay to be read ahead
