"""What became of a unit of work: as its client was told, also when nothing was done in it, and not for ever."""

from __future__ import annotations

import random

import pytest

from tests.worlds import STORES, World
from trigmon.mq.calls import Backout, Commit, Disconnect, Get, Outcome, Put
from trigmon.mq.enums import GetOption, OpenOption, UnitOutcome
from trigmon.mq.replies import Refused
from trigmon.qmgr.housekeeping import OUTCOMES_KEPT_MS
from trigmon.rules.model.stored_messages import SLICE

COMMITTED, BACKED_OUT, UNKNOWN = UnitOutcome.COMMITTED, UnitOutcome.BACKED_OUT, UnitOutcome.UNKNOWN
IN = OpenOption.INPUT_SHARED
SYNC = GetOption.SYNCPOINT
CRASHES = {"memory": 30, "sqlite": 30, "postgres": 4}


@pytest.fixture(params=STORES)
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    made.define("Q", def_persistence="persistent")
    yield made
    made.end()


def outcome(world: World, unit: int, name: str = "app") -> UnitOutcome:
    return world.did(Outcome(client_id=f"client-{name}", unit=unit), "asker").outcome


def get_nothing(world: World, unit: int, name: str = "app") -> None:
    """A get that finds nothing, as in a poll."""
    world.do(Get(handle=world.open("Q", IN, as_=name), options=SYNC, unit=unit), name)


@pytest.mark.parametrize("how", ["lose", "crash"])
def test_units_in_which_nothing_was_got_are_committed_as_answered(world, how):
    world.put("Q", unit=1)
    world.did(Commit(unit=1))
    for unit in (2, 3, 4):
        get_nothing(world, unit) if unit != 2 else None
        world.did(Commit(unit=unit))
    world.lose("app") if how == "lose" else world.crash()
    assert [outcome(world, unit) for unit in (3, 4, 5)] == [COMMITTED, COMMITTED, BACKED_OUT]


def test_the_only_unit_of_a_client_may_be_one_in_which_nothing_was_done(world):
    get_nothing(world, 1)
    world.did(Commit(unit=1))
    world.crash()
    assert outcome(world, 1) is COMMITTED


def test_a_disconnect_commits_a_unit_in_which_nothing_was_done(world):
    get_nothing(world, 1)
    world.did(Disconnect(unit=1))
    assert outcome(world, 1) is COMMITTED


def test_a_disconnect_that_names_no_unit_leaves_no_outcome(world):
    for unit in (0, -1, 2**62):
        world.did(Disconnect(unit=unit), "another")
    assert outcome(world, 1, "another") is UNKNOWN


def test_a_unit_whose_only_put_was_refused_has_not_put(world):
    refused = Put(q_name="NONE", options=SYNC, unit=1)
    assert isinstance(world.do(refused), Refused)  # its commit was sent behind it, and no answer is ever read
    world.did(Commit(unit=1))
    world.did(Commit(unit=2))
    world.crash()
    assert [outcome(world, unit) for unit in (1, 2)] == [BACKED_OUT, COMMITTED]


def test_a_unit_that_a_kill_cuts_off_behind_empty_ones_is_backed_out(world):
    world.did(Commit(unit=1))
    world.did(Backout(unit=2))
    world.put("Q", unit=3)
    world.crash()
    assert [outcome(world, unit) for unit in (2, 3)] == [BACKED_OUT, BACKED_OUT]


class Script:
    """Clients with units of work, one call after the other, and what each of them was told."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.chance = random.Random(seed)
        self.units: dict[str, int] = {}
        self.told: dict[tuple[str, int], UnitOutcome] = {}
        self.does: set[str] = set()
        self.lives = 0

    def client(self) -> str:
        name = f"{self.lives}-{self.chance.randrange(4)}"
        self.units.setdefault(name, 1)
        return name

    def step(self) -> None:
        name = self.client()
        unit, world = self.units[name], self.world
        match self.chance.choice(("put", "get", "commit", "commit", "backout", "disconnect", "lose")):
            case "put":
                world.put("Q", as_=name, unit=unit)
                self.does.add(name)
            case "get":
                before = world.queue_depth("Q")
                get_nothing(world, unit, name)
                if world.queue_depth("Q") < before:
                    self.does.add(name)
            case "commit":
                world.did(Commit(unit=unit), name)
                self.ended(name, COMMITTED)
            case "backout":
                world.did(Backout(unit=unit), name)
                self.ended(name, BACKED_OUT)
            case "disconnect":
                world.did(Disconnect(unit=unit), name)
                self.ended(name, COMMITTED)
                self.gone(name)
            case "lose":
                world.session(name)
                world.lose(name)
                self.gone(name)

    def ended(self, name: str, outcome: UnitOutcome) -> None:
        self.told[name, self.units[name]] = outcome
        self.units[name] += 1
        self.does.discard(name)

    def gone(self, name: str) -> None:
        """It asks, by another connection."""
        self.check(name)
        del self.units[name]
        self.does.discard(name)
        self.lives += 1

    def check(self, name: str) -> None:
        unit = self.units[name]
        if name in self.does:
            assert outcome(self.world, unit, name) is BACKED_OUT
        for each in (unit - 1, unit - 2):
            if (name, each) in self.told:
                assert outcome(self.world, each, name) is self.told[name, each], (name, each)

    def crash(self) -> None:
        self.world.crash()
        for name in self.units:
            self.check(name)
        self.units.clear()
        self.does.clear()
        self.lives += 1


def test_scripts_with_kills_give_the_outcome_that_was_answered(world):
    script = Script(world, seed=2026)
    for _ in range(CRASHES[world.kind]):
        for _ in range(script.chance.randrange(1, 40)):
            script.step()
        script.crash()
    assert len(script.told) > 20


def recorded(world: World) -> int:
    if world.kind == "memory":
        return len(world.store._outcomes)
    return world.store.rows("SELECT count(DISTINCT client_id) FROM outcome")[0][0]


def gone_clients(world: World, count: int) -> None:
    for number in range(count):
        name = f"gone-{number}"
        world.put("Q", as_=name, unit=1)
        world.did(Disconnect(), name)
        del world.sessions[name]


class TestAge:
    def test_outcomes_of_clients_that_have_long_been_gone_go_while_the_queue_manager_runs(self, world):
        gone_clients(world, SLICE + 10)
        world.put("Q", as_="stays", unit=1)
        world.did(Commit(unit=1), "stays")
        world.clock.advance(OUTCOMES_KEPT_MS + 1)
        world.put("Q", as_="young", unit=1)
        world.disconnect("young")
        counts = []
        for _ in range(4):
            world.qm.housekeeping.forget_outcomes()
            counts.append(recorded(world))
        assert counts[0] >= 10  # a slice at a time, so that nobody waits
        assert counts[-1] == 2
        assert outcome(world, 1, "stays") is COMMITTED
        assert outcome(world, 1, "young") is COMMITTED
        assert outcome(world, 1, "gone-1") is UNKNOWN

    def test_they_stay_as_long_as_documented(self, world):
        gone_clients(world, 3)
        world.clock.advance(OUTCOMES_KEPT_MS - 60_000)
        world.qm.housekeeping.forget_outcomes()
        world.crash()
        assert outcome(world, 1, "gone-1") is COMMITTED
