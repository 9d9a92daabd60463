"""A queue that is deleted with its messages is gone at once; its rows go a slice at a time, and calls come between."""

from __future__ import annotations

import pytest

from tests.worlds import World
from trigmon.mq.calls import Alter, Backout, Commit, Delete, GetMany, Open, Outcome, Ping, PutMany
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import GetOption, OpenOption, Persistence, UnitOutcome
from trigmon.rules.model.changes import EndUnit
from trigmon.store.sql.leftovers import AT_ONCE as LEFTOVERS

SYNC = GetOption.SYNCPOINT
MANY = 3 * LEFTOVERS + 100


@pytest.fixture(params=["sqlite", "postgres"])
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    define(made)
    yield made
    made.end()


def define(world: World) -> None:
    world.define("Q", def_persistence="persistent", max_q_depth=999_999)


def fill(world: World, count: int = MANY, unit: int = 0) -> None:
    lasting = MessageDescriptor(persistence=int(Persistence.PERSISTENT))
    for start in range(0, count, 4000):
        bodies = [b"x"] * min(4000, count - start)
        world.did(PutMany(q_name="Q", bodies=bodies, descriptor=lasting, options=SYNC if unit else 0, unit=unit))


def purge(world: World) -> None:
    world.did(Delete(object_type="QLOCAL", name="Q", purge=True), "operator")


def rows(world: World) -> int:
    return world.store._rows("SELECT count(*) FROM message")[0][0]


def queues(world: World) -> int:
    return world.store._rows("SELECT count(*) FROM queue")[0][0]


def scanned(world: World) -> list[int]:
    """The rows left at each answer that somebody else got meanwhile."""
    left = []
    while world.qm.housekeeping.is_scanning:
        world.qm.housekeeping.scan()
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
        world.qm.housekeeping.scan()
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


class TestUnits:
    """What nobody sees behind a unit's end: what it got, when it is committed, what it put, when it is backed out."""

    @pytest.fixture(autouse=True)
    def _large_units(self, world):
        world.did(Alter(object_type="QMGR", name="QM1", attributes={"max_uncommitted_msgs": 999_999}), "operator")

    def got(self, world: World) -> None:
        fill(world)
        handle = world.did(Open(object_name="Q", options=OpenOption.INPUT_SHARED)).handle
        count = 0
        while count < MANY:
            count += len(world.did(GetMany(handle=handle, count=4000, options=SYNC, unit=1)).messages)

    def ended(self, world: World, how: str) -> None:
        if how == "commit":
            self.got(world)
            world.did(Commit(unit=1))
        else:
            fill(world, unit=1)
            world.did(Backout(unit=1))

    @pytest.mark.parametrize("how", ["commit", "backout"])
    def test_another_is_answered_between_the_slices(self, world, how):
        self.ended(world, how)
        world.put("Q", b"new", as_="another")
        assert (rows(world), world.queue_depth("Q")) == (MANY + 1, 1)
        left = scanned(world)
        assert len(left) >= MANY // LEFTOVERS
        steps = [one - other for one, other in zip([MANY + 1, *left], left, strict=False)]
        assert max(steps) <= LEFTOVERS
        assert (left[-1], world.queue_depth("Q")) == (1, 1)

    @pytest.mark.parametrize("how", ["commit", "backout"])
    @pytest.mark.parametrize("slices", [0, 2])
    def test_a_kill_in_the_middle_brings_nothing_back(self, world, how, slices):
        self.ended(world, how)
        for _ in range(slices):
            world.qm.housekeeping.scan()
        world.put("Q", b"new", as_="another")
        world.crash()
        expected = UnitOutcome.COMMITTED if how == "commit" else UnitOutcome.BACKED_OUT
        assert world.did(Outcome(client_id="client-app", unit=1), "asker").outcome is expected
        assert world.queue_depth("Q") == 1
        scanned(world)
        assert rows(world) == 1

    @pytest.mark.parametrize("end", [Commit, Backout])
    def test_an_end_that_is_taken_back_leaves_the_unit_as_it_was(self, world, end):
        self.got(world)
        fill(world, unit=1)
        before = rows(world)
        (unit,) = world.store.standing.units.values()
        outcome = UnitOutcome.COMMITTED if end is Commit else UnitOutcome.BACKED_OUT
        world.store.begin()
        world.store.mark()
        world.store.apply([EndUnit(unit, outcome, world.clock.now())], True)
        world.store.undo()
        world.store.end()
        assert not world.store.has_leftovers
        assert rows(world) == before
        world.did(Backout(unit=1))
        assert world.queue_depth("Q") == MANY
        scanned(world)
        assert rows(world) == MANY

    def test_a_backout_releases_at_once_the_trigger_message_that_it_is_to_release(self, world):
        world.define("IQ")
        world.define("P", "PROCESS", appl_id="/bin/true")
        armed = {"trigger_control": "on", "trigger_type": "first", "initiation_q_name": "IQ", "process_name": "P"}
        world.define("T", **armed)
        world.did(Open(object_name="IQ", options=OpenOption.INPUT_SHARED), "monitor")
        world.put("T", unit=1)
        fill(world, unit=1)
        world.did(Backout(unit=1))
        assert world.queue_depth("IQ") == 1
        handle = world.did(Open(object_name="IQ", options=OpenOption.INPUT_SHARED), "monitor").handle
        assert len(world.did(GetMany(handle=handle, count=9), "monitor").messages) == 1
        scanned(world)
        assert rows(world) == 0
