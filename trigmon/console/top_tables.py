"""The tables of the console: their columns fit the terminal, and a new reading changes only the cells that differ."""

from __future__ import annotations

from typing import Any, NamedTuple

from rich.text import Text
from textual.coordinate import Coordinate
from textual.widgets import DataTable

from trigmon.console.cells import Column, widths


class Row(NamedTuple):
    """A line of a table: its key, its cells, its colour, and what a key of the keyboard acts on."""

    key: str
    cells: list[str]
    style: str
    subject: Any

    @property
    def height(self) -> int:
        """How many lines it has."""
        return max(cell.count("\n") + 1 for cell in self.cells)


class Table(DataTable[Text]):
    """A table with a cursor on a row. The cursor stays on its row when others come and go.

    With ``fits`` it is as high as its rows are, up to the max-height of its style.
    """

    def __init__(self, columns: tuple[Column, ...], *, id: str, fits: bool = False) -> None:
        super().__init__(id=id, cursor_type="row", cell_padding=0, cursor_foreground_priority="renderable")
        self._columns_wanted = columns
        self._fits = fits
        self._fitted_to = (0, 0)
        self._shown: list[Row] = []

    @property
    def subject(self) -> Any:
        """What the cursor is on; None where the table is empty."""
        return self._shown[self.cursor_row].subject if self.cursor_row < len(self._shown) else None

    def fill(self, rows: list[Row], width: int, count: int = 0) -> None:
        """Shows these rows in a terminal of this width; a count other than 0 stands in the head of the first column."""
        is_same = [(row.key, row.height) for row in rows] == [(row.key, row.height) for row in self._shown]
        if (width, count) == self._fitted_to and is_same:
            self._change(rows)
        else:
            self._build(rows, width, count)
        self._shown = rows

    def _change(self, rows: list[Row]) -> None:
        for number, (row, before) in enumerate(zip(rows, self._shown, strict=True)):
            for column, (cell, was) in enumerate(zip(row.cells, before.cells, strict=True)):
                if cell != was or row.style != before.style:
                    self.update_cell_at(Coordinate(number, column), Text(cell, style=row.style, no_wrap=True))

    def _build(self, rows: list[Row], width: int, count: int) -> None:
        chosen = self._shown[self.cursor_row].key if self.cursor_row < len(self._shown) else None
        if (width, count) != self._fitted_to:
            self.clear(columns=True)
            heads = [column.head for column in self._columns_wanted]
            heads[0] += f" {count}" if count else ""
            for head, room in zip(heads, widths(self._columns_wanted, width), strict=True):
                self.add_column(Text(head), width=room)
            self._fitted_to = width, count
        else:
            self.clear()
        for row in rows:
            texts = (Text(cell, style=row.style, no_wrap=True) for cell in row.cells)
            self.add_row(*texts, height=row.height, key=row.key)
        if self._fits:
            self.styles.height = 1 + sum(row.height for row in rows)
        keys = [row.key for row in rows]
        if chosen in keys:
            self.move_cursor(row=keys.index(chosen), animate=False)
