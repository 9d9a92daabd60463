"""A real standalone cluster, driven by a real monitor: drivers on its workers, followed, cancelled, found again."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import ExitStack

import pytest

from tests import processes
from tests.daemons import define
from tests.spark.clusters import QUICK, Cluster
from tests.spark.conftest import depth
from tests.waiting import until
from trigmon.mq.calls import CancelRun, Runs

pytestmark = [pytest.mark.spark]
INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"

JOB = """\
import pathlib, sys, time
from pyspark.sql import SparkSession
from trigmon.client.address import connect

spark = SparkSession.builder.getOrCreate()
works, goes, status = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
total = spark.range(100, numPartitions=2).selectExpr("sum(id)").collect()[0][0]
with connect() as qm, qm.open(sys.argv[4], "input_shared") as q:
    q.get()
print("the total is", total, flush=True)
works.touch()
while not goes.exists():
    time.sleep(0.1)
raise SystemExit(status)
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with Cluster(tmp_path_factory.mktemp("cluster")) as one:
        yield one


@pytest.fixture
def job(daemon, cluster, tmp_path):
    """Makes a queue manager with a monitor, and on it a job that has just been triggered."""
    with ExitStack() as until_end:
        yield lambda **fields: Job(until_end, daemon, cluster, tmp_path, **fields)


class Job:
    """A process and a queue that starts it."""

    def __init__(self, until_end, daemon, cluster, directory, status=0, settings=None):
        self.until_end = until_end
        self.machine = machine = daemon(with_monitor=True, settings=settings)
        self.works, self.goes = directory / "works", directory / "goes"
        (directory / "job.py").write_text(JOB)
        self.qm = until_end.enter_context(machine.connect())
        conf = {
            "spark.master.rest.port": cluster.rest,
            "spark.master.ui.port": cluster.page,
            "spark.cores.max": 1,
            "spark.sql.shuffle.partitions": 2,
            "spark.driver.extraJavaOptions": QUICK,
            "spark.executor.extraJavaOptions": QUICK,
        }
        define(
            *(self.qm, "JOB", "PROCESS"),
            appl_type="spark",
            appl_id=str(directory / "job.py"),
            spark_start="rest",
            spark_master=cluster.address,
            spark_name="adds up",
            spark_driver_memory="600m",
            spark_executor_memory="600m",
            spark_environment=f"PYSPARK_PYTHON={sys.executable}",
            spark_conf=" ".join(f"{key}='{value}'" for key, value in conf.items()),
            spark_arguments=f"{self.works} {self.goes} {status} {{queue}}",
            retry=0,
        )
        define(self.qm, "WORK", process_name="JOB", trigger_control="on", trigger_type="every", initiation_q_name=INITQ)
        machine.wait_for_event("monitor serves")
        self.qm.put("WORK", b"go")

    def record(self):
        (run,) = until(lambda: self.qm.call(Runs()).rows)
        return run

    def ended(self, timeout_s=150):
        states = ("exited", "failed", "unknown", "cancelled")
        return until(lambda: run if (run := self.record())["state"] in states else None, timeout_s)

    def wait_until_it_works(self):
        until(lambda: self.works.exists() or self.record()["end_ms"], 300)
        assert self.works.exists(), self.record()["stderr_tail"]


def driver_of(cluster, run):
    reported = cluster.state()
    return next(
        one for one in reported["activedrivers"] + reported["completeddrivers"] if one["id"] == run["driver_id"]
    )


def test_a_driver_on_a_worker_serves_its_queue_is_followed_and_ends_its_run(job, cluster):
    job = job()
    job.wait_until_it_works()
    seen = until(lambda: run if (run := job.record()).get("progress", {}).get("tasks_done") else None)
    assert seen["state"] == "drained"  # the driver's own connections name the run
    assert seen["application_id"] in [app["id"] for app in cluster.state()["activeapps"]]
    assert seen["ui"].startswith("http://127.0.0.1:")
    assert seen["progress"]["stages_done"] == seen["progress"]["stages"] > 0
    assert seen["recorded_ms"] <= seen["start_ms"] <= seen["application_ms"] <= seen["first_get_ms"]
    shown = json.loads(job.machine.trigmon("runs", "show", "--output", "json").stdout)
    assert shown["submit_s"] < shown["start_s"] < shown["first_row_s"]
    assert "tasks" in job.machine.trigmon("status", "--watch", "--count", "1").stdout
    job.goes.touch()
    run = job.ended()
    assert (run["state"], run["exit_status"], run["committed"]) == ("exited", 0, 1)
    assert driver_of(cluster, run)["state"] == "FINISHED"
    assert depth(job.qm, "WORK") == 0


@pytest.mark.slow
def test_a_driver_that_fails_leaves_the_last_lines_of_its_log_in_the_record(job, cluster):
    job = job(status=3)
    job.goes.touch()
    run = job.ended(300)
    assert (run["state"], run["exit_status"]) == ("exited", 1)
    assert "the total is 4950" in run["stderr_tail"]
    assert f"{run['driver_id']} ended: FAILED" in run["stderr_tail"]


@pytest.mark.slow
def test_a_cancelled_run_has_its_driver_killed_on_the_cluster(job, cluster):
    job = job()
    job.wait_until_it_works()
    job.qm.call(CancelRun(run_id=job.record()["run_id"], reason="the wrong day"))
    run = job.ended()
    assert (run["state"], run["cancel_reason"]) == ("cancelled", "the wrong day")
    assert driver_of(cluster, run)["state"] == "KILLED"
    until(lambda: run["application_id"] not in [app["id"] for app in cluster.state()["activeapps"]])
    until(lambda: not processes.of_run(run["run_id"]))


@pytest.mark.slow
def test_a_killed_supervisor_is_followed_by_one_that_finds_the_driver(job, cluster):
    job = job()
    job.wait_until_it_works()
    first = job.record()
    os.kill(first["pid"], signal.SIGKILL)
    until(lambda: job.record()["pid"] != first["pid"])
    job.goes.touch()
    run = job.ended()
    assert (run["state"], run["exit_status"], run["start_ms"]) == ("exited", 0, first["start_ms"])
    assert run["driver_id"] == driver_of(cluster, run)["id"]
    ours = [one for one in cluster.state()["completeddrivers"] if one["id"] > run["driver_id"]]
    assert ours == []  # no second driver was submitted


@pytest.mark.slow
def test_a_supervisor_killed_while_it_is_to_end_is_followed_by_one_that_kills_the_driver(job, cluster):
    job = job(settings={"monitor.grace_s": 0.1})
    job.wait_until_it_works()
    run = job.record()
    os.kill(run["pid"], signal.SIGSTOP)  # it can kill nothing: the grace passes, and SIGKILL comes
    job.qm.call(CancelRun(run_id=run["run_id"]))
    run = job.ended()
    assert run["state"] == "cancelled"
    assert driver_of(cluster, run)["state"] == "KILLED"


@pytest.mark.slow
def test_a_monitor_that_was_killed_finds_its_driver_again(job, cluster):
    job = job()
    job.wait_until_it_works()
    before = job.record()
    job.qm.drop()
    job.machine.kill()
    job.machine.launch()
    job.machine.wait_for_event("program found running", 60)
    job.qm = job.until_end.enter_context(job.machine.connect())
    job.goes.touch()
    run = job.ended()
    assert (run["state"], run["exit_status"]) == ("exited", 0)
    assert (run["driver_id"], run["pid"]) == (driver_of(cluster, run)["id"], before["pid"])
