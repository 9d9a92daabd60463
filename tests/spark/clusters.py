"""A standalone Spark cluster of one machine: a master and workers of one core each, as processes of their own."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.spark.conftest import spark_environment
from tests.waiting import until
from trigmon.launch.spark.submit import spark_home

READY_S = 90.0
_DEPLOY = "org.apache.spark.deploy"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def cluster(directory: Path, workers: int) -> Iterator[str]:
    """The master's address, once all workers have registered."""
    environment = os.environ | spark_environment(directory) | {"SPARK_LOCAL_IP": "127.0.0.1"}
    spark_class = str(spark_home(os.environ) / "bin" / "spark-class")
    port = free_port()
    master = f"spark://127.0.0.1:{port}"
    begun: list[subprocess.Popen[bytes]] = []

    def begin(*arguments):
        with (directory / f"log{len(begun)}").open("wb") as log:
            argv = [spark_class, *arguments]
            begun.append(
                subprocess.Popen(argv, env=environment, stdout=log, stderr=log, cwd=directory, start_new_session=True)
            )

    try:
        ports = ["--port", str(port), "--webui-port", str(free_port())]
        begin(f"{_DEPLOY}.master.Master", "--host", "127.0.0.1", *ports)
        for number in range(workers):
            where = ["-d", str(directory / f"worker{number}"), "--webui-port", str(free_port())]
            begin(f"{_DEPLOY}.worker.Worker", "-c", "1", "-m", "1g", "--host", "127.0.0.1", *where, master)
        until(lambda: (directory / "log0").read_text().count("Registering worker") >= workers, READY_S)
        yield master
    finally:
        for process in begun:
            process.terminate()
        for process in begun:
            process.wait(30)
