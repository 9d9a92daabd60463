"""From a queue of MQ into a Spark table while everything on the way is killed: each message is there once."""

from __future__ import annotations

import random
import subprocess
import time

import pytest

from tests.bridge.conftest import NEEDS_IBMMQ
from tests.bridge.two_queue_managers import both, depth
from tests.daemons import define
from tests.spark.killing import COMES_S, DRIVER, MONITOR, Q_MGR, Q, SparkMachine, moment
from tests.waiting import until
from trigmon.bridge.copy_here import record_queue

pytestmark = [NEEDS_IBMMQ, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(3000)]
COPY, THERE = "copy", "queue manager there"
VICTIMS = (COPY, THERE, Q_MGR, MONITOR, DRIVER)
BATCHES_A_KILL = 20
"""The job goes on for some batches behind the first of them, which is when it or what it needs is killed."""


two = pytest.fixture(both)


@pytest.fixture
def machine(two, tmp_path, count, rounds):
    made = SparkMachine(two.here, tmp_path, "local[2]", count, rounds * len(VICTIMS) * BATCHES_A_KILL)
    yield made
    made.clean_up()


@pytest.mark.parametrize(("count", "rounds"), [(5_000, 1), (50_000, 2)])
def test_each_message_is_in_the_table_once_whatever_is_killed_on_its_way(two, machine, count, rounds):
    seed = time.time_ns()
    print(f"\nseed {seed}")
    chance = random.Random(seed)
    with two.there.connect() as qm:
        define(qm, Q, max_q_depth=count)
    kills = rounds * len(VICTIMS)
    each = count // kills
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    copy = two.start(f"{Q}@QM9", **quiet)
    try:
        for kill in range(kills):
            before = machine.batches()
            with two.there.connect() as qm:
                qm.put_many(Q, [b"%d" % n for n in range(kill * each, (kill + 1) * each)], persistence="persistent")
            victim = VICTIMS[kill % len(VICTIMS)]
            if victim in (COPY, THERE):  # it copies
                left = chance.randrange(each // 4, each)
                until(lambda left=left: depth(two.there, Q) <= left, 120)
            else:  # the job has written one of these batches, and writes the next
                until(lambda before=before: machine.batches() > before, COMES_S)
                time.sleep(chance.uniform(0, 0.5))
            there, here, batches = depth(two.there, Q), depth(two.here, Q), machine.batches()
            print(f"{victim} is killed: {there} are left there, {here} here, {batches} batches are in the table")
            if victim == COPY:
                assert copy.poll() is None
                copy.kill()
                copy.wait()
                copy = two.start(f"{Q}@QM9", **quiet)
            elif victim == THERE:
                assert two.there.process.poll() is None
                two.there.kill()
                two.there.start()
            else:
                machine.kill(victim, moment(victim, seed + kill))
        until(lambda: depth(two.there, Q) == 0)
        until(lambda: depth(two.here, record_queue(f"{Q}@QM9")) == 0)
        copy.terminate()
        assert copy.wait(60) == 0
    finally:
        copy.kill()
        copy.wait()
    machine.wait_until_drained()
    print(f"{machine.batches()} batches, runs: {machine.ended()}")
    machine.end()
    machine.judge(count)
