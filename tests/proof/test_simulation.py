"""The daemon without its sockets, in virtual time, on a network and a disk that fail."""

import hashlib
import json

import pytest

from tests.proof.amounts import NORMAL, SLOW
from tests.proof.simulation import Simulation, simulate

SLICES = 8


def test_20_seeds_show_no_violation(tmp_path):
    found = simulate(tmp_path, NORMAL.seeds)
    assert not found.violations, found.violations[:20]
    assert found.count > 10_000
    came = set(found.more)
    assert {"kill", "power", "stop", "link cut", "wall clock jumped", "disk filled"} <= came
    assert {"frame lost", "frame repeated", "frame swapped", "frame cut"} <= came


@pytest.mark.slow
@pytest.mark.parametrize("part", range(SLICES))
def test_many_seeds_show_no_violation(tmp_path, part):
    found = simulate(tmp_path, SLOW.seeds[part::SLICES])
    assert not found.violations, found.violations[:20]
    assert found.count > 50_000


def test_a_seed_plays_the_same_again(tmp_path):
    played = []
    for _ in range(2):
        simulation = Simulation(tmp_path, 1)
        simulation.run()
        played.append(hashlib.sha256(json.dumps(simulation.events).encode()).hexdigest())
    assert played[0] == played[1]
