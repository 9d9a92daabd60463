"""The layout of a table: what does not fit into the width stands below it, a line for each value. Pure."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

_GAP = 2
_NOTHING = ("", "-")


class TableLayout:
    """Columns and cells, laid out for ``width`` characters a line; 0 is any width.

    Where the table is too wide, the names of its columns take several lines. Where that does not suffice, its widest
    columns but the first, which names a row, are left out of it, and their values stand below the table.
    """

    def __init__(self, columns: Sequence[str], cells: Sequence[Sequence[str]], width: int = 0) -> None:
        self._columns = columns
        self._cells = cells
        self._width = width
        self._inside: list[int] = [*range(len(columns))]
        self._heads = [[column] for column in columns]
        self._measure()
        if width and self._taken() > width:
            self._heads = [column.replace("_", "_ ").split() for column in columns]
            self._measure()
        while width and self._taken() > width:
            widest = max(self._inside[1:], key=lambda at: self.widths[at], default=0)
            if not widest:
                break
            self._inside.remove(widest)

    def _measure(self) -> None:
        shown = range(len(self._columns))
        self.widths = [max(map(len, (*self._heads[at], *(line[at] for line in self._cells)))) for at in shown]

    def _taken(self) -> int:
        taken: int = sum(self.widths[at] + _GAP for at in self._inside) - _GAP
        return taken

    @property
    def head(self) -> list[str]:
        """The lines of the columns' names."""
        height = max(len(self._heads[at]) for at in self._inside)
        padded = [[""] * (height - len(head)) + head for head in self._heads]
        return [self._line([head[number] for head in padded]) for number in range(height)]

    @property
    def rule(self) -> str:
        """The line below the head."""
        return self._line(["─" * width for width in self.widths])

    @property
    def body(self) -> list[str]:
        """The lines of the rows."""
        return [self._line(line) for line in self._cells]

    @property
    def below(self) -> list[str]:
        """The lines below the table: a value that did not fit, with the name of its row and its column."""
        lines: list[str] = []
        for line in self._cells:
            for at, column in enumerate(self._columns):
                if at not in self._inside and line[at] not in _NOTHING:
                    text = f"{line[0]} {column}: {line[at]}"
                    wrapped = textwrap.wrap(text, self._width, subsequent_indent="    ", break_on_hyphens=False)
                    lines += wrapped
        return lines

    def _line(self, texts: Sequence[str]) -> str:
        return "  ".join(f"{texts[at]:<{self.widths[at]}}" for at in self._inside).rstrip()
