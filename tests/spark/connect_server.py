"""A Spark Connect server that no monitor keeps, as a process of the test's own: somebody else's."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tests.spark.clusters import QUICK
from tests.spark.conftest import spark_environment
from tests.waiting import until
from trigmon.launch.launch_plan import Session
from trigmon.launch.spark.warm import connect_server
from trigmon.launch.spark.warm.connect_server import Serving

READY_S = 180.0


class ConnectServer:
    """``url`` is its address, token and all; ``ui`` its web server. It may be killed and started again, there."""

    def __init__(self, directory: Path, *conf: str) -> None:
        self.directory = directory
        (directory / "spark").mkdir()
        settings = Serving(master="local[2]", memory="600m", conf=(f"spark.driver.extraJavaOptions={QUICK}", *conf))
        self.server = connect_server.made("nobody", Session(), settings)
        self.url, self.ui, self.page_key = self.server.url, self.server.ui, self.server.page_key
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> ConnectServer:
        plan = connect_server.planned(self.server, self.directory, "QM1")
        environment = os.environ | spark_environment(self.directory) | plan.environment
        environment.pop("PYTHONWARNINGS", None)
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                plan.argv,
                env=environment,
                cwd=self.directory,
                umask=0o077,  # as a keeper has it
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(self._is_up, READY_S)
        return self

    def _is_up(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.directory / "log").read_text()
        return connect_server.listens(self.server.port)

    def kill(self) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None
