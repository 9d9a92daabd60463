"""A queue that is deleted with its messages is gone at once; its rows go a slice at a time, and calls come between."""

from __future__ import annotations

import pytest

from tests.worlds import World
from trigmon.mq.calls import Delete, Ping, PutMany
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import Persistence
from trigmon.store.sql.store import LEFTOVERS

MANY = 3 * LEFTOVERS + 100


@pytest.fixture(params=["sqlite", "postgres"])
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    define(made)
    yield made
    made.end()


def define(world: World) -> None:
    world.define("Q", def_persistence="persistent", max_q_depth=999_999)


def fill(world: World, count: int = MANY) -> None:
    lasting = MessageDescriptor(persistence=int(Persistence.PERSISTENT))
    for start in range(0, count, 4000):
        bodies = [b"x"] * min(4000, count - start)
        world.did(PutMany(q_name="Q", bodies=bodies, descriptor=lasting))


def purge(world: World) -> None:
    world.did(Delete(object_type="QLOCAL", name="Q", purge=True), "operator")


def rows(world: World) -> int:
    return world.store._rows("SELECT count(*) FROM message")[0][0]


def queues(world: World) -> int:
    return world.store._rows("SELECT count(*) FROM queue")[0][0]


def scanned(world: World) -> list[int]:
    """The rows left at each answer that somebody else got meanwhile."""
    left = []
    while world.qm.is_scanning:
        world.qm.scan()
        world.did(Ping(), "another")
        left.append(rows(world))
    return left


def test_another_is_answered_between_the_slices_of_a_purge(world):
    before = queues(world)
    fill(world)
    purge(world)
    assert rows(world) == MANY
    left = scanned(world)
    assert len(left) >= MANY // LEFTOVERS
    steps = [one - other for one, other in zip([MANY, *left], left, strict=False)]
    assert max(steps) <= LEFTOVERS
    assert (left[-1], queues(world)) == (0, before - 1)


def test_a_queue_of_the_same_name_is_another_and_empty(world):
    fill(world)
    purge(world)
    define(world)
    assert world.queue_depth("Q") == 0
    world.put("Q", b"new")
    scanned(world)
    assert (rows(world), world.queue_depth("Q")) == (1, 1)


@pytest.mark.parametrize("slices", [0, 1])
def test_a_kill_in_the_middle_leaves_nothing_behind_in_the_end(world, slices):
    before = queues(world)
    fill(world)
    purge(world)
    for _ in range(slices):
        world.qm.scan()
    world.crash()
    assert rows(world) > MANY - 2 * LEFTOVERS
    scanned(world)
    assert (rows(world), queues(world)) == (0, before - 1)
    define(world)
    assert world.queue_depth("Q") == 0


def test_a_queue_of_few_messages_is_gone_whole_at_once(world):
    fill(world, 10)
    purge(world)
    assert rows(world) == 0
    assert not world.store.has_leftovers
