"""Writes to tables in memory that the call which made them can take back."""

from __future__ import annotations

from typing import Any


class UndoNotes:
    """The values that keys of tables had before the writes of a call. No table holds None."""

    def __init__(self) -> None:
        self._notes: list[tuple[dict[Any, Any], object, object]] = []

    def set(self, table: dict[Any, Any], key: object, value: object) -> None:
        """Sets a key of a table; None removes the key."""
        self._notes.append((table, key, table.get(key)))
        _set(table, key, value)

    def clear(self) -> None:
        """Begins a call: :meth:`undo` returns to this point."""
        self._notes.clear()

    def undo(self) -> None:
        """Undoes the writes of the call."""
        for table, key, before in reversed(self._notes):
            _set(table, key, before)
        self._notes.clear()


def _set(table: dict[Any, Any], key: object, value: object) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value
