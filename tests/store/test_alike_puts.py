"""What a SQLite store does for the puts of one PutMany at once is what it does for each of them."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.store.test_replay import content
from tests.worlds import World
from trigmon.mq.calls import Backout, Commit, Get, PutMany
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import GetOption, MatchOption, OpenOption, PutOption
from trigmon.mq.replies import Refused
from trigmon.rules.messages import put_many
from trigmon.rules.model.alike_puts import WithAlikePuts
from trigmon.rules.model.changes import AddMessage
from trigmon.store.sql import read_ahead
from trigmon.store.sql.leftovers import Leftovers
from trigmon.store.sqlite import unit_puts, young_messages

IN, OUT = OpenOption.INPUT_SHARED, OpenOption.OUTPUT
SYNC, WAIT = GetOption.SYNCPOINT.value, GetOption.WAIT.value
QUEUES = ("Q", "P")


class Stage:
    """A queue manager on which a random script is played."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.dice = random.Random(seed)
        self.world = world = World("sqlite", directory)
        for name in QUEUES:
            world.define(name, max_q_depth=self.dice.choice([20, 999]), def_persistence="persistent")
        self.units = dict.fromkeys(("one", "two"), 1)
        self._open()

    def _open(self) -> None:
        where = [(app, name) for app in self.units for name in QUEUES]
        self.out = {(app, name): self.world.open(name, OUT, as_=app) for app, name in where}
        self.into = {(app, name): self.world.open(name, IN, as_=app) for app, name in where}
        self.waiting = [self.world.open("Q", IN, as_=f"waiting {number}") for number in range(2)]

    def play(self, steps: int) -> list[object]:
        """Returns each reply, and what the store and the queue manager have behind each step."""
        seen: list[object] = []
        for _ in range(steps):
            app = self.dice.choice(list(self.units))
            kind = self.dice.choice(["put"] * 6 + ["get"] * 3 + ["end", "end", "wait", "look", "crash"])
            seen += [kind, getattr(self, f"_{kind}")(app), *self._state()]
        self.world.store.prepare()
        self.world.store.turns.young.write_all()
        return [*seen, content(self.world.store)]

    def _state(self) -> list[object]:
        store, qm = self.world.store, self.world.qm
        standing, young = store.standing, store.turns.young
        activity = {name: qm._activity.of(name, 0) for name in QUEUES}
        ended = [(answer.session.identity.client_id, answer.reply) for answer in self.world.ended_waits]
        ahead = [store.ahead._windows.keys(), store.ahead._units, store.ahead._noted]
        units = [replace(unit, places={}) for unit in standing.units.values()]
        assert young._size == sum(len(put.data) for put in young._puts.values())
        assert store.unit_puts._size == sum(len(put.data) for of in store.unit_puts.by_unit.values() for put in of)
        return [str(each) for each in (standing.queues, units, activity, ended, ahead, qm._notes._coming)]

    def _put(self, app: str) -> object:
        dice, in_unit = self.dice, self.dice.random() < 0.6
        descriptor = MessageDescriptor(
            priority=dice.choice([-1, -1, 3]),
            persistence=dice.choice([2, 2, 0]),
            expiry=dice.choice([-1, -1, 600]),
            msg_id=dice.choice([bytes(24)] * 4 + [b"m" * 24]),
            correl_id=dice.choice([bytes(24), b"c" * 24]),
        )
        options = dice.choice([0, 0, 0, PutOption.NEW_CORREL_ID.value]) | PutOption.SYNCPOINT.value * in_unit
        bodies = [dice.randbytes(dice.randint(0, 30)) for _ in range(dice.choice([1, 2, 5, 40]))]
        handle = self.out[app, dice.choice(QUEUES)]
        unit = self.units[app] * in_unit
        return self.world.do(
            PutMany(handle=handle, bodies=bodies, descriptor=descriptor, options=options, unit=unit), app
        )

    def _get(self, app: str) -> object:
        in_unit = self.dice.random() < 0.5
        name = self.dice.choice(QUEUES)
        return [
            self.world.do(Get(handle=self.into[app, name], options=SYNC * in_unit, unit=self.units[app] * in_unit), app)
            for _ in range(self.dice.choice([1, 8]))
        ]

    def _end(self, app: str) -> object:
        unit, self.units[app] = self.units[app], self.units[app] + 1
        return self.world.do(self.dice.choice([Commit, Commit, Backout])(unit=unit), app)

    def _wait(self, app: str) -> object:
        number = self.dice.randrange(2)
        session = self.world.session(f"waiting {number}")
        if session.parked is not None:
            return None
        match = self.dice.choice([0, MatchOption.CORREL_ID.value])
        call = Get(handle=self.waiting[number], options=WAIT, wait_interval_ms=-1, match=match, correl_id=b"c" * 24)
        return self.world.do(call, f"waiting {number}")

    def _look(self, app: str) -> object:
        match = MatchOption.CORREL_ID.value
        return self.world.do(Get(handle=self.into[app, "P"], match=match, correl_id=b"c" * 24), app)

    def _crash(self, app: str) -> None:
        if self.dice.random() < 0.2:
            self.world.crash()
            self.units = dict.fromkeys(self.units, 1)
            self._open()


def played(seed: int, *, at_once: bool) -> list[object]:
    with pytest.MonkeyPatch.context() as patched, tempfile.TemporaryDirectory() as directory:
        patched.setattr(young_messages, "MOST", (1000, 60, 7)[seed % 3])
        patched.setattr(young_messages, "MOST_BYTES", (8 << 20, 300)[seed % 2])
        patched.setattr(unit_puts, "MOST_BYTES", (8 << 20, 500, 8 << 20)[seed % 3])
        patched.setattr(read_ahead, "MOST_OF_A_UNIT", (32, 3)[seed % 2])
        patched.setattr(Leftovers, "at_once", (1000, 30)[seed % 2])
        if not at_once:
            patched.setattr(put_many, "WithAlikePuts", lambda before, puts: [*before, *puts])
        stage = Stage(Path(directory), seed)
        try:
            return stage.play(40)
        finally:
            stage.world.end()


@pytest.mark.parametrize("seed", range(12))
def test_a_random_script_leaves_the_same_with_and_without_it(seed):
    assert played(seed, at_once=True) == played(seed, at_once=False)


def test_those_scripts_put_many_at_once_and_meet_refusals_and_waits_that_end(monkeypatch):
    sizes = []
    right = WithAlikePuts.__init__
    monkeypatch.setattr(
        WithAlikePuts, "__init__", lambda self, before, puts: sizes.append(len(puts)) or right(self, before, puts)
    )
    seen = [each for seed in range(12) for each in played(seed, at_once=True)]
    assert {1, 2, 5, 40} == set(sizes)
    assert {2053} <= {each.reason for each in seen if isinstance(each, Refused)}
    assert any("waiting 1" in each and "WasGot" in each for each in seen if isinstance(each, str))


def test_what_is_known_to_be_alike_is_the_end_of_the_changes(tmp_path):
    puts = [AddMessage("Q", number, 0, True, MessageDescriptor(), b"") for number in (1, 2)]
    for count in range(2):
        changes = WithAlikePuts(puts[:count], puts[count:])
        assert (changes.before, changes.puts, changes) == (puts[:count], puts[count:], puts)
