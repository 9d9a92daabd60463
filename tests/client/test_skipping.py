"""Marks, locks and gets under syncpoint if persistent, in the hands of an application."""

import pytest

import trigmon
from trigmon.mq.calls import Get
from trigmon.mq.enums import GetOption, UnitOutcome
from trigmon.mq.reasons import Reason

MARKED = {"syncpoint": True, "mark_skip_backout": True}


def left(qm, q_name):
    """What is on the queue, with its backout counts, put there again by nobody."""
    with qm.open(q_name, "browse") as queue:
        return [(message.text, message.backout_count) for message in queue.browse()]


def test_a_marked_message_goes_with_the_commit_behind_the_backout(qm, queue):
    queue.put("poison")
    queue.put("other")
    assert queue.get(**MARKED).text == "poison"
    assert queue.get(syncpoint=True).text == "other"
    assert qm.unit == 1
    qm.backout()
    assert (qm.unit, qm.outcome(1), qm.outcome(2)) == (2, UnitOutcome.BACKED_OUT, UnitOutcome.OPEN)
    assert left(qm, queue.name) == [("other", 1)]
    qm.commit()
    assert (qm.unit, qm.outcome(2)) == (3, UnitOutcome.COMMITTED)
    assert left(qm, queue.name) == [("other", 1)]


def test_the_next_unit_goes_on_with_calls_of_its_own(qm, queue):
    queue.put("poison")
    queue.get(**MARKED)
    qm.backout()
    queue.put("told", syncpoint=True)
    assert left(qm, queue.name) == [("told", 0)]
    qm.backout()
    assert left(qm, queue.name) == [("poison", 1)]


def test_a_second_mark_is_refused_by_its_name(qm, queue):
    queue.put("one")
    queue.put("two")
    queue.get(**MARKED)
    with pytest.raises(trigmon.SecondMarkNotAllowed):
        queue.get(**MARKED)
    qm.backout()
    assert queue.get(**MARKED).text == "two"
    qm.backout()
    qm.commit()


def test_a_block_left_by_an_exception_gives_a_marked_message_back(qm, queue, shared_daemon):
    queue.put("marked")
    with pytest.raises(ZeroDivisionError), shared_daemon.connect() as other:
        with other.open(queue.name, "input_shared") as same:
            same.get(**MARKED)
        _ = 1 / 0
    assert left(qm, queue.name) == [("marked", 1)]


def test_so_does_an_exception_behind_the_backout(qm, queue, shared_daemon):
    queue.put("marked")
    with pytest.raises(ZeroDivisionError), shared_daemon.connect() as other:
        with other.open(queue.name, "input_shared") as same:
            same.get(**MARKED)
        other.backout()
        _ = 1 / 0
    assert left(qm, queue.name) == [("marked", 1)]


def test_an_exception_that_leaves_the_queues_block_gives_it_back_before_the_close(qm, queue, shared_daemon):
    queue.put("marked")
    with shared_daemon.connect() as other:
        with pytest.raises(ZeroDivisionError), other.open(queue.name, "input_shared") as same:
            same.get(**MARKED)
            _ = 1 / 0
        assert left(qm, queue.name) == [("marked", 1)]
    assert left(qm, queue.name) == [("marked", 1)]


def test_a_mark_set_in_a_pipeline_is_given_back_as_well(qm, queue, shared_daemon):
    queue.put("marked")
    options = int(GetOption.SYNCPOINT | GetOption.MARK_SKIP_BACKOUT)
    with pytest.raises(ZeroDivisionError), shared_daemon.connect() as other:
        same = other.open(queue.name, "input_shared")
        other.pipeline([Get(handle=same.handle, options=options, unit=other.unit)])
        _ = 1 / 0
    assert left(qm, queue.name) == [("marked", 1)]


def test_a_batch_left_in_the_middle_gives_everything_back(qm, queue, shared_daemon):
    for text in ("marked", "a", "b"):
        queue.put(text)
    with shared_daemon.connect() as other, other.open(queue.name, "input_shared") as same:
        same.get(**MARKED)
        for _ in same.drain():
            break
    assert left(qm, queue.name) == [("marked", 1), ("a", 1), ("b", 1)]


def test_leaving_cleanly_behind_the_backout_commits(qm, queue, shared_daemon):
    queue.put("marked")
    with shared_daemon.connect() as other:
        with other.open(queue.name, "input_shared") as same:
            same.get(**MARKED)
        other.backout()
    assert left(qm, queue.name) == []


def test_a_lost_link_gives_it_back(qm, queue, shared_daemon):
    queue.put("marked")
    other = shared_daemon.connect()
    other.open(queue.name, "input_shared").get(**MARKED)
    other.drop()
    message = queue.get(wait_interval_ms=5000)
    assert (message.text, message.backout_count) == ("marked", 1)


def test_under_syncpoint_if_persistent_what_is_persistent_comes_back(qm, queue):
    queue.put("kept", persistence="persistent")
    queue.put("light", persistence="not_persistent")
    assert queue.get(syncpoint_if_persistent=True).text == "kept"
    assert queue.get(syncpoint_if_persistent=True).text == "light"
    qm.backout()
    assert [message.text for message in queue.get_many(9, syncpoint_if_persistent=True)] == ["kept"]
    assert qm.outcome(qm.unit) is UnitOutcome.OPEN
    qm.commit()
    assert left(qm, queue.name) == []


def test_a_unit_that_met_nothing_persistent_ends_and_the_next_begins(qm, queue):
    queue.put("light")
    queue.get(syncpoint_if_persistent=True)
    qm.commit()
    assert qm.unit == 2
    queue.put("next", syncpoint=True)
    qm.commit()
    assert left(qm, queue.name) == [("next", 0)]


def test_a_locked_message_is_this_handles_until_it_is_unlocked(qm, queue, shared_daemon):
    queue.put("one")
    assert queue.get(browse_first=True, lock=True).text == "one"
    with shared_daemon.connect() as other, other.open(queue.name, "input_shared") as same:
        with pytest.raises(trigmon.NoMsgAvailable):
            same.get()
        answer = queue.get(unlock=True)
        assert (answer.data, answer.warning) == (b"", Reason.NONE)
        assert queue.get(unlock=True).warning is Reason.NO_MSG_LOCKED
        assert same.get().text == "one"
