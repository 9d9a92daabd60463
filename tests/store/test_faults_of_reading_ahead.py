"""Faults of the caches of rows: each one makes SQLite answer otherwise than the store in memory."""

from __future__ import annotations

import random
from functools import partial

import pytest

from tests.qmgr.script_steps import batches, large_ends, traffic
from tests.qmgr.test_stores_agree import check_that_small_windows_agree, check_that_stores_agree
from tests.worlds import World
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import OpenOption
from trigmon.rules.model import changes as c
from trigmon.rules.model import reservation_changes as r
from trigmon.rules.model.stored_messages import Selection
from trigmon.store.sql import available_rows, read_ahead, reserved_ranges
from trigmon.store.sql.read_ahead import Ahead, Window
from trigmon.store.sql.reserved_ranges import ReservedRanges


def backouts(seed: int, steps: int = 80) -> list[tuple]:
    """One application puts, the other gets a few in a unit of work, and mostly backs out."""
    dice = random.Random(seed)
    script: list[tuple] = [("open", "two", "F", OpenOption.INPUT_SHARED)]
    for _ in range(steps):
        script += dice.choices(
            [
                [("put", "one", "F", False, True, dice.randrange(3), -1)],
                [("get", "two", 0, 0, True)],
                [("get", "two", 0, 0, False)],
                [("backout", "two")],
                [("commit", "two")],
            ],
            (6, 6, 2, 3, 1),
        )[0]
    return script


def check_that_batches_agree(seed):
    """Reservations of short ranges."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ReservedRanges, "least", 1)
        check_that_stores_agree(batches(seed), "sqlite")


def check_that_others_agree(make, seed):
    check_that_small_windows_agree(make(seed))


CHECKS = [
    check_that_batches_agree,
    *(partial(check_that_others_agree, make) for make in (backouts, traffic, large_ends)),
]


def ignored(change):
    return lambda patched: patched.setitem(read_ahead.FOLLOWED, change, lambda ahead, it: None)


def of_class(owner, name, fault):
    return lambda patched: patched.setattr(owner, name, fault)


def end_without_a_count(ahead, change):
    """A backout brings messages back as they were, without the count that it adds."""
    noted = ahead._units.get(change.unit.unit_id)
    right = read_ahead.replace
    read_ahead.replace = lambda it, **fields: it
    try:
        Ahead._end_unit(ahead, change)
    finally:
        read_ahead.replace = right
    return noted


def add_at_the_end(window, message):
    """What comes takes no regard of its priority."""
    entry = read_ahead.Entry((-message.priority, message.number), message)
    window.entries.append(entry)


def forget_at_the_start(record):
    """A start marks no row of what was reserved."""
    record._of = {}
    record._write()


FAULTS = {
    "look-ups find what is reserved without marks": of_class(available_rows, "FINDS", frozenset()),
    "what goes back stays in the record of ranges": of_class(ReservedRanges, "remove", lambda *_: None),
    "a range has what lies between its numbers": of_class(
        reserved_ranges, "stretches", lambda numbers: [(min(numbers), max(numbers))]
    ),
    "a start forgets what is reserved": of_class(ReservedRanges, "recover", forget_at_the_start),
    "a put is not followed": ignored(c.AddMessage),
    "a get in a unit of work is not followed": ignored(c.TakeMessage),
    "a get is not followed": ignored(c.RemoveMessage),
    "the end of a unit of work is not followed": ignored(c.EndUnit),
    "a mark that skips a backout is not followed": ignored(c.CarryOver),
    "a reservation is not followed": ignored(r.ReserveMessages),
    "what a reservation gives back is not followed": ignored(r.ReturnReserved),
    "a backout adds nothing to the count": lambda patched: patched.setitem(
        read_ahead.FOLLOWED, c.EndUnit, end_without_a_count
    ),
    "a unit's notes are taken for all": of_class(read_ahead, "_says_all", lambda unit, noted, *, is_commit: True),
    "what comes lies at the end": of_class(Window, "add", add_at_the_end),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_seen_by_one_of_the_scripts(name, monkeypatch):
    FAULTS[name](monkeypatch)
    for seed in range(15):
        for check in CHECKS:
            try:
                check(seed)
            except Exception:
                return
    pytest.fail(f"{name}: no script noticed")


@pytest.mark.parametrize("number", [0, 1])  # the others are played in tests/qmgr
def test_its_scripts_agree_without_a_fault(number):
    for seed in range(15):
        CHECKS[number](seed)


def test_what_a_call_put_and_took_before_it_was_undone_is_as_before(tmp_path):
    world = World("sqlite", tmp_path)
    world.define("Q")
    world.put("Q", b"one")
    store = world.store

    def found():
        return [message.data for message in store.find(Selection("Q", 0, limit=9)).messages]

    assert found() == [b"one"]
    (message,) = store.find(Selection("Q", 0)).messages
    store.begin()
    store.mark()
    store.apply([c.AddMessage("Q", 10**6, 5, False, MessageDescriptor(), b"two")], can_be_undone=True)
    store.apply([c.RemoveMessage(message)], can_be_undone=True)
    assert found() == [b"two"]
    store.undo()
    assert found() == [b"one"]
    store.end()
    world.end()
