"""The page of reasons beside the code, read row by row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from tests.reasons.stories import COMPLETED, FAILED, TOLD, WARNING
from trigmon.mq import reasons

PAGE = Path(reasons.__file__).with_name("REASONS.md")
NOT_APPLICABLE = "Not applicable"
WAYS = {
    COMPLETED: {COMPLETED},
    FAILED: {FAILED},
    WARNING: {WARNING},
    "Failed or warning": {FAILED, WARNING},
    TOLD: {TOLD},
    NOT_APPLICABLE: set(),
}
_ROW = re.compile(r"\| (\d+) \| ([A-Z0-9_]+) \| ([A-Z][a-z ]+): (\S.*\S) \|")


class Row(NamedTuple):
    """A reason, the ways in which it comes, and in words when, or why never."""

    number: int
    name: str
    ways: set[str]
    said: str


def rows() -> tuple[list[Row], list[Row]]:
    """The rows of the page's two tables: all reasons, and the numbers of commands whose names a call has too."""
    tables: list[list[Row]] = []
    for line in PAGE.read_text().splitlines():
        if line.startswith("| number "):
            tables.append([])
        elif line.startswith("| "):
            found = _ROW.fullmatch(line)
            assert found is not None, line
            number, name, how, said = found.groups()
            tables[-1].append(Row(int(number), name, WAYS[how], said))
    first, second = tables
    return first, second
