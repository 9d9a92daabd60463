"""What is known ahead of a queue is what lies on it, in get order, whatever happened to it and to units of work."""

from __future__ import annotations

from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import UnitOutcome
from trigmon.rules.model import changes as c
from trigmon.rules.model.handles import UnitFacts
from trigmon.store.sql import read_ahead
from trigmon.store.sql.read_ahead import Ahead

Q = "Q"
CHUNK = 3
step = st.one_of(
    st.tuples(st.just("put"), st.integers(0, 9), st.sampled_from([0, 0, 1, 2]), st.sampled_from([1, 1, 300])),
    st.tuples(st.just("get"), st.integers(0, 4), st.sampled_from([0, 1, 2]), st.just(0)),
    st.tuples(st.just("end"), st.sampled_from([1, 2]), st.booleans(), st.just(0)),
    st.tuples(st.just("look"), st.integers(1, 20), st.just(0), st.just(0)),
)


class Rows:
    """The rows as they are, and who follows them."""

    def __init__(self) -> None:
        self.ahead = Ahead()
        self.available = []
        self.units = {1: ([], []), 2: ([], [])}
        self.number = 0
        self.reads = 0

    def key(self, message):
        return -message.priority, message.number

    def read(self, after):
        self.reads += 1
        rows = sorted(self.available, key=self.key)
        if after is not None:
            rows = [row for row in rows if self.key(row) > (-after.priority, after.number)]
        return rows[:CHUNK], len(rows) < CHUNK

    def put(self, priority, unit, size):
        self.number += 1
        change = c.AddMessage(Q, self.number, priority, True, MessageDescriptor(), b"x" * size, unit_id=unit)
        (self.units[unit][0] if unit else self.available).append(change.message)
        self.ahead.follow(change)

    def get(self, place, unit, _):
        rows = sorted(self.available, key=self.key)
        if place < len(rows):
            message = rows[place]
            self.available.remove(message)
            if unit:
                self.units[unit][1].append(message)
            self.ahead.follow(c.TakeMessage(message, unit) if unit else c.RemoveMessage(message))

    def end(self, unit, is_commit, _):
        puts, gets = self.units[unit]
        self.units[unit] = ([], [])
        if is_commit:
            self.available += puts
        else:
            for got in gets:
                descriptor = replace(got.descriptor, backout_count=got.descriptor.backout_count + 1)
                self.available.append(replace(got, descriptor=descriptor))
        counts = [{(Q, m.priority): sum(o.priority == m.priority for o in of) for m in of} for of in (puts, gets)]
        facts = UnitFacts(unit, 1, 1, "client", puts=counts[0], gets=counts[1])
        outcome = UnitOutcome.COMMITTED if is_commit else UnitOutcome.BACKED_OUT
        self.ahead.follow(c.EndUnit(facts, outcome, 0))

    def look(self, count, *_):
        first, found = self.ahead.first(Q), []
        assert first is None or first == min(self.available, key=self.key)
        for message in self.ahead.messages(Q, self.read):
            found.append(message)
            if len(found) >= count:
                break
        assert found == sorted(self.available, key=self.key)[:count]


@settings(max_examples=300, deadline=None)
@given(st.lists(step, max_size=120), st.integers(0, 3))
def test_it_is_what_lies_there_however_small_the_windows_are(steps, which):
    limits = read_ahead.MOST_ROWS, read_ahead.MOST_BYTES, read_ahead.MOST_OF_A_UNIT, read_ahead.LARGE
    if which:
        read_ahead.MOST_ROWS, read_ahead.MOST_BYTES, read_ahead.MOST_OF_A_UNIT, read_ahead.LARGE = (6, 900, which, 200)
    try:
        rows = Rows()
        for name, *values in steps:
            getattr(rows, name)(*values)
        rows.look(len(rows.available) + 1)
        assert rows.ahead._noted == sum(len(noted or ()) for noted in rows.ahead._units.values())
    finally:
        read_ahead.MOST_ROWS, read_ahead.MOST_BYTES, read_ahead.MOST_OF_A_UNIT, read_ahead.LARGE = limits


def test_a_queue_that_was_empty_once_is_not_read_again_while_it_stays_small():
    rows = Rows()
    rows.look(1)
    for number in range(100):
        rows.put(number % 10, 0, 1)
        rows.look(1)
        rows.get(0, 0, 0)
    assert rows.reads == 1


def test_a_window_of_which_the_first_message_alone_is_asked_stays_longer_than_those_that_nobody_asks_for():
    ahead = Ahead()
    names = [f"Q{number}" for number in range(read_ahead.MOST_WINDOWS + 1)]
    messages = {name: c.AddMessage(name, 1, 0, True, MessageDescriptor(), b"").message for name in names}

    def read(name):
        return next(ahead.messages(name, lambda _: ([messages[name]], True)))

    for name in names[:-1]:
        read(name)
    assert ahead.first("Q0") == messages["Q0"]
    read(names[-1])
    assert ahead.first("Q0") == messages["Q0"]
    assert ahead.first("Q1") is None


def test_after_an_end_that_was_taken_back_a_backout_brings_what_was_got_before_it_as_well():
    rows = Rows()
    for _ in range(3):
        rows.put(0, 0, 1)
    rows.look(3)
    rows.get(0, 1, 0)
    rows.ahead.mark()
    facts = UnitFacts(1, 1, 1, "client", gets={(Q, 0): 1})
    rows.ahead.follow(c.EndUnit(facts, UnitOutcome.COMMITTED, 0))
    rows.ahead.undo({1})
    rows.look(2)
    rows.get(0, 1, 0)
    rows.end(1, False, 0)
    rows.look(3)


def test_each_change_is_followed_or_known_to_move_no_message():
    followed, others = set(read_ahead.FOLLOWED), set(read_ahead.UNAFFECTED)
    assert followed | others == set(get_args(c.AnyChange))
    assert not followed & others
