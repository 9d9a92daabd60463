"""200 warm runs with random cancels, kills of runs, of the Spark Connect server and of the monitor."""

from __future__ import annotations

import pytest

from tests.daemons import queue_managers
from tests.monitor.warm_chaos import Chaos
from tests.monitor.warm_machine import ENDLESS, WarmMachine

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(7200)]

RUNS, SEED = 200, 7


def test_whatever_is_killed_every_run_ends_known_and_neither_query_nor_session_nor_memory_is_left(tmp_path_factory):
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        settings = {"connect.runs": 3, "monitor.grace_s": 2, "connect.deadline_s": 120}
        machine = WarmMachine(make, tmp_path_factory.mktemp("warm"), **settings)
        jobs = [machine.job(name=f"job{number}") for number in range(8)]
        endless = [machine.job(ENDLESS, f"endless{number}") for number in range(8)]
        try:
            machine.wait_until_there()
            chaos = Chaos(machine, RUNS, SEED, jobs=jobs, endless=endless, server_kills=3, monitor_kills=5)
            chaos.go(timeout_s=6000)
            chaos.check(most_rss=4 << 30)
        finally:
            machine.end()
