"""Rows of several look-ups come one behind the other, and no cursor stays open."""

from __future__ import annotations

from contextlib import closing
from itertools import islice

import pytest

from trigmon.rules.model.stored_messages import Selection
from trigmon.store.sql import statements as sql
from trigmon.store.sql.available_rows import AvailableRows
from trigmon.store.sql.reserved_ranges import Range
from trigmon.store.sql.row_stream import RowStream
from trigmon.store.sql.select import Look
from trigmon.store.sqlite.first_rows import first_rows


class Wrong(Exception):  # noqa: N818
    """What a cursor raises."""


class Cursors:
    """Cursors over numbers, of which some raise; how many are open."""

    def __init__(self, *of, wrong_at=None):
        self.left, self.wrong_at = list(of), wrong_at
        self.opened = self.open = 0

    def __call__(self, statement, values):
        assert not self.open, "the one before is open"
        self.opened, self.open = self.opened + 1, self.open + 1
        return Cursor(self, self.left.pop(0))


class Cursor:
    def __init__(self, of, numbers):
        self.of, self.numbers, self.is_open = of, iter(numbers), True

    def __iter__(self):
        return self

    def __next__(self):
        number = next(self.numbers)
        if number == self.of.wrong_at:
            raise Wrong
        return number, 5

    def close(self, force=False):
        self.of.open -= self.is_open
        self.is_open = False


def stream(cursors, count):
    return RowStream(cursors, [(f"statement {n}", ()) for n in range(count)])


def numbers(rows):
    return [number for number, _ in rows]


def test_parts_come_one_behind_the_other_and_each_is_closed_at_its_end():
    cursors = Cursors([1, 2], [], [3])
    assert numbers(stream(cursors, 3)) == [1, 2, 3]
    assert (cursors.opened, cursors.open) == (3, 0)


def test_a_part_is_opened_when_the_one_before_has_ended_and_not_sooner():
    cursors = Cursors([1, 2], [3])
    with closing(stream(cursors, 2)) as rows:
        assert numbers(islice(rows, 2)) == [1, 2]
        assert (cursors.opened, cursors.open) == (1, 1)
    assert (cursors.opened, cursors.open) == (1, 0)


def test_an_error_of_a_part_leaves_none_open_where_the_stream_is_closed():
    cursors = Cursors([1, 2], [3], wrong_at=2)
    with pytest.raises(Wrong), closing(stream(cursors, 2)) as rows:
        numbers(rows)
    assert (cursors.opened, cursors.open) == (1, 0)


@pytest.mark.parametrize("wrong_at", [None, 3, 12])
def test_a_jump_over_a_range_closes_the_cursor_that_met_it(wrong_at):
    ranges = [Range(7, first=4, last=9, reservation=1, ordinal=0)]
    # The first look-up meets the range, and the two that follow read behind it: of the same priority, and of lower.
    cursors = Cursors([2, 3, 4, 5], [10, 11], [12], wrong_at=wrong_at)
    rows = AvailableRows(cursors, sql.FIND_FIRST["plain"], (7,), ranges)
    if wrong_at is None:
        assert numbers(rows) == [2, 3, 10, 11, 12]
        assert (cursors.opened, cursors.open) == (3, 0)
    else:
        with pytest.raises(Wrong), closing(rows):
            numbers(rows)
        assert (cursors.opened, cursors.open) == (1 if wrong_at == 3 else 3, 0)


def test_first_rows_and_a_look_up_close_their_cursor_behind_an_error():
    look_ups = [
        lambda cursors: first_rows(cursors, 7, None),
        lambda cursors: Look(cursors, Selection("Q", 1), 7, {}, has_groups=False, has_own=False).found(),
    ]
    for look_up in look_ups:
        cursors = Cursors([1], wrong_at=1)
        with pytest.raises(Wrong) as caught:
            look_up(cursors)
        assert cursors.open == 0, caught
