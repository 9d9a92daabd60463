"""What a deletion or a large unit's end does is done at once for all who look; rows follow a slice at a time."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.worlds import World
from trigmon.mq.calls import Alter, Backout, Commit, Delete, Get, GetMany, Open, Outcome, Ping, PutMany
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import GetOption, MatchOption, OpenOption, Persistence, UnitOutcome
from trigmon.mq.replies import WereGot
from trigmon.rules.model.changes import EndUnit
from trigmon.rules.model.stored_messages import Selection
from trigmon.store.sql.leftovers import AT_ONCE as LEFTOVERS
from trigmon.store.sql.leftovers import MOST_UNITS, Leftovers
from trigmon.store.sqlite.store import SqliteStore

SYNC = GetOption.SYNCPOINT
MANY = 3 * LEFTOVERS + 300
TOTAL = MANY + 1


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
    if isinstance(world.store, SqliteStore):
        world.store.turns.settle()  # young messages have no rows yet
    return world.store.rows("SELECT count(*) FROM message")[0][0]


def queues(world: World) -> int:
    return world.store.rows("SELECT count(*) FROM queue")[0][0]


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


class TestWhatBecomesAvailable:
    """What a large unit put and committed, or got and gave back, is there at once, whole and in order."""

    @pytest.fixture(autouse=True)
    def _large_units(self, world):
        world.did(Alter(object_type="QMGR", name="QM1", attributes={"max_uncommitted_msgs": 999_999}), "operator")

    def ended(self, world: World, how: str) -> None:
        """A unit of as many messages, in three priorities, has ended; one message was there before."""
        world.put("Q", b"before", priority=1, persistence=1)
        for priority in (0, 1, 2):
            lasting = MessageDescriptor(persistence=1, priority=priority, correl_id=bytes([priority]) * 24)
            bodies = [b"%d" % number for number in range(MANY // 3)]
            in_unit = {"options": SYNC, "unit": 1} if how == "commit" else {}
            world.did(PutMany(q_name="Q", bodies=bodies, descriptor=lasting, **in_unit))
        if how == "commit":
            world.did(Commit(unit=1))
            return
        handle = world.did(Open(object_name="Q", options=OpenOption.INPUT_SHARED)).handle
        count = 0
        while count < TOTAL:
            count += len(world.did(GetMany(handle=handle, count=4000, options=SYNC, unit=1)).messages)
        world.did(Backout(unit=1))

    def expected(self, how: str) -> list[tuple[bytes, int]]:
        back = int(how == "backout")
        numbers = [b"%d" % number for number in range(MANY // 3)]
        return [(body, back) for body in (*numbers, b"before", *numbers, *numbers)]

    def all_of(self, world: World) -> list[tuple[bytes, int]]:
        handle = world.did(Open(object_name="Q", options=OpenOption.INPUT_SHARED), "another").handle
        got = []
        while isinstance(reply := world.do(GetMany(handle=handle, count=700), "another"), WereGot):
            got += [(message.data, message.descriptor.backout_count) for message in reply.messages]
        return got

    @pytest.mark.parametrize("how", ["commit", "backout"])
    def test_it_is_whole_at_every_slice(self, world, how):
        self.ended(world, how)
        assert world.store.has_leftovers
        expected = [body for body, _ in self.expected(how)]
        slices = 0
        while True:
            assert world.queue_depth("Q") == TOTAL
            found = world.store.find(Selection("Q", world.clock.now(), limit=2 * TOTAL))
            assert [message.data for message in found.messages] == expected
            if not world.qm.housekeeping.is_scanning:
                break
            world.qm.housekeeping.scan()
            slices += 1
        assert slices >= TOTAL // LEFTOVERS

    @pytest.mark.parametrize("how", ["commit", "backout"])
    @pytest.mark.parametrize("slices", [0, 2])
    def test_it_is_got_in_order_while_it_is_rewritten(self, world, how, slices):
        self.ended(world, how)
        for _ in range(slices):
            world.qm.housekeeping.scan()
        expected = self.expected(how)
        assert [each[0] for each in self.all_of(world)] == [each[0] for each in expected]
        scanned(world)
        assert rows(world) == 0

    @pytest.mark.parametrize("how", ["commit", "backout"])
    @pytest.mark.parametrize("slices", [0, 2])
    def test_a_kill_in_the_middle_loses_none(self, world, how, slices):
        self.ended(world, how)
        for _ in range(slices):
            world.qm.housekeeping.scan()
        world.crash()
        assert not world.store.has_leftovers
        expected = UnitOutcome.COMMITTED if how == "commit" else UnitOutcome.BACKED_OUT
        assert world.did(Outcome(client_id="client-app", unit=1), "asker").outcome is expected
        assert self.all_of(world) == self.expected(how)

    @pytest.mark.parametrize("how", ["commit", "backout"])
    def test_one_that_is_named_is_found_among_them(self, world, how):
        self.ended(world, how)
        handle = world.did(Open(object_name="Q", options=OpenOption.INPUT_SHARED), "another").handle
        get = Get(handle=handle, match=MatchOption.CORREL_ID, correl_id=bytes([1]) * 24)
        got = world.did(get, "another")
        assert (got.data, got.descriptor.priority, got.descriptor.backout_count) == (b"0", 1, int(how == "backout"))

    @pytest.mark.parametrize("how", ["commit", "backout"])
    def test_a_damaged_one_among_them_is_set_aside_alone(self, world, how):
        self.ended(world, how)
        world.store.prepare()
        world.store.rows("UPDATE message SET checksum = 0 WHERE priority = 2 AND id % 100 = 7 RETURNING id")
        got = [body for body, _ in self.all_of(world)]
        assert TOTAL - len(got) == len(world.telling.damaged) > 0
        expected = Counter(body for body, _ in self.expected(how))
        assert not Counter(got) - expected

    @pytest.mark.parametrize("how", ["commit", "backout"])
    def test_a_purge_in_the_middle_takes_all_of_it(self, world, how):
        self.ended(world, how)
        world.qm.housekeeping.scan()
        world.lose("app")
        purge(world)
        define(world)
        assert world.queue_depth("Q") == 0
        scanned(world)
        assert rows(world) == 0

    def test_a_queue_is_triggered_once_by_all_of_it(self, world):
        world.define("IQ")
        world.define("P", "PROCESS", appl_id="/bin/true")
        armed = {"trigger_control": "on", "trigger_type": "depth", "trigger_depth": TOTAL}
        armed |= {"initiation_q_name": "IQ", "process_name": "P"}
        world.did(Alter(object_type="QLOCAL", name="Q", attributes=armed), "operator")
        world.did(Open(object_name="IQ", options=OpenOption.INPUT_SHARED), "monitor")
        self.ended(world, "commit")
        assert world.fired() == ["Q"]
        scanned(world)
        assert world.fired() == []

    def test_more_units_than_looks_can_bear_are_rewritten_at_once(self, world, monkeypatch):
        monkeypatch.setattr(Leftovers, "at_once", 1)
        for unit in range(1, MOST_UNITS + 3):
            world.put("Q", b"a", unit=unit, persistence=1)
            world.put("Q", b"b", unit=unit, persistence=1)
            world.did(Commit(unit=unit))
            assert world.queue_depth("Q") == 2 * unit
        (units,) = world.store.leftovers.available.values()
        assert len(units) == MOST_UNITS
        assert len(self.all_of(world)) == 2 * (MOST_UNITS + 2)
