"""Kill -9 of the driver, an executor, the monitor and the queue manager at random moments of a triggered drain."""

from __future__ import annotations

import time

import pytest

from tests.spark.clusters import Cluster
from tests.spark.killing import EXECUTOR, VICTIMS, SparkMachine, moment

pytestmark = [pytest.mark.spark, pytest.mark.timeout(3000)]
FEW, MANY = 2_000, 20_000


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    """A cluster's address, for those who kill executors: a local Spark has none."""
    with Cluster(tmp_path_factory.mktemp("cluster"), workers=1, cores=1, memory="1g") as one:
        yield one.address


@pytest.fixture
def machine(daemon, tmp_path, request, victim, count):
    """Where the job runs on a local Spark, but on the cluster where its executor is to be killed."""
    where = request.getfixturevalue("master") if victim == EXECUTOR else "local[2]"
    made = SparkMachine(daemon(), tmp_path, where, count)
    yield made
    made.clean_up()


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "count"), [(1, FEW), *((seed, MANY) for seed in range(10))])
@pytest.mark.parametrize("victim", VICTIMS)
def test_whichever_process_is_killed_each_message_is_in_the_table_once_and_nothing_is_left(
    machine, victim, seed, count
):
    when = moment(victim, seed)
    print(f"\n{victim}, seed {seed}: {when}")
    began = time.monotonic()
    machine.fill(range(count * 9 // 10))
    machine.come_to(victim, when)
    machine.kill(victim, when)
    killed = time.monotonic()
    machine.fill(range(count * 9 // 10, count))
    machine.wait_until_drained()
    drained = time.monotonic()
    print(f"killed after {killed - began:.1f} s, drained {drained - killed:.1f} s later, runs: {machine.ended()}")
    machine.end()
    machine.judge(count)
