"""Staging: what dead jobs left is removed, what a live process has is never touched. The processes are real."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from tests.daemons import define
from tests.spark.conftest import ROOT, depth
from trigmon.mq.calls import Alter
from trigmon.spark import drain
from trigmon.spark.files.staging import attempt, changing, staging_of, sweep

HOLDER = """
import sys
from trigmon.spark.files.staging import attempt
with attempt(sys.argv[1], sys.argv[2]) as files:
    files.mkdir()
    (files / "part").touch()
    print("written", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Starts processes that each make an attempt; none is left at the end of the test."""
    started = []

    def holder(name):
        argv = [sys.executable, "-c", HOLDER, str(tmp_path / "orders"), name]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        started.append(subprocess.Popen(argv, cwd=ROOT, **pipes))
        assert started[-1].stdout.readline() == b"written\n"
        return started[-1]

    yield holder
    for process in started:
        process.kill()
        process.communicate()


def left(table):
    return sorted(path.name.rpartition(".")[0] for path in staging_of(table).iterdir())


def test_an_attempt_of_a_dead_process_is_removed_and_one_of_a_live_process_is_not(holder, tmp_path):
    table = tmp_path / "orders"
    dead, _live = holder("dead"), holder("live")
    assert left(table) == ["dead", "live"]
    dead.send_signal(signal.SIGKILL)
    dead.wait()
    with attempt(table, "own"):
        sweep(table)
        assert left(table) == ["live", "own"]
    assert left(table) == ["live"]


def test_what_an_older_version_left_is_removed_and_a_stranger_s_file_is_not(tmp_path):
    staging = staging_of(tmp_path / "orders")
    (staging / "b1.0a0b" / "_temporary").mkdir(parents=True)
    (staging / "note.txt").touch()
    sweep(tmp_path / "orders")
    assert [path.name for path in staging.iterdir()] == ["note.txt"]


def test_a_table_that_nothing_was_written_to_gets_no_staging(tmp_path):
    sweep(tmp_path / "orders")
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_table_is_had_by_one_at_a_time_though_its_directory_is_deleted(tmp_path):
    table = tmp_path / "orders"
    inside, most, begun = [], [], threading.Barrier(6)

    def change():
        begun.wait()
        for _ in range(50):
            with changing(table):
                inside.append(1)
                most.append(len(inside))
                inside.pop()
                staging_of(table).rmdir()

    threads = [threading.Thread(target=change) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert max(most) == 1
    assert len(most) == 300


@pytest.mark.spark
@pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning", "default::FutureWarning")
class TestDrain:
    def test_halving_leaves_nothing_in_staging(self, qm, q_name, here, spark, tmp_path):
        table = tmp_path / "orders"
        define(qm, f"{q_name}.ASIDE", def_persistence="persistent")
        attributes = {"backout_requeue_q_name": f"{q_name}.ASIDE"}
        qm.call(Alter(object_type="QLOCAL", name=q_name, attributes=attributes))
        qm.put_many(q_name, ["1", "2", "bad", "4", "5"])
        row = "cast(cast(data as string) as bigint) id"
        done = drain(spark, table=table, transform=lambda rows: rows.selectExpr(row), **here)
        assert len(done.rejected) == 1
        assert list(staging_of(table).iterdir()) == []

    def test_the_next_drain_of_any_queue_removes_what_a_killed_one_left_though_nothing_is_on_the_queue(
        self, qm, q_name, here, spark, holder, tmp_path
    ):
        table = tmp_path / "orders"
        killed, _live = holder("killed"), holder("live")
        killed.kill()
        killed.wait()
        assert depth(qm, q_name) == 0
        drain(spark, table=table, **here)
        assert left(table) == ["live"]
