"""The arithmetic of a reservation: stretches of ordinals, priorities by stretch, what counts and what does not."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from trigmon.mq.enums import UnitOutcome
from trigmon.rules.model.reservation import (
    Due,
    Reservation,
    between,
    by_priority,
    cut,
    ended,
    longer,
    together,
    without,
)

stretch = st.tuples(st.integers(0, 30), st.integers(1, 8)).map(lambda at: (at[0], at[0] + at[1]))
stretches = st.lists(stretch, max_size=6)
runs = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 6)), max_size=8)


def numbers(of) -> set[int]:
    return {number for first, end in of for number in range(first, end)}


@given(stretches, stretches)
def test_stretches_together_are_what_is_in_any_of_them_in_order_and_apart(one, other):
    merged = together(one, other)
    assert numbers(merged) == numbers(one) | numbers(other)
    assert all(before[1] < after[0] for before, after in pairwise(merged))


@given(stretches, st.integers(0, 40))
def test_between_is_what_is_below_the_count_and_not_gone(gone, count):
    merged = [(first, min(end, count)) for first, end in together(gone) if first < count]
    assert numbers(between(merged, count)) == set(range(count)) - numbers(gone)


@given(stretches, st.integers(0, 40), st.integers(0, 40))
def test_a_cut_is_what_lies_within(of, first, end):
    assert numbers(cut(together(of), first, end)) == numbers(of) & set(range(first, end))


@given(runs, stretches)
def test_priorities_are_counted_by_the_ordinals_of_their_runs(of, wanted):
    priorities = [priority for priority, count in of for _ in range(count)]
    counted = by_priority(of, together(wanted))
    chosen = [priorities[n] for n in numbers(wanted) if n < len(priorities)]
    assert counted == [chosen.count(priority) for priority in range(10)]


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(0, 12))
def test_runs_grow_as_if_they_were_made_at_once(priorities, at):
    assert longer(longer((), priorities[:at]), priorities[at:]) == longer((), priorities)


def a_reservation(**more) -> Reservation:
    return Reservation(7, "Q", "JOB", runs=((5, 2), (1, 3)), is_sealed=True, **more)


def test_what_somebody_stands_behind_does_not_count_and_what_nobody_does_counts_by_priority():
    held = a_reservation(holder=3, readers=(4,))
    assert (held.held, sum(held.waiting)) == (5, 0)
    read = without(held, 3)
    assert (read.behind, read.held) == ((4,), 5)
    left = without(read, 4)
    assert (left.held, left.waiting[5], left.waiting[1]) == (0, 2, 3)


def test_what_is_on_its_way_back_counts_and_what_is_settled_does_not():
    some = ended(a_reservation(holder=3), [Due(0, 1, True, 1)], UnitOutcome.BACKED_OUT, 9)
    assert (some.outcome, some.left, some.held, some.waiting[5]) == (UnitOutcome.OPEN, 4, 4, 1)
    all_ = ended(some, [Due(1, 5)], UnitOutcome.COMMITTED, 9)
    assert (all_.outcome, all_.left, all_.behind, sum(all_.waiting)) == (UnitOutcome.COMMITTED, 0, (), 1)
    assert not all_.is_over
