"""The real daemon is killed under load: what was acknowledged is there once, and every unit has its outcome."""

import pytest

from tests.proof.amounts import NORMAL, SLOW
from tests.proof.kills import ENOUGH, WithItsDatabase, kill_again_and_again

SLICES = 4


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, SLICES + 1))])
def test_kills_under_load_lose_and_double_nothing(daemon, part):
    kills = SLOW.kills // SLICES if part else NORMAL.kills
    found = kill_again_and_again(daemon(), kills, seed=2026 + part)
    assert not found.violations, found.violations[:20]
    assert found.more["units of work"] > ENOUGH * kills, "too little was going on to prove much"
    assert found.more["asked after"] >= kills / 2, "the kills met too few units of work"


SLOW_KILLS = pytest.param(SLOW.kills // SLICES, marks=pytest.mark.slow)


@pytest.mark.parametrize("kills", [NORMAL.kills // 4, SLOW_KILLS])
def test_nor_do_they_on_postgresql_where_the_next_takes_over(daemon, server, kills):
    found = kill_again_and_again(daemon(settings=on(server)), kills, seed=2026)
    assert not found.violations, found.violations[:20]
    assert found.more["units of work"] > ENOUGH * kills, "too little was going on to prove much"


@pytest.mark.parametrize("kills", [2, SLOW_KILLS])
def test_nor_does_a_postgresql_that_crashes(daemon, server, kills):
    it = WithItsDatabase(daemon(settings=on(server)), server)
    found = kill_again_and_again(it, kills, seed=2027, how="power")
    assert not found.violations, found.violations[:20]
    assert found.more["units of work"] > ENOUGH * kills, "too little was going on to prove much"


def on(server):
    return {"store.postgres": server.dsn, "store.accept_loss": "true"}
