"""Keepers that are killed under load, on disks that are full: each trigger's program once, or once for each try."""

from __future__ import annotations

import pytest

from tests.monitor.keeper_kills import Siege


@pytest.mark.parametrize(
    ("seed", "kills", "triggers"),
    [(1, 4, 60), *(pytest.param(seed, 60, 2000, marks=pytest.mark.slow) for seed in (2, 3))],
)
def test_killed_keepers_and_full_disks_cost_no_trigger_its_program_and_give_none_two(
    daemon, tmp_path, record_property, seed, kills, triggers
):
    with Siege(daemon(), tmp_path, seed) as siege:
        siege.play(kills, triggers)
        siege.wait_until_done()
        counts = siege.judge()
    record_property("counts", str(counts))
    print(counts)
