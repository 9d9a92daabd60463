"""The same job on Spark Connect and on a standalone cluster of one machine; on local it is what the other tests run."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.daemons import define
from tests.spark.conftest import depth, spark_environment
from trigmon.launch.spark.submit import spark_home

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
JOB = Path(__file__).with_name("whole_job.py")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def cluster(tmp_path):
    """A master and two workers of one core each; the master's address."""
    environment = os.environ | spark_environment(tmp_path) | {"SPARK_LOCAL_IP": "127.0.0.1"}
    spark_class = str(spark_home(os.environ) / "bin" / "spark-class")
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    deploy = "org.apache.spark.deploy"
    begun = []

    def begin(*arguments):
        log = (tmp_path / f"log{len(begun)}").open("wb")
        argv = [spark_class, *arguments]
        begun.append(
            subprocess.Popen(argv, env=environment, stdout=log, stderr=log, cwd=tmp_path, start_new_session=True)
        )
        log.close()

    try:
        ports = ["--port", str(port), "--webui-port", str(free_port())]
        begin(f"{deploy}.master.Master", "--host", "127.0.0.1", *ports)
        for number in range(2):
            where = ["-d", str(tmp_path / f"worker{number}"), "--webui-port", str(free_port())]
            begin(f"{deploy}.worker.Worker", "-c", "1", "-m", "1g", "--host", "127.0.0.1", *where, master)
        deadline = time.monotonic() + 90
        while (tmp_path / "log0").read_text().count("Registering worker") < 2:
            assert time.monotonic() < deadline, (tmp_path / "log0").read_text()
            time.sleep(0.1)
        yield master
    finally:
        for process in begun:
            process.terminate()
        for process in begun:
            process.wait(30)


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
        timeout=250,
    )
    assert ran.returncode == 0, ran.stderr[-5000:]
    assert ran.stdout.split("\n")[:2] == ["browsed 100", "drained 2 100"]
    rows = pyarrow.parquet.read_table(tmp_path / "table", columns=["data"]).to_pylist()
    assert sorted(int(row["data"]) for row in rows) == list(range(100))
    assert (depth(qm, q_name), depth(qm, to)) == (0, 0)


def test_on_spark_connect(qm, q_name, shared_daemon, tmp_path):
    check_whole_job(qm, q_name, shared_daemon, tmp_path, "remote local[2]")


def test_on_a_standalone_cluster(qm, q_name, shared_daemon, tmp_path, cluster):
    check_whole_job(qm, q_name, shared_daemon, tmp_path, cluster)
