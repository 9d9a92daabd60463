"""The same job on Spark Connect and on a standalone cluster of one machine; on local it is what the other tests run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.daemons import define
from tests.spark.clusters import Cluster
from tests.spark.conftest import depth, spark_environment

pytestmark = [pytest.mark.spark]
JOB = Path(__file__).with_name("whole_job.py")


@pytest.fixture
def master(tmp_path):
    """A master's address, with two workers of one core each."""
    with Cluster(tmp_path, cores=1, memory="1g") as one:
        yield one.address


def check_whole_job(qm, q_name, shared_daemon, tmp_path, master):
    to = f"{q_name}.TO"
    define(qm, to, def_persistence="persistent")
    qm.put_many(q_name, [b"%d" % n for n in range(100)])
    arguments = [master, str(tmp_path / "table"), q_name, to, shared_daemon.address]
    environment = shared_daemon.env | spark_environment(tmp_path) | {"SPARK_LOCAL_IP": "127.0.0.1"}
    ran = subprocess.run(
        [sys.executable, str(JOB), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ran.returncode == 0, ran.stderr[-5000:]
    assert ran.stdout.split("\n")[:2] == ["browsed 100", "drained 2 100"]
    rows = pyarrow.parquet.read_table(tmp_path / "table", columns=["data"]).to_pylist()
    assert sorted(int(row["data"]) for row in rows) == list(range(100))
    assert (depth(qm, q_name), depth(qm, to)) == (0, 0)


@pytest.mark.slow
def test_on_spark_connect(qm, q_name, shared_daemon, tmp_path):
    check_whole_job(qm, q_name, shared_daemon, tmp_path, "remote local[2]")


@pytest.mark.slow
def test_on_a_standalone_cluster(qm, q_name, shared_daemon, tmp_path, master):
    check_whole_job(qm, q_name, shared_daemon, tmp_path, master)
