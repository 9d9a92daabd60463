"""``python -m tests.proof`` prints what every proof counted, and fails when a promise was broken."""

import pytest

from tests.proof.__main__ import all_of_it, replay
from tests.proof.amounts import Amounts
from tests.proof.mutants import MUTANTS

LITTLE = Amounts(images=50, stride=200, error_seeds=range(1, 2), kills=1, seeds=range(1), faults=1)


@pytest.mark.parametrize("mutant", [None, next(m for m in MUTANTS if m.name == "the log is not synced")])
def test_the_command_counts_and_fails_when_a_promise_is_broken(tmp_path, capsys, monkeypatch, mutant):
    if mutant is not None:
        mutant.plant(monkeypatch)
    status = all_of_it(tmp_path, LITTLE)
    said = capsys.readouterr().out
    for counted in ("50 images", "positions", "simulated units of work", "1 kills", "1 faults"):
        assert counted in said
    assert status == (1 if mutant else 0)
    assert ("\n0 violations in all" in said) is (mutant is None)


def test_a_seed_is_played_again_with_its_last_events(tmp_path, capsys):
    assert replay(tmp_path, 1) == 0
    assert "seed 1: " in capsys.readouterr().out
