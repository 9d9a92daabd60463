"""The rows of messages that were got, as :mod:`trigmon.store.sqlite.kept_gets` has them written."""

from __future__ import annotations

from collections.abc import Sequence

from trigmon.rules.model.stored_messages import stretches
from trigmon.store.sql import statements as sql
from trigmon.store.sqlite.put_rows import PutStore, only_in_journal


class GotRows:
    """The rows of a store. Writes raise StoreBroken."""

    def __init__(self, store: PutStore) -> None:
        self._store = store

    def is_young(self, number: int) -> bool:
        """Returns whether a message has no row yet."""
        return number in self._store.turns.young

    def remove_young(self, numbers: Sequence[int]) -> list[int]:
        """Removes those without rows; returns the others."""
        return self._store.turns.young.remove(numbers)

    def remove(self, numbers: Sequence[int]) -> None:
        """Removes rows."""
        self._store.turns.begin()
        with only_in_journal(self._store):
            self._store.remove_stretches(stretches(numbers))

    def mark(self, unit_id: int, numbers: Sequence[int]) -> None:
        """Marks messages as got by a unit of work; young ones get their rows."""
        self._store.turns.young.write_these(numbers)
        self._store.turns.begin()
        with only_in_journal(self._store):
            self._store.many(sql.TAKE_MESSAGE, [(unit_id, number) for number in numbers])
