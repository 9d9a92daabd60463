"""Units of work against a real daemon: counts that survive kill -9, several connections, and long units."""

import time
from contextlib import suppress

import pytest

import trigmon
from tests.daemons import define
from trigmon.mq.calls import Display
from trigmon.mq.enums import UnitOutcome

MARKED = {"syncpoint": True, "mark_skip_backout": True}


@pytest.fixture
def one(daemon):
    started = daemon()
    with started.connect() as qm:
        define(qm, "Q", def_persistence="persistent")
    return started


def kill_behind(one, qm):
    """The daemon dies in the back of a connection, and starts again."""
    one.kill()
    qm.drop()
    one.start()


def left(qm):
    with qm.open("Q", "browse") as queue:
        return [(message.text, message.backout_count) for message in queue.browse()]


def test_the_count_after_each_kill_is_one_more(one):
    with one.connect() as qm:
        qm.put("Q", "first")
        qm.put("Q", "second")
    for count in range(4):
        qm = one.connect()
        message = qm.open("Q", "input_shared").get(syncpoint=True)
        assert (message.text, message.backout_count) == ("first", count)
        kill_behind(one, qm)
        with one.connect() as other:
            assert other.outcome(1, qm.client_id) is UnitOutcome.BACKED_OUT
            assert left(other) == [("first", count + 1), ("second", 0)]


def test_backouts_and_kills_count_together(one):
    with one.connect() as qm:
        qm.put("Q", "m")
    for count in (0, 2):
        qm = one.connect()
        queue = qm.open("Q", "input_shared")
        assert queue.get(syncpoint=True).backout_count == count
        qm.backout()
        assert queue.get(syncpoint=True).backout_count == count + 1
        kill_behind(one, qm)
    with one.connect() as qm:
        assert left(qm) == [("m", 4)]


def test_what_was_only_browsed_and_what_was_backed_out_before_the_kill_counts_no_more(one):
    with one.connect() as qm:
        qm.put("Q", "m")
    qm = one.connect()
    queue = qm.open("Q", "input_shared", "browse")
    queue.get(syncpoint=True)
    qm.backout()
    queue.get(browse_first=True, lock=True)
    kill_behind(one, qm)
    with one.connect() as qm:
        assert left(qm) == [("m", 1)]


def test_a_marked_message_is_counted_once_by_a_kill_on_either_side_of_its_backout(one):
    with one.connect() as qm:
        qm.put("Q", "m")
    qm = one.connect()
    qm.open("Q", "input_shared").get(**MARKED)
    kill_behind(one, qm)
    qm = one.connect()
    assert qm.open("Q", "input_shared").get(**MARKED).backout_count == 1
    qm.backout()
    kill_behind(one, qm)
    with one.connect() as other:
        assert [other.outcome(unit, qm.client_id) for unit in (1, 2)] == [UnitOutcome.BACKED_OUT] * 2
        assert left(other) == [("m", 2)]


def test_a_marked_message_that_was_committed_stays_gone_behind_a_kill(one):
    with one.connect() as qm:
        qm.put("Q", "m")
    qm = one.connect()
    qm.open("Q", "input_shared").get(**MARKED)
    qm.backout()
    qm.commit()
    kill_behind(one, qm)
    with one.connect() as other:
        assert other.outcome(2, qm.client_id) is UnitOutcome.COMMITTED
        assert left(other) == []


def test_a_long_unit_holds_up_nobody(one):
    with one.connect() as thinker, one.connect() as worker:
        thinker.put("Q", "thought of", syncpoint=True)
        worker.put("Q", "got")
        mine = thinker.open("Q", "input_shared")
        assert mine.get(syncpoint=True).text == "thought of"
        assert mine.get(syncpoint=True).text == "got"
        began = time.monotonic()
        with worker.open("Q", "input_shared", "output") as queue:
            for number in range(200):
                queue.put(f"{number}", syncpoint=True)
                assert queue.get(syncpoint=True).text == f"{number}"
                worker.commit() if number % 2 else worker.backout()
        define(worker, "ANOTHER")
        worker.put("ANOTHER", "m")
        (row,) = worker.call(Display(object_type="QLOCAL", name="Q")).rows
        assert (row["current_q_depth"], row["uncommitted_msgs"]) == (0, 3)
        assert time.monotonic() - began < 20
        thinker.backout()
        assert left(worker) == [("got", 1)]


def test_each_of_many_connections_has_its_own_unit(one):
    connections = [one.connect() for _ in range(8)]
    with one.connect() as onlooker:
        for number, qm in enumerate(connections):
            qm.put("Q", f"{number}", syncpoint=True)
            qm.put("Q", f"{number} too", syncpoint=True)
        assert left(onlooker) == []
        for number, qm in enumerate(connections):
            queue = qm.open("Q", "input_shared")
            if number % 2:
                # Its own puts are the only ones it sees, besides what those before it have committed.
                texts = []
                with suppress(trigmon.NoMsgAvailable):
                    while True:  # what was backed out before comes in smaller batches
                        texts += [message.text for message in queue.get_many(99, syncpoint=True)]
                assert texts[-2:] == [f"{number}", f"{number} too"]
                qm.backout()
            else:
                qm.commit()
        texts = [text for text, _ in left(onlooker)]
        assert texts == [text for number in range(0, 8, 2) for text in (f"{number}", f"{number} too")]
        assert [count for _, count in left(onlooker)] == [4, 4, 3, 3, 2, 2, 1, 1]
    for qm in connections:
        qm.disconnect()


def test_a_get_outside_syncpoint_does_not_see_its_own_units_puts(one):
    with one.connect() as qm, qm.open("Q", "input_shared") as queue:
        qm.put("Q", "m", syncpoint=True)
        with pytest.raises(trigmon.NoMsgAvailable):
            queue.get()
        assert queue.get(syncpoint=True).text == "m"
        qm.backout()
        assert left(qm) == []
