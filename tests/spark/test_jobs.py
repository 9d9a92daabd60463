"""A job's side of the queue, against a real queue manager; no Spark is started."""

from __future__ import annotations

import pytest

import trigmon
from tests.daemons import define
from trigmon.mq.calls import Display
from trigmon.spark import jobs

_numbers = iter(range(1, 1000))


@pytest.fixture
def here(shared_daemon, monkeypatch):
    """This process finds the queue manager as a started job does."""
    for name, value in shared_daemon.env.items():
        if name.startswith("TRIGMON_"):
            monkeypatch.setenv(name, value)


@pytest.fixture
def q_name(qm, here):
    name = f"JOB.{next(_numbers)}"
    define(qm, name, def_persistence="persistent")
    return name


def row(qm, name):
    return qm.call(Display(object_type="QLOCAL", name=name)).rows[0]


def depth(qm, name):
    return row(qm, name)["current_q_depth"]


def test_a_queue_is_drained_unit_by_unit_and_each_is_committed_behind_its_block(qm, q_name):
    qm.put_many(q_name, [b"%d" % number for number in range(700)])
    seen = []
    with jobs.queue(q_name) as queue:
        while unit := queue.take(300):
            with unit:
                seen.append([int(message.data) for message in unit.messages])
                assert row(qm, q_name)["uncommitted_msgs"] == len(unit.messages)
            assert row(qm, q_name)["uncommitted_msgs"] == 0
    assert [len(unit) for unit in seen] == [300, 300, 100]
    assert [number for unit in seen for number in unit] == list(range(700))
    assert depth(qm, q_name) == 0


def test_a_unit_whose_block_fails_lies_on_the_queue_again(qm, q_name):
    qm.put_many(q_name, [b"one", b"two"])
    with pytest.raises(ZeroDivisionError), jobs.queue(q_name) as queue, queue.take(10):
        raise ZeroDivisionError
    assert depth(qm, q_name) == 2
    with jobs.queue(q_name) as queue, queue.take(10) as unit:
        assert [message.data for message in unit.again()] == [b"one", b"two"]
    assert depth(qm, q_name) == 0


def test_a_unit_is_named_by_its_first_message(qm, q_name):
    msg_id, _ = qm.put_many(q_name, [b"one", b"two"])
    with jobs.queue(q_name) as queue, queue.take(10) as unit:
        assert unit.name == f"unit-{msg_id.hex()}"
        assert unit.again() == []


def test_the_queue_whose_trigger_started_the_job_is_the_one_that_is_meant(qm, q_name, monkeypatch):
    monkeypatch.setenv("TRIGMON_QNAME", q_name)
    with jobs.queue() as queue:
        assert queue.name == q_name
        assert queue.take(10) is None


def test_without_a_queue_and_without_a_trigger_the_job_is_told(here):
    with pytest.raises(trigmon.UnknownObjectName, match="no queue was named"), jobs.queue():
        pass


class TestBackoutQueue:
    @pytest.fixture
    def names(self, qm, here):
        number = next(_numbers)
        define(qm, f"ASIDE.{number}")
        define(qm, f"JOB.{number}", backout_threshold=2, backout_requeue_q_name=f"ASIDE.{number}")
        return f"JOB.{number}", f"ASIDE.{number}"

    def fail(self, q_name, limit):
        with pytest.raises(ZeroDivisionError), jobs.queue(q_name) as queue, queue.take(limit):
            raise ZeroDivisionError

    def test_a_message_that_failed_as_often_as_the_threshold_goes_aside_as_it_is(self, qm, names):
        q_name, aside = names
        receipt = qm.put(q_name, b"poison", priority=3, correl_id=b"c")
        self.fail(q_name, 1)
        self.fail(q_name, 1)
        qm.put(q_name, b"sound")
        with jobs.queue(q_name) as queue, queue.take(10) as unit:
            assert [message.data for message in unit.messages] == [b"sound"]
        assert depth(qm, q_name) == 0
        with qm.open(aside, "input_shared") as opened:
            message = opened.get()
        assert (message.data, message.msg_id, message.priority) == (b"poison", receipt.msg_id, 3)
        assert message.correl_id.rstrip(b"\0") == b"c"

    def test_a_queue_of_nothing_but_such_messages_is_empty_for_the_job(self, qm, names):
        q_name, aside = names
        qm.put_many(q_name, [b"a", b"b"])
        self.fail(q_name, 2)
        self.fail(q_name, 2)
        with jobs.queue(q_name) as queue:
            assert queue.take(1) is None
        assert (depth(qm, q_name), depth(qm, aside)) == (0, 2)

    def test_what_is_set_aside_in_a_unit_that_fails_stays(self, qm, names):
        q_name, aside = names
        qm.put(q_name, b"one")
        with pytest.raises(ZeroDivisionError), jobs.queue(q_name) as queue, queue.take(1) as unit:
            queue.set_aside(unit.messages)
            raise ZeroDivisionError
        assert (depth(qm, q_name), depth(qm, aside)) == (1, 0)

    def test_a_queue_without_a_backout_queue_cannot_set_aside(self, qm, q_name):
        qm.put(q_name, b"one")
        with pytest.raises(trigmon.UnknownObjectName, match="BOQNAME"), jobs.queue(q_name) as queue:
            queue.set_aside(queue.take(1).messages)
        assert depth(qm, q_name) == 1


def test_a_published_directory_replaces_what_the_same_unit_left(tmp_path):
    staged, final = tmp_path / "staged", tmp_path / "table" / "batch=1"
    for text in ("first", "second"):
        (staged / "deep").mkdir(parents=True)
        (staged / "deep" / "part").write_text(text)
        jobs.publish(staged, final)
        assert (final / "deep" / "part").read_text() == text
        assert not staged.exists()


def test_publishing_what_was_not_written_fails(tmp_path):
    with pytest.raises(FileNotFoundError):
        jobs.publish(tmp_path / "nothing", tmp_path / "final")
