"""A cancelled run takes its whole Spark application with it: spark-submit, the driver's Java, and Python's workers."""

from __future__ import annotations

import pytest

from tests import processes
from tests.daemons import define
from tests.waiting import until
from trigmon.mq.calls import CancelRun, Runs

pytestmark = [pytest.mark.spark]
INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"

JOB = """\
import pathlib, sys, time
from pyspark.sql import SparkSession

WORKS = sys.argv[1]

def slow(rows):
    pathlib.Path(WORKS).touch()
    time.sleep(600)
    return rows

spark = SparkSession.builder.getOrCreate()
spark.sparkContext.parallelize(range(2), 2).mapPartitions(slow).count()
"""


def test_a_cancelled_run_leaves_no_process_of_its_spark_application(daemon, tmp_path):
    job, works = tmp_path / "job.py", tmp_path / "works"
    job.write_text(JOB)
    queue_manager = daemon(with_monitor=True)
    with queue_manager.connect() as qm:
        define(
            *(qm, "JOB", "PROCESS"),
            appl_type="spark",
            appl_id=str(job),
            spark_master="local[2]",
            spark_arguments=str(works),
        )
        define(qm, "WORK", process_name="JOB", trigger_control="on", trigger_type="every", initiation_q_name=INITQ)
        queue_manager.wait_for_event("monitor serves")
        qm.put("WORK", b"go")
        until(works.exists)
        (run,) = qm.call(Runs()).rows
        assert len(processes.of_run(run["run_id"])) >= 3  # bash or spark-submit's Java, the driver's Python, a worker
        qm.call(CancelRun(run_id=run["run_id"], reason="the wrong day"))
        (ended,) = until(lambda: qm.call(Runs(where={"state": "cancelled"})).rows)
        assert ended["cancel_reason"] == "the wrong day"
        until(lambda: not processes.of_run(run["run_id"]))
