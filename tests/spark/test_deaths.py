"""What is worked on next where jobs died, played against queues of good messages and such as kill; pure."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trigmon.rules.model.reservation import Reservation, between, cut, offered_anew, together
from trigmon.spark.poison_search.crash_search import WAYS, WHOLE, Part, all_deaths, is_bad, next_part


class Batch:
    """A reservation that job after job is given, until nothing of it is left. ``kills`` says what ends one."""

    def __init__(self, count, kills, threshold=0, of_a_unit=1):
        self.count = count
        self.kills = kills
        self.threshold = threshold
        self.of_a_unit = of_a_unit
        self.reservation = Reservation(1, "Q", "JOB", runs=((5, count),), is_sealed=True)
        self.gone = ()
        self.settled: list[int] = []
        self.bad: list[int] = []
        self.parts = self.jobs = self.fruitless = self.most_fruitless = 0

    @property
    def left(self):
        return between(self.gone, self.count)

    def units(self):
        firsts = range(0, self.count, self.of_a_unit)
        units = [(first, min(first + self.of_a_unit, self.count)) for first in firsts]
        return [unit for unit in units if cut(self.left, *unit)]

    def end(self, of, to):
        to += range(*of)
        self.gone = together(self.gone, [of])

    def work(self, chance=None):
        """A job's life, to its end or its death; ``chance`` says of each piece of work whether it is killed there."""
        if self.jobs:
            self.reservation = offered_anew(self.reservation)
        self.jobs += 1
        before = len(self.gone) and self.gone, len(self.bad)
        while self.left:
            part = self.next()
            if is_bad(part, len(self.settled), self.threshold):
                self.end(part[:2], self.bad)
                continue
            self.parts += 1
            if self.reservation.offers >= WHOLE:
                self.reservation = replace(self.reservation, attempt=part[:2], gone=self.gone)
            if self.kills(range(*part[:2])) or (chance is not None and chance()):
                break
            self.end(part[:2], self.settled)
        has_done = (len(self.gone) and self.gone, len(self.bad)) != before
        self.fruitless = 0 if has_done else self.fruitless + 1
        self.most_fruitless = max(self.most_fruitless, self.fruitless)

    def next(self):
        reservation = self.reservation
        if reservation.offers < WHOLE:
            return Part(0, self.count)
        return next_part(self.units(), all_deaths(reservation.deaths, reservation.offers, self.count))


@given(st.integers(2, 3000), st.data())
def test_one_message_that_kills_is_set_aside_after_few_deaths_and_all_others_are_settled(count, data):
    bad = data.draw(st.integers(0, count - 1))
    batch = Batch(count, lambda numbers: bad in numbers)
    while batch.left:
        batch.work()
        assert batch.jobs <= 8, batch.reservation.deaths
    assert (batch.bad, sorted(batch.settled)) == ([bad], [n for n in range(count) if n != bad])
    assert batch.most_fruitless <= 3, "the breaker of a process holds the queue after the fourth"


@pytest.mark.parametrize("count", [100, 3000])
def test_what_jobs_died_over_is_worked_off_in_sixteenths_however_much_of_it_is_done(count):
    bad = count // 3
    batch = Batch(count, lambda numbers: bad in numbers)
    while batch.left:
        batch.work()
    assert batch.bad == [bad]
    assert batch.parts <= (WAYS + 2) * math.ceil(math.log(count, WAYS)) + 4


@given(st.integers(2, 400), st.sets(st.integers(0, 399), max_size=4), st.integers(1, 5))
def test_several_are_found_and_so_are_whole_groups(count, bad, of_a_unit):
    batch = Batch(count, lambda numbers: bool(bad & set(numbers)), of_a_unit=of_a_unit)
    units = [range(*unit) for unit in batch.units()]
    good = [n for unit in units if not bad & set(unit) for n in unit]
    for _ in range(60):
        if batch.left:
            batch.work()
    assert sorted(batch.settled) == good
    if good:
        assert sorted(batch.bad) == sorted(set(range(count)) - set(good))


@given(st.integers(1, 300), st.integers(1, 30))
def test_a_job_that_dies_over_everything_sets_nothing_aside(count, jobs):
    batch = Batch(count, lambda numbers: True)
    for _ in range(jobs):
        batch.work()
    assert (batch.bad, batch.settled) == ([], [])


@pytest.mark.parametrize(("threshold", "jobs"), [(1, 3), (2, 3), (4, 5)])
def test_of_the_only_message_bothresh_alone_says_that_it_is_bad(threshold, jobs):
    batch = Batch(1, lambda numbers: True, threshold)
    while batch.left:
        batch.work()
    assert (batch.bad, batch.jobs) == ([0], jobs)


def test_what_jobs_were_killed_over_by_chance_is_settled_by_the_next():
    for place in range(40):
        batch, at = Batch(20, lambda numbers: False), itertools.count()
        for _ in range(3):
            batch.work(chance=lambda at=at, place=place: next(at) in (0, 1, 2 + place))
        batch.work()
        assert (batch.bad, sorted(batch.settled)) == ([], list(range(20)))
