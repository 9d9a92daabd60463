"""Reads what runmqsc printed for DISPLAY: blocks of words with values, in columns or a line each.

A block begins with the line of a message number (``AMQ8409I``, on z/OS ``CSQM401I``) and ends with the first line that
is no row of words. A value stands between parentheses as it is, without quotes; it may hold parentheses in pairs.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_BEGIN = re.compile(r"\s*(?:AMQ8\d{3}[A-Z]?|CSQM\d{3}[A-Z])\b")
_NOT_FOUND = re.compile(r"\s*(?:AMQ8147[A-Z]?|CSQM1(?:25|47)[A-Z])\b")
_NAME = re.compile(r"[A-Za-z0-9./_%]+")
_WORD = re.compile(r"[A-Z][A-Z0-9]*")
LONGEST_ROW: Final = 1024
"""The longest row, in characters: the longest attribute, with another one beside it."""
Block = dict[str, str]
"""The values of one block by word, in their order; of a word without a value the empty text."""


def read_blocks(text: str) -> list[Block]:
    """Returns every block of the text."""
    blocks: list[Block] = []
    current: Block | None = None
    for line in text.splitlines():
        if _BEGIN.match(line):
            current = {}
            blocks.append(current)
        elif current is not None:
            found = _words(line)
            if found is None:
                current = None
            else:
                current |= found
    return [block for block in blocks if block]


def names_not_found(text: str) -> set[str]:
    """Returns the words of the lines that say that an object was not found, the object's name among them."""
    return {word for line in text.splitlines() if _NOT_FOUND.match(line) for word in _NAME.findall(line)}


def _words(line: str) -> Block | None:
    """Returns the words of a row with their values; None for a line that is no row."""
    row = line.strip()
    found = _pairs(row) if row and len(row) <= LONGEST_ROW else None
    return None if found is None else dict(found)


@lru_cache(maxsize=1024)
def _pairs(row: str) -> tuple[tuple[str, str], ...] | None:
    """Returns words and values; None where the row is none.

    A value ends where its parentheses are in pairs; where no row would follow then, with the last one.
    """
    word = _WORD.match(row)
    if word is None:
        return None if row else ()
    rest = row[word.end() :]
    if not rest.startswith("("):
        further = _pairs(rest.lstrip()) if not rest[:1].strip() else None
        return None if further is None else ((word.group(), ""), *further)
    ends = [place for place, sign in enumerate(rest) if sign == ")" and not rest[place + 1 : place + 2].strip()]
    paired = [place for place in ends if rest.count("(", 0, place + 1) == rest.count(")", 0, place + 1)]
    for end in dict.fromkeys((*paired[:1], *ends[-1:])):
        further = _pairs(rest[end + 1 :].lstrip())
        if further is not None:
            return ((word.group(), rest[1:end]), *further)
    return None
