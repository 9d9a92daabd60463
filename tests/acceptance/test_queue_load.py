"""A queue moved by a trigger and a process definition alone, as shipped; and one whose job is killed meanwhile."""

from __future__ import annotations

import time

import pyarrow.parquet
import pytest
import yaml

from trigmon import paths
from trigmon.mq.calls import Display, Runs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

PROCESS_DEFS = paths.shipped("process_defs")
INITIATION_Q = "initiation_q_name=SYSTEM.DEFAULT.INITIATION.QUEUE"

# The shipped job, which says at its end what the table of the database holds, and is killed once behind a commit.
DYING = """\
import os, pathlib, signal, sys

from pyspark.sql import SparkSession

from trigmon.client.reservation import Reservation
from trigmon.spark import load

marker = pathlib.Path({marker!r})
settle = Reservation.settle


def dying(*of):
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return settle(*of)


Reservation.settle = dying
stop = SparkSession.stop


def telling(spark):
    rows = spark.read.jdbc({url!r}, "lines").collect()
    pathlib.Path({told!r}).write_text(" ".join(sorted(row["data"] for row in rows)))
    stop(spark)


SparkSession.stop = telling
load.main()
"""


def ended_runs(qm, count):
    """The first so many runs for the queue, oldest first, when they have ended."""
    deadline = time.monotonic() + 900
    while True:
        runs = qm.call(Runs(where={"q_name": "LINES"})).rows[::-1]
        if len([run for run in runs if run["state"] == "exited"]) >= count:
            return runs[:count]
        assert time.monotonic() < deadline, runs
        time.sleep(0.2)


def define_queue(queue_manager, process):
    done = queue_manager.trigmon("queue", "define", "LINES", "TRIGGER", f"process_name={process}", INITIATION_Q)
    assert done.returncode == 0, done.stderr


def depth(qm):
    return qm.call(Display(object_type="QLOCAL", name="LINES")).rows[0]["current_q_depth"]


def test_a_queue_that_names_the_shipped_process_is_parquet_when_its_messages_have_come(daemon, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    queue_manager = daemon(with_monitor=True)
    applied = queue_manager.trigmon("apply", str(PROCESS_DEFS))
    assert applied.returncode == 0, applied.stderr
    define_queue(queue_manager, "QUEUE.LOAD")
    with queue_manager.connect() as qm:
        ids = {receipt.msg_id: text for text in ("one", "two", "three") if (receipt := qm.put("LINES", text))}
        (run,) = ended_runs(qm, 1)
        assert (run["exit_status"], depth(qm)) == (0, 0)
    table = pyarrow.parquet.read_table(tmp_path / "queues" / "LINES").to_pylist()
    assert {row["msg_id"]: row["data"].decode() for row in table} == ids
    assert len(table) == 3


@pytest.mark.slow
def test_a_job_killed_behind_the_database_s_commit_is_followed_by_one_that_doubles_nothing(daemon, tmp_path):
    url = f"jdbc:derby:{tmp_path}/db;create=true"
    words = ["--queue", "{queue}", "--to", "jdbc", "--url", url, "--table", "lines", "--format", "text"]
    definition = yaml.safe_load((PROCESS_DEFS / "QUEUE.LOAD.yaml").read_text())
    definition["spark"]["arguments"] = words
    definition["spark"]["conf"]["spark.driver.extraJavaOptions"] = f"-Dderby.stream.error.file={tmp_path}/derby.log"
    (tmp_path / "LINES.LOAD.yaml").write_text(yaml.safe_dump(definition))
    job = DYING.format(marker=str(tmp_path / "died"), url=url, told=str(tmp_path / "told"))
    (tmp_path / "queue_load.py").write_text(job)
    queue_manager = daemon(with_monitor=True)
    applied = queue_manager.trigmon("apply", str(tmp_path / "LINES.LOAD.yaml"))
    assert applied.returncode == 0, applied.stderr
    define_queue(queue_manager, "LINES.LOAD")
    with queue_manager.connect() as qm:
        qm.put_many("LINES", ["one", "two", "three"])
        first, second = ended_runs(qm, 2)
        assert (first["exit_status"] != 0, second["exit_status"], depth(qm)) == (True, 0, 0)
    assert (tmp_path / "told").read_text() == "one three two"
