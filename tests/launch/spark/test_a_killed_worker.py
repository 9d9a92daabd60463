"""One of two workers is killed in the middle of a triggered drain: nothing is lost, and nothing is doubled.

Each worker is a host of its own in a network namespace where this user may make them; else both are on loopback.
"""

from __future__ import annotations

import json
import os
import sys
import warnings

import pyarrow.parquet
import pytest

from tests.daemons import define
from tests.spark.clusters import QUICK, Cluster, Network, why_no_namespaces
from tests.spark.conftest import depth
from tests.spark.driver_page import read_page
from tests.waiting import until
from trigmon.launch.spark.cold import web_page
from trigmon.mq.calls import Runs

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1700)]
INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
MESSAGES, BATCH = 3000, 500

JOB = """\
import sys
from pyspark.sql import SparkSession
from trigmon.spark import drain

spark = SparkSession.builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
done = drain(spark, table=sys.argv[1], max_rows=int(sys.argv[2]), options={"partitions": 4, "columns": "data"})
print("drained", done.rows)
"""


@pytest.fixture
def cluster(tmp_path):
    why = why_no_namespaces()
    network = None if why else Network(2, f"10.79.{os.getpid() % 200}")
    if why:
        warnings.warn(pytest.PytestWarning(f"{why}: the workers are on loopback"), stacklevel=1)
    try:
        if network:
            network.make()
        with Cluster(tmp_path, network) as one:
            yield one
    finally:
        if network:
            network.remove()


def queue_with_a_job(qm, machine, cluster, directory, start):
    """A queue of messages, which has just triggered its job."""
    (directory / "job.py").write_text(JOB)
    conf = {
        "spark.master.rest.port": cluster.rest,
        "spark.master.ui.port": cluster.page,
        "spark.cores.max": 2,
        "spark.driver.extraJavaOptions": QUICK,
        "spark.executor.extraJavaOptions": QUICK,
    }
    if start == "submit":
        conf |= {"spark.driver.host": cluster.host, "spark.driver.bindAddress": cluster.host}
    define(
        *(qm, "JOB", "PROCESS"),
        appl_type="spark",
        appl_id=str(directory / "job.py"),
        spark_start=start,
        spark_master=cluster.address,
        spark_driver_memory="600m",
        spark_executor_memory="600m",
        spark_executor_cores=1,
        spark_environment=f"PYSPARK_PYTHON={sys.executable}",
        spark_conf=" ".join(f"{key}='{value}'" for key, value in conf.items()),
        spark_arguments=f"{directory / 'table'} {BATCH}",
        retry=5,
        retry_wait_s=1,
    )
    on = {"process_name": "JOB", "initiation_q_name": INITQ, "trigger_type": "first", "trigger_control": "on"}
    define(qm, "WORK", def_persistence="persistent", **on)
    machine.wait_for_event("monitor serves")
    qm.put_many("WORK", [b"%d" % n for n in range(MESSAGES)])


def runs_of(qm):
    """The runs that had a program, newest first; what the lost driver's close triggered joins the next try."""
    return until(lambda: [run for run in qm.call(Runs()).rows if run["state"] != "joined"])


def newest(qm):
    return runs_of(qm)[0]


def executors(run, data):
    """The addresses of a driver's executors, as its page says them to who has its key."""
    url = f"{run['ui']}/api/v1/applications/{run['application_id']}/executors"
    key = web_page.key_in(data / "spark" / "page.properties")
    return {one["hostPort"].rpartition(":")[0] for one in json.loads(read_page(url, key)) if one["id"] != "driver"}


@pytest.mark.slow
@pytest.mark.parametrize("start", ["submit", "rest"])
def test_a_worker_killed_in_the_middle_of_a_drain_loses_nothing_and_doubles_nothing(daemon, cluster, tmp_path, start):
    machine = daemon(with_monitor=True)
    with machine.connect() as qm:
        queue_with_a_job(qm, machine, cluster, tmp_path, start)
        check(qm, machine, cluster, tmp_path / "table", start)


def check(qm, machine, cluster, table, start):
    run = until(lambda: run if (run := newest(qm))["committed"] or run["end_ms"] else None, 400)
    assert 0 < run["committed"] < MESSAGES, run["stderr_tail"]
    if cluster.network and start == "submit":
        assert executors(run, machine.data) == set(cluster.network.addresses)
    cluster.kill_worker(number_of_drivers_worker(cluster, run) if start == "rest" else 1)
    until(lambda: not depth(qm, "WORK") and newest(qm)["state"] == "exited", 1200)
    cluster.wait_for_workers(1)
    runs = runs_of(qm)
    assert newest(qm)["exit_status"] == 0
    assert len(runs) == 1 if start == "submit" else len(runs) > 1  # a lost executor is Spark's, a lost driver is ours
    rows = pyarrow.parquet.read_table(table, columns=["data"])
    assert sorted(int(data) for data in rows["data"].to_pylist()) == list(range(MESSAGES))


def number_of_drivers_worker(cluster, run):
    return next(number for number in range(2) if (cluster.directory / f"worker{number}" / run["driver_id"]).exists())
