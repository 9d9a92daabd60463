"""The lexer of MQSC: lines to commands, a command to its parameters.

Rules of the manual's "Rules for using MQSC": a line whose first character is ``*`` is a comment and a blank line is
nothing, both also inside a continued command; ``+`` at a line's end continues at the next line's first non-blank,
``-`` at its column one, even inside quotes; ``;`` ends a command. Blanks and commas separate. Unquoted words are
folded to upper case, quoted ones stay as typed, with ``''`` for a quote. An insert such as ``+QMNAME+`` is a value
without quotes too.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from trigmon.mq.errors import ParmSyntaxError

_SEPARATORS = " \t,\r\f\v"
_WORD = re.compile(r"[^\s,()';]+")
_UNQUOTED = re.compile(r"(?:[A-Za-z0-9./_%]|\+[A-Za-z0-9_]+\+)*\*?\Z|[+-][0-9]+\Z")
_INSIDE = re.compile(r"\([^()']*\)")


@dataclass(frozen=True)
class Statement:
    """One command as it was written: its text in one line, and where each part of it stood.

    ``marks`` pairs an offset into ``text`` with the number of the line that begins there; ``source`` holds the
    lines as typed, comments inside included, for the echo.
    """

    text: str
    line: int
    marks: tuple[tuple[int, int], ...] = ((0, 1),)
    source: tuple[str, ...] = ()
    unfinished: bool = False

    def line_at(self, offset: int) -> int:
        """Returns the number of the line in which the character at ``offset`` stood."""
        found = bisect_right(self.marks, offset, key=lambda mark: mark[0])
        return self.marks[found - 1][1] if found else self.line


@dataclass(frozen=True)
class Value:
    """A value between parentheses: unquoted ones are folded to upper case."""

    text: str
    quoted: bool = False


@dataclass(frozen=True)
class Parameter:
    """``KEYWORD`` or ``KEYWORD(value ...)``; ``values`` is None without parentheses. ``near`` is how it was typed."""

    keyword: str
    values: tuple[Value, ...] | None
    offset: int
    near: str


@dataclass
class _Open:
    """A command that is still being read: its ``parts``, which are joined once, at its end."""

    line: int
    parts: list[str] = field(default_factory=list)
    length: int = 0
    marks: list[tuple[int, int]] = field(default_factory=list)
    source: list[str] = field(default_factory=list)


def is_nothing(line: str) -> bool:
    """Returns whether a line says nothing: a comment, or blank."""
    return line.startswith("*") or not line.strip()


def continues(line: str) -> bool:
    """Returns whether the command goes on in the next line."""
    return line.rstrip().endswith(("+", "-"))


def statements(text: str, first_line: int = 1) -> Iterator[Statement]:
    """Yields the commands of a script in order, comments and blank lines dropped, continued lines joined."""
    current: _Open | None = None
    skip_blanks = False
    for number, raw in enumerate(text.split("\n"), first_line):
        if is_nothing(raw):
            if current is not None:
                current.source.append(raw.rstrip())
            continue
        if current is None:
            current, skip_blanks = _Open(number), True
        current.source.append(raw.rstrip())
        line = raw.rstrip()
        body = line[:-1] if continues(line) else line
        current.marks.append((current.length, number))
        current.parts.append(body.lstrip() if skip_blanks else body)
        current.length += len(current.parts[-1])
        skip_blanks = line.endswith("+")
        if not continues(line):
            yield from _split(current)
            current = None
    if current is not None:
        yield from _split(current, unfinished=True)


def _split(read: _Open, *, unfinished: bool = False) -> Iterator[Statement]:
    """Yields a joined line at its semicolons; those inside quotes are text."""
    text = "".join(read.parts)
    ends = [m.start() for m in re.finditer(r"'[^']*'?|;", text) if m.group() == ";"]
    starts = [start for start, _ in read.marks]
    begin = 0
    for end in [*ends, len(text)]:
        piece = text[begin:end]
        if piece.strip(_SEPARATORS).strip():
            first = bisect_right(starts, begin) - 1
            inside = read.marks[first : bisect_left(starts, end, first + 1)]
            marks = tuple((max(0, start - begin), line) for start, line in inside)
            last = unfinished and end == len(text)
            shown = tuple(read.source) if begin == 0 else ()
            begun = len(piece) - len(piece.lstrip(_SEPARATORS))
            line = max(line for start, line in marks if start <= begun)
            yield Statement(piece, line, marks, shown, last)
        begin = end + 1


def parameters(statement: Statement, *, is_skipped: bool = False) -> list[Parameter]:
    """Returns the words of one command. Raises ParmSyntaxError with the line and what is near.

    ``is_skipped``: it is about what is not here, so a value may hold any character, and parentheses in pairs.
    """
    text = statement.text
    if not _is_text(text):
        raise syntax_error(statement, 0, "", "there are bytes here that are no UTF-8: convert the file first")
    found = []
    at = _skip(text, 0)
    while at < len(text):
        word = _WORD.match(text, at)
        if word is None:
            raise syntax_error(statement, at, text[at : at + 20], "a word was expected here")
        after = _skip_blanks(text, word.end())
        if text[after : after + 1] == "(":
            values, end = _values(statement, after + 1, at, is_skipped=is_skipped)
        else:
            values, end = None, word.end()
        found.append(Parameter(word.group().upper(), values, at, text[at:end]))
        at = _skip(text, end)
    if statement.unfinished:
        last = found[-1].near if found else text
        raise syntax_error(statement, len(text), last, "the text ends in the middle of a continued command")
    return found


def syntax_error(statement: Statement, offset: int, near: str, what: str) -> ParmSyntaxError:
    """Returns the error of a place in a command: its line, what is wrong, and the words there."""
    return ParmSyntaxError(f"line {statement.line_at(offset)}, near {near.strip()}: {what}")


def _is_text(text: str) -> bool:
    """Returns whether it is text throughout: bytes that could not be decoded stand as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _values(statement: Statement, at: int, begin: int, *, is_skipped: bool) -> tuple[tuple[Value, ...], int]:
    """Returns the values up to the closing parenthesis, and the offset behind it."""
    text = statement.text
    found: list[Value] = []
    while True:
        at = _skip(text, at)
        if at >= len(text):
            raise syntax_error(statement, begin, text[begin : begin + 40], "a parenthesis is not closed")
        if text[at] == ")":
            return tuple(found), at + 1
        if text[at] == "'":
            value, at = _quoted(statement, at)
            found.append(Value(value, quoted=True))
            continue
        word = _WORD.match(text, at)
        if word is not None and is_skipped and (inside := _INSIDE.match(text, word.end())):
            found.append(Value(word.group() + inside.group()))
            at = inside.end()
            continue
        if word is None or text[word.end() : word.end() + 1] in ("(", "'"):
            raise syntax_error(statement, at, text[begin : at + 20], "a value with such characters needs quotes")
        if not (is_skipped or _UNQUOTED.match(word.group())):
            raise syntax_error(statement, at, word.group(), f"this value needs quotes: '{word.group()}'")
        found.append(Value(word.group().upper()))
        at = word.end()


def _quoted(statement: Statement, at: int) -> tuple[str, int]:
    closed = re.compile(r"'((?:[^']|'')*)'").match(statement.text, at)
    if closed is None:
        raise syntax_error(statement, at, statement.text[at : at + 40], "a quote is not closed")
    return closed.group(1).replace("''", "'"), closed.end()


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SEPARATORS:
        at += 1
    return at


def _skip_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t":
        at += 1
    return at
