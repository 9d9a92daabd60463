"""Batches of a drain whose jobs die or fail, whose links are lost, whose queue manager starts again; without Spark."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from tests.daemons import define
from tests.spark.no_session import NO_SESSION
from tests.strangers import as_user
from trigmon.mq.calls import Alter
from trigmon.spark import batches

_numbers = itertools.count(1)
JOB = "JOB"
BAD = list(range(13, 300, 50))


@pytest.fixture
def q_name(qm):
    name = f"DEATHS.{next(_numbers)}"
    define(qm, name, def_persistence="persistent", max_q_depth=100_000)
    return name


def fill(qm, q_name, count):
    qm.put_many(q_name, [b"%d" % number for number in range(count)])


def drained(address):
    with batches(NO_SESSION, "Q", qmgr=address, consumer=JOB, max_rows=10) as waiting:
        seen = []
        for batch in waiting:
            with batch:
                seen.append(batch.count)
    return seen


def test_a_drain_has_one_reservation_at_a_time(passable):
    one = passable(settings={"server.socket_mode": "0666", "server.max_reservations_per_user": 1})
    with one.connect(reconnect_s=0) as qm:
        define(qm, "Q", def_persistence="persistent", max_q_depth=100_000)
        fill(qm, "Q", 35)
    assert as_user(5001, lambda: drained(one.address)) == [10, 10, 10, 5]


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_queue_manager_that_starts_again_meanwhile_costs_nothing_of_a_batch(daemon, monkeypatch, how):
    monkeypatch.setenv("TRIGMON_RECONNECT", "300")
    one, seen = daemon(), []
    with one.connect(reconnect_s=0) as qm:
        define(qm, "Q", def_persistence="persistent", max_q_depth=100_000)
        fill(qm, "Q", 50)
    with batches(NO_SESSION, "Q", qmgr=one.address, consumer=JOB, max_rows=10) as waiting:
        for batch in waiting:
            with batch:
                seen.append((batch.count, batch.again))
                if len(seen) == 2:
                    getattr(one, how)()
                    one.start()
        assert (waiting.rows, waiting.rejected) == (50, [])
    assert [count for count, _ in seen] == [10] * 5


class Death(BaseException):
    """The job is killed here."""


def play(daemon, q_name, dice, table):
    """One job, which dies or fails where the dice say so, into a table that takes a batch of one id once."""
    with batches(NO_SESSION, q_name, qmgr=daemon.address, consumer=JOB, max_rows=dice.choice((7, 30))) as waiting:
        for batch in waiting:
            with batch:
                connection = waiting._connection
                if dice.random() < 0.15:
                    connection.drop()
                    raise Death
                bodies = [int(m.data) for _, m in batch._made.read()] if connection.alive else []
                if bad := [body for body in bodies if body in BAD]:
                    raise ValueError(f"cannot read {bad[0]}")
                table.setdefault(batch.id, bodies)
                if dice.random() < 0.1:
                    connection.drop()
                    raise Death


@pytest.mark.parametrize("seed", range(4))
def test_each_message_comes_once_however_jobs_die_and_fail(qm, q_name, shared_daemon, seed):
    dice, table = random.Random(seed), {}
    define(qm, f"{q_name}.ASIDE", def_persistence="persistent")
    aside = {"backout_requeue_q_name": f"{q_name}.ASIDE"}
    qm.call(Alter(object_type="QLOCAL", name=q_name, attributes=aside))
    fill(qm, q_name, 300)
    for _ in range(300):
        try:
            play(shared_daemon, q_name, dice, table)
        except (Death, ValueError):
            continue
        break
    good = [number for number in range(300) if number not in BAD]
    assert sorted(number for bodies in table.values() for number in bodies) == good
    with qm.open(f"{q_name}.ASIDE", "browse") as aside:
        assert sorted(int(re.search(rb"\d+$", message.data)[0]) for message in aside.browse()) == BAD
    assert qm.reservations(q_name) == []
    with qm.open(q_name, "browse") as queue:
        assert list(queue.browse()) == []
