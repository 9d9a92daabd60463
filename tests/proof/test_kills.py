"""The real daemon is killed under load: what was acknowledged is there once, and every unit has its outcome."""

import pytest

from tests.postgres import Server
from tests.proof.amounts import NORMAL, SLOW
from tests.proof.kills import kill_again_and_again

SLICES = 4


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, SLICES + 1))])
@pytest.mark.timeout(600)
def test_kills_under_load_lose_and_double_nothing(daemon, part):
    kills = SLOW.kills // SLICES if part else NORMAL.kills
    found = kill_again_and_again(daemon(), kills, seed=2026 + part)
    assert not found.violations, found.violations[:20]
    assert found.more["units of work"] > 20 * kills, "too little was going on to prove much"
    assert found.more["asked after"] >= kills / 2, "the kills met too few units of work"


@pytest.mark.parametrize("kills", [NORMAL.kills // 4, pytest.param(SLOW.kills // SLICES, marks=pytest.mark.slow)])
@pytest.mark.timeout(900)
def test_nor_do_they_on_postgresql_where_the_next_takes_over(daemon, kills):
    server = Server()
    try:
        said = {"store.postgres": server.dsn, "store.accept_loss": "true"}
        found = kill_again_and_again(daemon(settings=said), kills, seed=2026)
    finally:
        server.end()
    assert not found.violations, found.violations[:20]
    assert found.more["units of work"] > 10 * kills, "too little was going on to prove much"
