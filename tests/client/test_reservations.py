"""Reservations over a real link: reserved by one connection, read by others, surviving both and the daemon."""

from __future__ import annotations

import pytest

import trigmon
from tests.daemons import define

BODIES = [b"%d" % number for number in range(700)]


@pytest.fixture
def full(qm, q_name):
    qm.put_many(q_name, BODIES, persistence="persistent")
    return q_name


def test_a_batch_is_read_by_others_in_parts_and_again_and_settled(shared_daemon, full):
    with shared_daemon.connect(application="driver") as driver, driver.open(full, "input_shared") as q:
        batch = q.reserve("JOB", token="0")
        assert (batch.count, batch.left_ordinals, batch.again) == (700, [(0, 700)], False)
        with shared_daemon.connect(application="executor") as executor:
            for _ in range(2):
                read = list(executor.read_reserved(batch.number, 300, 350))
                assert [(at, message.data) for at, message in read] == list(enumerate(BODIES))[300:650]
        with pytest.raises(trigmon.NoMsgAvailable):
            q.get()
        assert (batch.settle(0, 600), batch.left) == (True, 100)
        assert [message.data for _, message in batch.read()] == BODIES[600:]
        assert batch.settle()
        assert not driver.settle(batch.number)


def test_a_driver_that_dies_leaves_it_to_the_next_of_its_name(shared_daemon, full):
    first = shared_daemon.connect(application="driver")
    batch = first.open(full, "input_shared").reserve("JOB", max_messages=10, token="41")
    with shared_daemon.connect(application="other") as other, other.open(full, "input_shared") as q:
        with pytest.raises(trigmon.ObjectInUse, match="held by another connection of driver"):
            q.reserve("JOB")
        first.drop()
        again = _until_free(q)
        assert (again.number, again.token, again.again, again.offers) == (batch.number, "41", True, 1)
        assert {message.backout_count for _, message in again.read()} == {1}
        assert (again.release(0, 9, counts=False), again.left) == (True, 1)
        assert again.release()
        assert [q.get().backout_count for _ in range(11)] == [0] * 9 + [2, 0]


def _until_free(q):
    for _ in range(1000):
        try:
            return q.reserve("JOB", max_messages=1)
        except trigmon.ObjectInUse:
            continue
    raise AssertionError("the death of the driver was not noticed")


def test_it_survives_a_killed_daemon(daemon):
    fresh_daemon = daemon()
    with fresh_daemon.connect() as qm:
        define(qm, "Q", def_persistence="persistent")
        qm.put_many("Q", BODIES[:300])
    driver = fresh_daemon.connect(application="driver")
    batch = driver.open("Q", "input_shared").reserve("JOB", max_messages=290)
    fresh_daemon.kill()
    driver.drop()
    fresh_daemon.start()
    with fresh_daemon.connect() as qm, qm.open("Q", "input_shared") as q:
        again = q.reserve("JOB")
        assert (again.number, again.count, again.offers) == (batch.number, 290, 1)
        assert [message.data for _, message in again.read()] == BODIES[:290]
        assert qm.reservations()[0]["consumer"] == "JOB"
        assert qm.settle(again.number)
        assert q.get_many(100)[0].data == BODIES[290]


def test_what_is_no_number_is_refused_before_it_is_sent(qm, q_name):
    with qm.open(q_name, "input_shared") as q, pytest.raises((trigmon.MQError, TypeError)):
        q.reserve("JOB", max_messages="many")
