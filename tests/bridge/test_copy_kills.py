"""A copy whose queue managers and whose process are killed: each message comes once."""

from __future__ import annotations

import random
import subprocess
import time

import pytest

from tests.bridge.conftest import NEEDS_IBMMQ
from tests.bridge.two_queue_managers import both, depth, taken
from tests.waiting import until
from trigmon.bridge.copy_here import record_queue

pytestmark = NEEDS_IBMMQ

COUNT, KILLS = 2_000, 6
MANY, MANY_KILLS = 50_000, 60


def copied_under_kills(two, name, count, kills, seed):
    """Copies so many messages while the copy, and both queue managers, are killed in turns; returns what came here."""
    chance = random.Random(seed)
    two.define(name)
    with two.there.connect() as qm, qm.open(name, "output") as queue:
        queue.put_many([b"%d" % number for number in range(count)], persistence="persistent")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    copy = two.start(f"{name}@QM9", **quiet)
    try:
        for kill in range(kills):
            # Each time some more was copied: the copy is under way, wherever in a batch it is.
            wanted = min(count, depth(two.here, name) + chance.randrange(1, max(2, count // kills)))
            until(lambda wanted=wanted: depth(two.here, name) >= wanted)
            victim = (copy, two.here, two.there)[kill % 3]
            victim.kill()
            if victim is copy:
                copy.wait()
                copy = two.start(f"{name}@QM9", **quiet)
            else:
                victim.start()
        until(lambda: depth(two.there, name) == 0)
        until(lambda: depth(two.here, record_queue(f"{name}@QM9")) == 0)
        copy.terminate()
        assert copy.wait(60) == 0
    finally:
        copy.kill()
        copy.wait()
    return [int(message.data) for message in taken(two.here, name)]


two = pytest.fixture(both)


def test_each_message_comes_once_when_both_queue_managers_and_the_copy_are_killed(two):
    found = copied_under_kills(two, "KILLED", COUNT, KILLS, seed=1)
    assert sorted(found) == list(range(COUNT))


@pytest.mark.slow
def test_it_is_so_with_fifty_thousand_messages(two):
    found = copied_under_kills(two, "KILLED", MANY, MANY_KILLS, seed=time.time_ns())
    assert sorted(found) == list(range(MANY))
