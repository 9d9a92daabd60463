"""Rows of several statements, one behind the other."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from itertools import chain
from typing import Any, cast

Values = tuple[object, ...]
Statement = tuple[str, Values]
OpenRows = Callable[[str, Values], Any]
"""Returns a cursor over the rows of a statement."""


class RowStream:
    """The rows of all statements. A statement's cursor is opened when the one before has ended, and is closed.

    No step of Python stands between two rows of a cursor that :meth:`_part` returns as it is. Its reader closes the
    stream, also behind an error, and then reads nothing more.
    """

    def __init__(self, open_rows: OpenRows, statements: Iterable[Statement]) -> None:
        self._open_rows = open_rows
        self._left = list(statements)
        self._parts = self._opened()
        self._rows = chain.from_iterable(self._parts)

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def close(self, force: bool = False) -> None:
        """Ends it early: the cursor that is open is closed."""
        self._parts.close()

    def _opened(self) -> Generator[Iterable[Any], None, None]:
        while self._left:
            statement, values = self._left.pop(0)
            cursor = self._open_rows(statement, values)
            try:
                yield self._part(cursor, statement, values)
            finally:
                cursor.close(True)

    def _part(self, cursor: Any, statement: str, values: Values) -> Iterable[Any]:
        """Returns the rows of a statement that belong to the stream: all, where a subclass does not say otherwise."""
        return cast("Iterable[Any]", cursor)
