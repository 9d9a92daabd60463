"""Killed at any step, a monitor starts one run for each trigger message from elsewhere, and loses none."""

from __future__ import annotations

import pytest

from tests.bridge.bench import INITQ
from tests.monitor.test_kills import until_dead_or

# Behind the start of a monitor: gets, looks, the record, the start, the commit, and the answers to each of them. Three
# trigger messages take about 40.
STEPS = 60


def dies_at(one, road, point, messages):
    """So many trigger messages under a monitor that dies at this message of its connections, if it comes to that."""
    road.proxy.arm(None)
    road.proxy.victim = one.monitored(home=road.home, address=road.address)
    road.proxy.arm(point)
    for _ in range(messages):
        one.far.put("Q", b"")
    died = until_dead_or(lambda: one.depth(INITQ) == 0 and not one.runs(state="due"), road.proxy)
    if not died:
        road.proxy.arm(None)
        road.proxy.victim.kill()
        road.proxy.victim.wait()


@pytest.mark.parametrize(
    ("points", "each"),
    [
        (range(3, STEPS, 8), 12),
        pytest.param(range(1, 101), 10, marks=[pytest.mark.slow, pytest.mark.timeout(3600)]),
    ],
    ids=["some", "each"],
)
def test_a_monitor_killed_at_its_steps_starts_one_run_a_message_and_loses_none(bench, road, points, each):
    # Few at a time, so that the steps behind the gets come soon, whatever came back from those that died before.
    one = bench(batch=3)
    one.process(instances=8)
    one.queue()
    way = road(one)
    # Somebody has the initiation queue open, so that trigger events happen whether a monitor runs or not.
    one.readers = 1
    with one.far.open(INITQ, "input_shared"):
        for point in points:
            dies_at(one, way, point, each)
        way.proxy.arm(None)
        monitor = one.monitor()
        one.judge(len(points) * each)
    one.stop(monitor)
