"""Warm runs on a real Spark Connect server: how they start, what is left of them, and what becomes of the server."""

from __future__ import annotations

import time

import pytest

from tests.monitor.warm_house import RUN_S, WarmHouse
from tests.waiting import until

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    from tests.daemons import queue_managers

    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        made = WarmHouse(make, tmp_path_factory.mktemp("warm"), **{"connect.runs": 2, "monitor.grace_s": 2})
        yield made
        made.end()


def test_a_run_that_comes_before_its_server_is_warm_waits_says_so_and_runs(house):
    queue = house.job()
    began = time.monotonic()
    house.qm.put(queue, b"go")
    (held,) = until(lambda: [run for run in house.runs() if run["why"]], 60)
    assert (held["state"], held["why"]) == ("due", "its Spark Connect server is not warm yet")
    server = house.wait_until_warm()
    print("warm after", time.monotonic() - began)
    (run,) = house.wait_for_runs(state="exited", timeout_s=RUN_S)
    assert run["exit_status"] == 0, run["stderr_tail"]
    line = house.wait_for_line(run["run_id"], "rows")
    assert (line["rows"], line["tags"]) == (10, [run["run_id"]])
    assert "missed" not in house.daemon.log.read_text()
    until(lambda: not list(house.shelf.all_sessions()), 30)
    until(lambda: house.sessions(server) == 0)
