"""What the SQL stores keep of reserved messages is what their rows say, and keeps within its room."""

from __future__ import annotations

import random

import pytest

from tests.store.reserving import IN, fill, lose, read, reserve, sweep
from trigmon.mq.calls import Get, Release, Settle
from trigmon.mq.enums import GetOption
from trigmon.mq.replies import WasGot
from trigmon.rules.model.stored_messages import SLICE
from trigmon.store.sql import reserved_cache

SQL = pytest.mark.parametrize("world", ["sqlite", "postgres"], indirect=True)


@pytest.fixture
def q(world):
    world.define("Q", def_persistence="persistent", max_q_depth=999_999)
    return "Q"


def from_rows(world, made):
    kept, world.store.reserved._of = world.store.reserved._of, {}
    try:
        return read(world, made)
    finally:
        world.store.reserved._of = kept


@SQL
@pytest.mark.parametrize("room", [0, 3, SLICE, 10 * SLICE])
def test_what_is_kept_is_what_the_rows_say_whatever_is_done_with_parts(world, q, room, monkeypatch):
    monkeypatch.setattr(reserved_cache, "MOST_BYTES", room * (reserved_cache.OF_A_MESSAGE + 4))
    dice = random.Random(room)
    fill(world, 2 * SLICE + 7, priority=1)
    fill(world, 9, priority=3)
    made = reserve(world)
    for _ in range(12):
        first, count = dice.randrange(made.count), dice.randrange(1, 60)
        end = dice.choice((Settle, Release))
        world.did(end(reservation=made.reservation, ordinal=first, count=count), "job")
        if dice.random() < 0.3:
            sweep(world)
        kept = read(world, made)
        assert kept == from_rows(world, made)
        assert read(world, made, ordinal=first + count // 2) == [row for row in kept if row[0] >= first + count // 2]
    assert sum(world.store.reserved._sizes.values()) <= reserved_cache.MOST_BYTES


@SQL
def test_messages_that_went_back_are_kept_by_the_next_reservation_as_they_are_then(world, q):
    fill(world, 5)
    first = reserve(world)
    world.did(Release(reservation=first.reservation), "job")
    sweep(world)
    second = reserve(world)
    assert read(world, second) == from_rows(world, second) == [(at, str(at), 1) for at in range(5)]


@SQL
def test_nothing_is_kept_of_reservations_that_are_over_nor_behind_a_restart(world, q):
    fill(world, 3 * SLICE)
    for _ in range(2):
        made = reserve(world, max_messages=SLICE)
        assert list(world.store.reserved._of) == [made.reservation]
        world.did(Settle(reservation=made.reservation), "job")
        sweep(world)
        assert not world.store.reserved._of
        assert not world.store.reserved._sizes
    made = reserve(world, max_messages=SLICE)
    before = read(world, made)
    world.restart()
    assert not world.store.reserved._of
    assert read(world, made) == before


@SQL
def test_rows_of_what_was_kept_are_removed_and_no_others(world, q):
    """Numbers of other queues, and of messages that are not reserved, lie between those of a reservation."""
    world.define("OTHER", def_persistence="persistent")
    for number in range(40):
        world.put("Q", b"%d" % number, priority=number % 2)
        world.put("OTHER", b"%d" % number)
    slow = world.open("Q", IN, as_="slow")
    world.did(Get(handle=slow, options=GetOption.SYNCPOINT, unit=1), "slow")
    made = reserve(world, max_messages=30)
    world.put("Q", b"later", priority=9)
    world.did(Settle(reservation=made.reservation), "job")
    sweep(world)
    lose(world, "slow", "job")
    world.restart()
    assert sorted(all_of(world, "OTHER"), key=int) == [str(number) for number in range(40)]
    assert all_of(world, "Q") == ["later", "1", *(str(number) for number in range(22, 40, 2))]


def all_of(world, q_name):
    handle = world.open(q_name, IN, as_="last")
    found = []
    while isinstance(reply := world.do(Get(handle=handle), "last"), WasGot):
        found.append(reply.data.decode())
    return found


@SQL
def test_what_is_being_read_keeps_its_room_while_more_is_reserved(world, q, monkeypatch):
    monkeypatch.setattr(reserved_cache, "MOST_BYTES", 12 * (reserved_cache.OF_A_MESSAGE + 4))
    fill(world, 30)
    made = [reserve(world, consumer=f"JOB {n}", max_messages=10) for n in (0, 1)]
    assert list(world.store.reserved._of) == [made[1].reservation]
    read(world, made[1])
    reserve(world, consumer="JOB 2", max_messages=10)
    assert list(world.store.reserved._of) == [made[1].reservation]
    assert read(world, made[1]) == from_rows(world, made[1])
