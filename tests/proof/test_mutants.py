"""A broken promise is found: each mutant is planted, and the proof that must catch it does, by the right rule."""

import pytest

from tests.proof.errors import fail_everywhere
from tests.proof.mutants import MUTANTS
from tests.proof.power_cuts import cut_power
from tests.proof.simulation import simulate

PROOFS = {
    "power cuts": lambda directory: (cut_power(directory, run, 50) for run in range(8)),
    # What only a batch breaks, and only between two syncs, is met more seldom.
    "more power cuts": lambda directory: (cut_power(directory, run, 60) for run in range(6, 30)),
    "errors": lambda directory: [fail_everywhere(directory, 1, stride=11)],
    "simulation": lambda directory: (simulate(directory, [seed]) for seed in range(20)),
    "simulation of a disk that breaks": lambda directory: (simulate(directory, [s], ["break"]) for s in range(40)),
}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_it_is_caught(mutant, tmp_path, monkeypatch):
    mutant.plant(monkeypatch)
    for found in PROOFS[mutant.caught_by](tmp_path):
        if any(f": {mutant.rule}" in violation for violation in found.violations):
            return
    pytest.fail(f"nothing of {mutant.rule!r} was said")
