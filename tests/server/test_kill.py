"""The daemon is killed in the middle of a load, again and again, and nothing acknowledged is lost or doubled."""

import random
import subprocess
import sys
import time

import pytest

from tests.daemons import define
from tests.server import history
from tests.server.load import QUEUE

PRODUCERS = 3
CONSUMERS = 3
LOAD_S = (0.3, 0.8)


def start_client(daemon, role, number):
    who = f"{role}{number}"
    argv = [sys.executable, "-m", "tests.server.load", role, daemon.address, daemon.home / f"{who}.ledger", who]
    return subprocess.Popen(argv, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=daemon.env, text=True)


@pytest.mark.parametrize("kills", [10, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(600)])])
def test_kills_under_load_lose_and_double_nothing(daemon, kills):
    one = daemon()
    with one.connect() as qm:
        define(qm, QUEUE, def_persistence="persistent", max_q_depth=1_000_000)
    clients = [start_client(one, "put", number) for number in range(PRODUCERS)]
    clients += [start_client(one, "get", number) for number in range(CONSUMERS)]
    moments = random.Random(2026)
    time.sleep(1)  # the clients' own start
    for _ in range(kills):
        time.sleep(moments.uniform(*LOAD_S))
        one.kill()
        one.start()
    time.sleep(LOAD_S[1])
    for client in clients:
        _, said = client.communicate(timeout=60)
        assert client.returncode == 0, said
    with one.connect() as qm, qm.open(QUEUE, "input_exclusive") as q:
        left = [message.text for message in q.drain()]

    events = history.read(sorted(one.home.glob("*.ledger")))
    assert history.problems(events, left) == []
    ends = [event for event in events if event["event"] in ("put-end", "get-end")]
    assert sum(event["outcome"] == history.COMMITTED for event in ends) > 500, "too little was going on to prove much"
    assert sum(event["asked"] for event in ends) >= kills, "the kills met too few units of work"
