"""Queue manager and monitor are restarted under load: nothing is lost or doubled, and no run fails."""

import pytest

from tests.proof.rolling_restarts import ENOUGH, restart_again_and_again


@pytest.mark.parametrize("restarts", [4, pytest.param(50, marks=pytest.mark.slow)])
def test_restarts_under_load_lose_and_double_nothing_and_fail_no_run(daemon, restarts):
    found = restart_again_and_again(daemon(), restarts, seed=18)
    assert not found.violations, found.violations[:10]
    assert found.more["messages"] > ENOUGH * restarts
