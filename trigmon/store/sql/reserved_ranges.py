"""Reserved messages whose rows are not marked: a reservation of them is a record of ranges of numbers.

To mark a row costs as much as all else that a reservation does with it, and most rows are removed soon. So the record
has the numbers, and look-ups pass over them. A range is made of the numbers that were reserved, one by one: what is
between two of them, as a put that commits later, belongs to none. Rows that make many short ranges are marked, and so
are those of groups and those that expire, which are found in other ways. A start marks all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import msgspec

from trigmon.rules.model.stored_messages import Reserved, ReservedNumbers, Stretch, stretches
from trigmon.store.sql import statements as sql

KEY = "reserved"
"""The key of the record in the table ``meta``."""
MOST_RANGES = 256
"""So many of all queues may be there before another reservation makes one: each slice of it writes all of them."""
MOST_ROWS = 1_000_000
"""So many messages may be reserved without marks, since the next start has to mark them."""
LEAST = 8
"""Messages that a range has on average at least, where a slice makes more than one."""


class Range(NamedTuple):
    """Messages of one queue with consecutive numbers, and consecutive ordinals, of one reservation."""

    queue: int
    first: int
    last: int
    reservation: int
    ordinal: int
    """That of the first one."""

    @property
    def end(self) -> int:
        """The ordinal behind the last one's."""
        return self.ordinal + self.last - self.first + 1

    def stretch(self, first: int, end: int) -> Stretch:
        """Returns the numbers of a part of it, from one ordinal to before another."""
        by = self.first - self.ordinal
        return first + by, end - 1 + by


_first = attrgetter("first")


class ReservedRanges:
    """The ranges of all queues. ``execute`` runs a statement, ``rows`` returns the rows of one.

    The record is written with each change, so that it is undone with a call. ``most`` and ``least``: see MOST_RANGES
    and LEAST.
    """

    most: ClassVar[int] = MOST_RANGES
    least: ClassVar[int] = LEAST

    def __init__(self, execute: Callable[..., object], rows: Callable[..., list[Any]]) -> None:
        self._execute = execute
        self._rows = rows
        self._of: dict[int, list[Range]] = {}

    def load(self) -> None:
        """Reads the record: before a start, and when the changes of a call were undone."""
        found = self._rows(sql.GET_META, (KEY,))
        self._of = {}
        for values in msgspec.json.decode(found[0][0]) if found else ():
            self._of.setdefault(values[0], []).append(Range(*values))

    def recover(self) -> None:
        """Marks all rows, at a start; of a reservation that is lost they are on their queue again.

        Writes the record even if it is empty, so that its loss can be detected.
        """
        self.load()
        for each in self._all():
            if self._rows(sql.RESERVATION, (each.reservation,)):
                self._execute(sql.RESERVE_STRETCH, marks(each))
        self._of = {}
        self._write()

    def of_queue(self, queue: int) -> Sequence[Range]:
        """Returns the ranges of a queue, by their numbers."""
        return self._of.get(queue, ())

    def take(self, queue: int, reservation: int, ordinal: int, numbers: Sequence[int]) -> bool:
        """Returns whether these messages are in the record now; if not, their rows are to be marked."""
        parts = list(ranges_of(queue, reservation, ordinal, numbers))
        count = sum(map(len, self._of.values()))
        if len(parts) > 1 and (len(numbers) < self.least * len(parts) or count + len(parts) > self.most):
            return False
        if count >= self.most or sum(each.last - each.first for each in self._all()) >= MOST_ROWS:
            return False
        of = self._of.setdefault(queue, [])
        for each in parts:
            _add(of, each)
        self._write()
        return True

    def remove(self, queue: int, parts: Iterable[Stretch]) -> None:
        """Removes messages that are settled, or that go back."""
        of = self._of.get(queue)
        if not of:
            return
        are_cut = [_cut(of, first, last) for first, last in parts]
        if any(are_cut):
            if not of:
                del self._of[queue]
            self._write()

    def drop_queue(self, queue: int) -> None:
        """Forgets the ranges of a queue that is deleted."""
        if self._of.pop(queue, None):
            self._write()

    def _all(self) -> Iterator[Range]:
        for of in self._of.values():
            yield from of

    def _write(self) -> None:
        self._execute(sql.SET_META, (KEY, msgspec.json.encode(list(self._all())).decode()))


def ranges_of(queue: int, reservation: int, ordinal: int, numbers: Sequence[int]) -> Iterator[Range]:
    """Yields the ranges of these messages of a reservation, of which the first has this ordinal."""
    for first, last in stretches(numbers):
        yield Range(queue, first, last, reservation, ordinal)
        ordinal += last - first + 1


def marks(of: Range) -> tuple[int, ...]:
    """Returns the values of :data:`sql.RESERVE_STRETCH`."""
    return of.reservation, of.ordinal - of.first, of.first, of.last, of.queue


def around(of: Sequence[Range], number: int) -> Range | None:
    """Returns the range that has a message of this number."""
    at = bisect_right(of, number, key=_first) - 1
    return of[at] if at >= 0 and number <= of[at].last else None


def _add(of: list[Range], new: Range) -> None:
    """Adds a range; joins it with the one before, if it goes on with that."""
    at = bisect_right(of, new.first, key=_first)
    if at:
        before = of[at - 1]
        goes_on = before.last + 1 == new.first and before.end == new.ordinal
        if goes_on and before.reservation == new.reservation:
            of[at - 1] = before._replace(last=new.last)
            return
    of.insert(at, new)


def _cut(of: list[Range], first: int, last: int) -> bool:
    """Cuts these numbers out of the ranges; returns whether any range had one of them."""
    at = max(0, bisect_right(of, first, key=_first) - 1)
    is_changed = False
    while at < len(of) and of[at].first <= last:
        each = of[at]
        if each.last < first:
            at += 1
            continue
        left = []
        if each.first < first:
            left.append(each._replace(last=first - 1))
        if last < each.last:
            left.append(each._replace(first=last + 1, ordinal=each.ordinal + last + 1 - each.first))
        of[at : at + 1] = left
        at += len(left)
        is_changed = True
    return is_changed


def parts_of(wanted: Reserved, ranges: Iterable[Range]) -> Iterator[tuple[int, int, Range | None]]:
    """Yields stretches of these ordinals, each with the range that has it; None: its rows are marked."""
    at = wanted.first
    of = [each for each in ranges if each.reservation == wanted.reservation]
    for each in sorted(of, key=attrgetter("ordinal")):
        if each.end <= wanted.first or wanted.end <= each.ordinal:
            continue
        if at < each.ordinal:
            yield at, each.ordinal, None
        first, at = max(wanted.first, each.ordinal), min(each.end, wanted.end)
        yield first, at, each
    if at < wanted.end:
        yield at, wanted.end, None


def numbers_of(
    wanted: Reserved, ranges: Iterable[Range], limit: int, marked: Callable[[int, int, int], list[tuple[int, int]]]
) -> ReservedNumbers:
    """Returns the numbers of these ordinals, the first ``limit`` of them.

    ``marked`` returns the numbers of marked rows, each with its ordinal, by the ordinals' first and end and how many
    at most.
    """
    found: list[Stretch] = []
    behind = wanted.end
    for first, end, of in parts_of(wanted, ranges):
        if of is not None:
            behind = min(end, first + limit)
            limit -= behind - first
            found.append(of.stretch(first, behind))
        else:
            rows = marked(first, end, limit)
            limit -= len(rows)
            found += stretches([number for number, _ in rows])
            behind = end if limit else rows[-1][1] + 1
        if not limit:
            break
    return ReservedNumbers(tuple(found), behind)
