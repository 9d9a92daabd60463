"""The ports of drivers that a real standalone cluster starts (SPKSTART(REST)), attacked by another user."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.launch.conftest import make_order
from tests.launch.spark.attempts import PAGES, broken_into, read
from tests.spark.clusters import QUICK, Cluster, end_session
from tests.waiting import until
from trigmon.launch.spark.cluster.rest_start import SparkRestLauncher
from trigmon.launch.unix import environment
from trigmon.mq.enums import ApplType, SparkStart
from trigmon.rules.runs.spark_ports import open_to_others

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0, reason="another user of this machine is needed, and only root may be one"),
]
READY_S = 300.0
JOB = """\
import pathlib, sys, time
from pyspark.sql import SparkSession

SparkSession.builder.getOrCreate().range(10).selectExpr("sum(id)").collect()
pathlib.Path(sys.argv[1]).touch()
time.sleep(600)
"""


@pytest.fixture
def driver(tmp_path):
    """Starts a cluster and a driver on its worker; the definition, and the session of all of the worker's processes."""
    begun = []

    def start(defaults, *conf):
        (tmp_path / "job.py").write_text(JOB)
        (tmp_path / "conf").mkdir()
        (tmp_path / "conf" / "spark-defaults.conf").write_text(defaults)
        (tmp_path / "conf" / "spark-defaults.conf").chmod(0o600)
        cluster = Cluster(tmp_path, workers=1)
        cluster.environment["SPARK_CONF_DIR"] = str(tmp_path / "conf")
        begun.append(cluster)
        cluster.start()
        order = make_order(
            "job.py",
            appl_type=ApplType.SPARK,
            working_directory=str(tmp_path),
            spark_start=SparkStart.REST,
            spark_master=cluster.address,
            spark_driver_memory="600m",
            spark_executor_memory="600m",
            spark_environment=f"PYSPARK_PYTHON={sys.executable}",
            spark_arguments=str(tmp_path / "works"),
            spark_conf=" ".join(
                (
                    *(f"spark.master.rest.port={cluster.rest}", f"spark.master.ui.port={cluster.page}"),
                    *(f"spark.driver.extraJavaOptions='{QUICK}'", "spark.cores.max=1", *conf),
                )
            ),
        )
        plan = SparkRestLauncher().plan(order)
        with (tmp_path / "supervisor").open("wb") as log:
            supervisor = subprocess.Popen(
                plan.argv, env=environment(plan), cwd=tmp_path, stdout=log, stderr=log, start_new_session=True
            )
        begun.append(supervisor)

        def is_ready():
            assert supervisor.poll() is None, (tmp_path / "supervisor").read_text()
            return (tmp_path / "works").exists()

        until(is_ready, READY_S)
        return order.process, cluster.begun[1].pid

    yield start
    for each in reversed(begun):
        if isinstance(each, Cluster):
            for process in each.begun:
                os.killpg(process.pid, signal.SIGKILL)  # a driver's Python is of a thread of its Java machine
            each.close()
        else:
            end_session(each, signal.SIGKILL)
            each.wait()


def test_a_driver_of_a_cluster_without_a_secret_is_open_and_named_as_that(driver):
    process, session = driver("")
    assert list(open_to_others(process)) == [f"SPKMASTER({process.spark_master}) without spark.authenticate=true"]
    assert broken_into(session) == {"uploads_a_block", "hears"}


def test_a_driver_of_a_cluster_with_a_secret_takes_nothing_from_a_stranger_and_shows_its_page(driver):
    process, session = driver("spark.authenticate true\nspark.authenticate.secret 7d3a\n", "spark.authenticate=true")
    assert list(open_to_others(process)) == []
    assert broken_into(session) == set()
    assert "/environment/" in read(session) <= set(PAGES)
