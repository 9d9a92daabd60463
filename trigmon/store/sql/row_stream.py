"""Rows of several look-ups, one behind the other."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import chain
from typing import Any


class RowStream:
    """The rows of all parts, each opened when the one before has ended.

    Where a part is a cursor, no step of Python stands between two of its rows. Behind an error of a part its reader
    closes the stream, and reads nothing more.
    """

    def __init__(self, parts: Generator[Iterable[Any], None, None]) -> None:
        self._parts = parts
        self._rows = chain.from_iterable(parts)

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def close(self, force: bool = False) -> None:
        """Ends it early: the part that is open is closed."""
        self._parts.close()
