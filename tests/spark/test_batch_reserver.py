"""A drain reserves its next batch while the present one is written; without Spark, against a real queue manager."""

from __future__ import annotations

import itertools
import random
import re

import pyarrow as pa
import pytest

import trigmon
from tests.daemons import define
from tests.strangers import as_user
from trigmon.mq.calls import Alter, Display
from trigmon.mq.replies import Listing
from trigmon.rules.model.stored_messages import SLICE
from trigmon.spark import batches, options
from trigmon.spark.batch_reserver import NEXT, BatchReserver
from trigmon.spark.reader import QueueStreamReader

_numbers = itertools.count(1)
JOB, OTHER = "JOB", f"JOB{NEXT}"
BAD = list(range(13, 300, 50))


@pytest.fixture
def q_name(qm):
    name = f"AHEAD.{next(_numbers)}"
    define(qm, name, def_persistence="persistent", max_q_depth=100_000)
    return name


@pytest.fixture
def job(shared_daemon, q_name):
    """Makes the reserver of a job of its own: its connection, and the reserver."""
    made = []

    def begin(consumer=JOB, max_bytes=1 << 30, groups=False, **named):
        connection = shared_daemon.connect(application="job", **named)
        made.append(connection)
        queue = connection.open(q_name, "input_shared", "browse")
        return connection, BatchReserver(connection, queue, consumer, max_bytes, groups)

    yield begin
    for connection in made:
        connection.drop()


def fill(qm, q_name, count):
    qm.put_many(q_name, [b"%d" % number for number in range(count)])


def of(made, qm):
    return [int(message.data) for _, message in qm.read_reserved(made.number)]


def open_of(qm, q_name):
    return [(row["consumer"], row["left"]) for row in qm.reservations(q_name)]


def on_queue(qm, q_name):
    with qm.open(q_name, "browse") as queue:
        return [(int(message.data), message.backout_count) for message in queue.browse()]


def depth_of(qm, q_name):
    return qm.ask(Display(object_type="QLOCAL", name=q_name), Listing).rows[0]["current_q_depth"]


def until_there(qm, q_name, *rows):
    for _ in range(10_000):
        if open_of(qm, q_name) == list(rows) and all(row["complete"] for row in qm.reservations(q_name)):
            return
    raise AssertionError(f"{open_of(qm, q_name)}, and not {rows}")


def until_free(qm, q_name):
    for _ in range(10_000):
        if not any(row["held"] for row in qm.reservations(q_name)):
            return
    raise AssertionError("the death of the job was not noticed")


def test_the_next_batch_is_whole_before_the_present_one_is_settled_and_comes_behind_it(qm, q_name, job):
    most = SLICE + 44
    fill(qm, q_name, 2 * most - 50)
    _, reserver = job()
    first = reserver.next(most)
    reserver.reserve_ahead(first, most)
    until_there(qm, q_name, (JOB, most), (OTHER, most - 50))
    first.settle()
    second = reserver.next(most)
    assert (second.number > first.number, second.again, second.token != first.token) == (True, False, True)
    assert of(second, qm) == list(range(most, 2 * most - 50))
    second.settle()
    with pytest.raises(trigmon.NoMsgAvailable):
        reserver.next(most)


@pytest.mark.parametrize("most", [11, 10_000])
def test_nothing_is_reserved_behind_a_batch_that_took_all_there_was(qm, q_name, job, most):
    fill(qm, q_name, 10)
    _, reserver = job()
    first = reserver.next(most)
    reserver.reserve_ahead(first, most)
    qm.put(q_name, b"10")
    first.settle()
    assert open_of(qm, q_name) == []
    assert of(reserver.next(most), qm) == [10]


def test_what_was_reserved_ahead_goes_back_as_if_it_had_not_been(qm, q_name, job):
    fill(qm, q_name, 25)
    _, reserver = job()
    reserver.reserve_ahead(reserver.next(10), 10)
    reserver.give_back()
    assert open_of(qm, q_name) == [(JOB, 10)]
    assert on_queue(qm, q_name) == [(number, 0) for number in range(10, 25)]


def test_a_job_that_died_leaves_its_batch_as_it_was_and_what_lay_ahead_goes_back(qm, q_name, job):
    fill(qm, q_name, 25)
    connection, reserver = job()
    first = reserver.next(10)
    reserver.reserve_ahead(first, 10)
    until_there(qm, q_name, (JOB, 10), (OTHER, 10))
    connection.drop()
    _, later = job()
    again = later.next(10)
    assert (again.number, again.token, again.again, again.offers) == (first.number, first.token, True, 1)
    assert open_of(qm, q_name) == [(JOB, 10)]
    assert on_queue(qm, q_name) == [(number, 0) for number in range(10, 25)]
    again.settle()
    assert of(later.next(10), qm) == list(range(10, 20))


def test_a_batch_by_either_name_comes_to_the_next_job_under_its_own_id(qm, q_name, job):
    fill(qm, q_name, 25)
    connection, reserver = job()
    first = reserver.next(10)
    reserver.reserve_ahead(first, 10)
    first.settle()
    second = reserver.next(10)  # which may have been written when the job dies
    assert open_of(qm, q_name) == [(OTHER, 10)]
    connection.drop()
    again = job()[1].next(10)
    assert (again.number, again.token, again.again) == (second.number, second.token, True)


def test_the_older_of_two_batches_comes_to_the_next_job_at_once_whichever_name_it_has(qm, q_name, job, monkeypatch):
    fill(qm, q_name, 35)
    connection, reserver = job()
    first = reserver.next(10)
    reserver.reserve_ahead(first, 10)
    first.settle()
    second = reserver.next(10)
    reserver.reserve_ahead(second, 10)
    until_there(qm, q_name, (JOB, 10), (OTHER, 10))
    connection.drop()
    until_free(qm, q_name)
    monkeypatch.setattr("trigmon.spark.batch_reserver.IN_USE_S", -1)
    again = job()[1].next(10)
    assert (again.number, again.token, again.offers) == (second.number, second.token, 1)
    assert open_of(qm, q_name) == [(OTHER, 10)]
    assert on_queue(qm, q_name) == [(number, 0) for number in range(20, 35)]


def test_a_second_job_is_refused_whichever_name_the_first_holds(qm, q_name, job, monkeypatch):
    monkeypatch.setattr("trigmon.spark.batch_reserver.IN_USE_S", 0.1)
    fill(qm, q_name, 25)
    _, reserver = job()
    first = reserver.next(10)
    reserver.reserve_ahead(first, 10)
    first.settle()
    reserver.next(10)
    with pytest.raises(trigmon.ObjectInUse):
        job()[1].next(10)
    assert open_of(qm, q_name) == [(OTHER, 10)]


def test_a_name_that_leaves_no_room_for_another_reserves_one_batch_after_the_other(qm, q_name, job):
    fill(qm, q_name, 25)
    _, reserver = job("J" * 256)
    reserver.reserve_ahead(reserver.next(10), 10)
    assert len(open_of(qm, q_name)) == 1


@pytest.mark.parametrize("settles", [True, False])
def test_a_link_that_is_lost_under_a_batch_costs_the_one_ahead_no_backout_count(qm, q_name, job, settles):
    fill(qm, q_name, 25)
    connection, reserver = job(reconnect_s=60)
    first = reserver.next(10)
    reserver.reserve_ahead(first, 10)
    until_there(qm, q_name, (JOB, 10), (OTHER, 10))
    connection._transport.close()
    if settles:
        first.settle()
        second = reserver.next(10)
        assert (second.again, second.offers) == (False, 0)
        read = [(int(message.data), message.backout_count) for _, message in second.read()]
        assert read == [(number, 0) for number in range(10, 20)]
        left, there = 5, second
    else:
        reserver.give_back()
        left, there = 15, first
    assert [row["reservation"] for row in qm.reservations(q_name)] == [there.number]
    assert on_queue(qm, q_name) == [(number, 0) for number in range(25 - left, 25)]


def test_what_another_job_has_taken_over_meanwhile_is_not_given_back(qm, q_name, job):
    fill(qm, q_name, 25)
    connection, reserver = job(reconnect_s=60)
    first = reserver.next(10)
    reserver.reserve_ahead(first, 10)
    until_there(qm, q_name, (JOB, 10), (OTHER, 10))
    connection._transport.close()
    until_free(qm, q_name)
    qm.settle(first.number)
    other, later = job()
    taken = later.next(10)
    assert taken.offers == 1
    other.drop()
    again = reserver.next(10)
    assert (again.number, again.token, again.offers) == (taken.number, taken.token, 2)


def drained(address):
    with batches(None, "Q", qmgr=address, consumer=JOB, max_rows=10) as waiting:
        seen = []
        for batch in waiting:
            with batch:
                seen.append(batch.count)
    return seen


def test_a_drain_that_may_have_no_second_reservation_goes_on_with_one(passable):
    one = passable(settings={"server.socket_mode": "0666", "server.max_reservations_per_user": 1})
    with one.connect(reconnect_s=0) as qm:
        define(qm, "Q", def_persistence="persistent", max_q_depth=100_000)
        fill(qm, "Q", 35)
    seen = as_user(5001, lambda: drained(one.address))
    assert seen == [10, 10, 10, 5]


@pytest.fixture
def stream(shared_daemon, q_name):
    """Makes the reader of a stream, as Spark's process for it has one, and begins it: its first offset."""
    made = []

    def begin(consumer=JOB):
        reader = QueueStreamReader(
            options.read({"queue": q_name, "qmgr": shared_daemon.address, "consumer": consumer}), pa.schema([])
        )
        made.append(reader)
        reader.prepareForTriggerAvailableNow()
        return reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())["reservation"]

    yield begin
    for reader in made:
        reader.stop()


def leave_the_second_name(qm, q_name, job):
    """Lets a job die over its second batch of 10 messages, the one by its second name."""
    connection, reserver = job()
    first = reserver.next(10)
    reserver.reserve_ahead(first, 10)
    first.settle()
    second = reserver.next(10)
    connection.drop()
    assert open_of(qm, q_name) == [(OTHER, 10)]
    return second.number


def test_a_stream_first_gives_back_what_a_killed_drain_left_under_the_second_name(qm, q_name, job, stream):
    fill(qm, q_name, 25)
    leave_the_second_name(qm, q_name, job)
    number = stream()
    assert open_of(qm, q_name) == [(JOB, 15)]
    read = [(int(message.data), message.backout_count) for _, message in qm.read_reserved(number)]
    assert read == [(body, 0) for body in range(10, 25)]


def test_a_stream_is_refused_while_a_drain_holds_the_second_name_and_leaves_it_alone(
    qm, q_name, job, stream, monkeypatch
):
    monkeypatch.setattr("trigmon.spark.batch_reserver.IN_USE_S", 0.1)
    fill(qm, q_name, 25)
    _, reserver = job()
    first = reserver.next(10)
    reserver.reserve_ahead(first, 10)
    first.settle()
    second = reserver.next(10)
    with pytest.raises(trigmon.ObjectInUse, match=re.escape(f"RESERVATION({second.number}) of {OTHER}")):
        stream()
    assert stream("ANOTHER")
    assert open_of(qm, q_name) == [("ANOTHER", 5), (OTHER, 10)]
    assert second.settle()


def test_a_stream_that_failed_is_looked_for_under_its_own_name_alone(qm, q_name, job, shared_daemon):
    fill(qm, q_name, 25)
    orphan = leave_the_second_name(qm, q_name, job)
    with batches(None, q_name, qmgr=shared_daemon.address, consumer=JOB) as waiting:
        assert waiting.unheld() is None
        with qm.open(q_name, "input_shared") as queue:
            own = queue.reserve(JOB, max_messages=5).number
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("trigmon.spark.queue_batches.IN_USE_S", 0.0)
            assert waiting.unheld() == own > orphan


def test_the_messages_under_both_names_count_again_when_the_job_is_gone_and_one_trigger_says_so(qm, q_name, job):
    define(qm, f"{q_name}.I")
    define(qm, f"{q_name}.P", "PROCESS", appl_id="true")
    fill(qm, q_name, 25)
    triggering = {"trigger_control": "on", "process_name": f"{q_name}.P", "initiation_q_name": f"{q_name}.I"}
    connection, reserver = job()
    qm.call(Alter(object_type="QLOCAL", name=q_name, attributes=triggering))
    reserver.reserve_ahead(reserver.next(10), 10)
    until_there(qm, q_name, (JOB, 10), (OTHER, 10))
    assert depth_of(qm, q_name) == 5
    with qm.open(f"{q_name}.I", "input_shared") as initiation:
        connection.drop()
        initiation.get(wait_interval_ms=20_000)
        assert depth_of(qm, q_name) == 25
        assert [row["held"] for row in qm.reservations(q_name)] == [False, False]
        with pytest.raises(trigmon.NoMsgAvailable):
            initiation.get()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_queue_manager_that_starts_again_meanwhile_costs_nothing_of_either_batch(daemon, monkeypatch, how):
    monkeypatch.setenv("TRIGMON_RECONNECT", "300")
    one, seen = daemon(), []
    with one.connect(reconnect_s=0) as qm:
        define(qm, "Q", def_persistence="persistent", max_q_depth=100_000)
        fill(qm, "Q", 50)
    with batches(None, "Q", qmgr=one.address, consumer=JOB, max_rows=10) as waiting:
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
    with batches(None, q_name, qmgr=daemon.address, consumer=JOB, max_rows=dice.choice((7, 30))) as waiting:
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
def test_each_message_comes_once_however_jobs_die_and_fail_over_two_reservations(qm, q_name, shared_daemon, seed):
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
    assert open_of(qm, q_name) == []
    assert on_queue(qm, q_name) == []
