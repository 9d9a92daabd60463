"""A job's side of the queue, against a real queue manager; no Spark is started."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

import trigmon
from tests.daemons import define
from trigmon.mq.calls import Display
from trigmon.spark import jobs
from trigmon.spark.table import publish

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


def test_no_two_units_have_one_name(qm, q_name):
    names = []
    for _ in range(2):
        qm.put_many(q_name, [b"one", b"two"], msg_id=b"the same")
        with jobs.queue(q_name) as queue:
            while unit := queue.take(1):
                with unit:
                    names.append(unit.name)
                    assert unit.again() == []
    assert len(set(names)) == 4


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


def rows_of(table):
    return sorted(part.read_text() for part in table.glob("batch=*/part"))


def write(unit, table):
    staged = Path(unit.staged(table))
    staged.mkdir()
    (staged / "part").write_text(" ".join(message.data.decode() for message in unit.messages))


class TestTable:
    """What units leave in a table, wherever the job is killed."""

    @pytest.fixture
    def table(self, tmp_path):
        return tmp_path / "table"

    def killed(self, q_name, table, moment):
        """A job that is killed at this moment of its first unit."""
        child = os.fork()
        if child == 0:
            try:
                die = lambda *_: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
                with jobs.queue(q_name) as queue, queue.take(10) as unit:
                    if moment == "while it writes":
                        Path(unit.staged(table)).mkdir()
                        die()
                    write(unit, table)
                    if moment == "before the commit":
                        unit._connection.commit = die
                    elif moment == "behind the commit":
                        jobs.move = die
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

    def drained(self, q_name, table):
        """The next job; the names of what it could not settle."""
        with jobs.queue(q_name) as queue:
            forgotten = queue.settle(table)
            while unit := queue.take(10):
                with unit:
                    write(unit, table)
        return forgotten

    @pytest.mark.parametrize("moment", ["while it writes", "before the commit", "behind the commit"])
    def test_a_job_killed_at_any_moment_loses_and_doubles_nothing(self, qm, q_name, table, moment):
        qm.put_many(q_name, [b"one", b"two"])
        self.killed(q_name, table, moment)
        assert rows_of(table) == []
        qm.put(q_name, b"three")
        assert self.drained(q_name, table) == []
        assert " ".join(rows_of(table)).split().count("one") == 1
        assert sorted(" ".join(rows_of(table)).split()) == ["one", "three", "two"]
        assert list(jobs.staging_of(table).iterdir()) == []

    def test_messages_of_one_id_are_all_in_the_table(self, qm, q_name, table):
        for number in range(3):
            qm.put(q_name, b"%d" % number, msg_id=b"the same")
            self.drained(q_name, table)
        qm.put(q_name, b"3", msg_id=b"the same")
        self.killed(q_name, table, "before the commit")
        self.drained(q_name, table)
        assert rows_of(table) == ["0", "1", "2", "3"]

    def test_a_unit_that_fails_leaves_nothing(self, qm, q_name, table):
        qm.put(q_name, b"one")
        with pytest.raises(ZeroDivisionError), jobs.queue(q_name) as queue, queue.take(1) as unit:
            write(unit, table)
            raise ZeroDivisionError
        assert rows_of(table) == []
        assert list(jobs.staging_of(table).iterdir()) == []

    def test_a_batch_that_was_not_written_fails_its_unit(self, qm, q_name, table):
        qm.put(q_name, b"one")
        unwritten = pytest.raises(FileNotFoundError, match="was not written")
        with unwritten, jobs.queue(q_name) as queue, queue.take(1) as unit:
            unit.staged(table)
        assert depth(qm, q_name) == 1

    def test_the_batch_of_a_job_at_work_is_left_alone(self, qm, q_name, table):
        qm.put_many(q_name, [b"one", b"two"])
        with jobs.queue(q_name) as first, first.take(1) as unit:
            write(unit, table)
            assert self.drained(q_name, table) == []
            assert rows_of(table) == ["two"]
        assert rows_of(table) == ["one", "two"]

    def test_a_batch_that_another_job_moved_behind_the_commit_is_in_its_place(self, qm, q_name, table, monkeypatch):
        qm.put(q_name, b"one")
        move = jobs.move

        def too_late(staged, final):
            monkeypatch.setattr(jobs, "move", move)
            with jobs.queue(q_name) as other:
                other.settle(table)
            move(staged, final)

        with jobs.queue(q_name) as queue, queue.take(1) as unit:
            write(unit, table)
            monkeypatch.setattr(jobs, "move", too_late)
        assert rows_of(table) == ["one"]

    def test_a_batch_that_nobody_remembers_stays_and_is_told(self, q_name, table):
        name = f"unit-{'0' * 32}-7"
        (jobs.staging_of(table) / name).mkdir(parents=True)
        with jobs.queue(q_name) as queue, pytest.warns(UserWarning, match="nobody remembers"):
            assert queue.settle(table) == [name]
        assert (jobs.staging_of(table) / name).is_dir()


def test_publishing_replaces_nothing(tmp_path):
    staged, final = tmp_path / "staged", tmp_path / "table" / "batch=1"
    (staged / "deep").mkdir(parents=True)
    (staged / "deep" / "part").write_text("first")
    publish(staged, final)
    staged.mkdir()
    with pytest.raises(FileExistsError):
        publish(staged, final)
    assert (final / "deep" / "part").read_text() == "first"


def test_publishing_what_was_not_written_fails(tmp_path):
    with pytest.raises(FileNotFoundError):
        publish(tmp_path / "nothing", tmp_path / "final")
