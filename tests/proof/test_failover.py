"""The database of a group fails over to its synchronous standby under load: nothing that was acknowledged is lost."""

import pytest

from tests.postgres import Pair
from tests.proof import chaos
from tests.proof.chaos import OF_A_PAIR, strike


@pytest.fixture
def pair(request):
    one = Pair(careful=request.param)
    yield one
    one.end()


@pytest.mark.parametrize("pair", [True], indirect=True)
def test_nothing_is_lost_or_doubled_where_the_standby_takes_over(daemon, pair):
    found = strike(daemon, pair, 1, seed=2060, kinds=("fail over",))
    print(f"seed 2060: {found}")
    assert not found.violations, found.violations[:20]
    assert found.more["units of work"] > chaos.ENOUGH, "too little was going on to prove much"


@pytest.mark.slow
@pytest.mark.parametrize("pair", [True], indirect=True)
@pytest.mark.parametrize("part", range(1, 4))
def test_however_often(daemon, pair, part):
    found = strike(daemon, pair, 20, seed=2060 + part, kinds=tuple(OF_A_PAIR))
    print(f"seed {2060 + part}: {found}")
    assert not found.violations, found.violations[:20]
    assert found.more["units of work"] > 20 * chaos.ENOUGH, "too little was going on to prove much"


@pytest.mark.slow
@pytest.mark.parametrize("pair", [False], indirect=True)
def test_a_standby_that_nobody_waits_for_is_caught(daemon, pair, monkeypatch):
    monkeypatch.setattr(chaos, "LOAD_S", (1.0, 1.0))
    found = strike(daemon, pair, 2, seed=2070, kinds=("fail over late",))
    print(found, *found.violations[:20], sep="\n")
    assert "lost" in {problem.split(": ")[1] for problem in found.violations}
