"""SPKSTART(CONNECT): plans a job in a session of a warm Spark Connect server, its process forked by a fork server.

The plan names the session. The server, and with it ``SPARK_REMOTE``, is added when the run may start
(:mod:`trigmon.monitor.spark_servers.session_admission`). Where there is no fork server the same job is a Python process
of its own, which takes half a second longer to start.

A session on a server that the monitor keeps has the rights of the monitor's user, also for the process of another user:
the server reads the files and runs the functions. So a job with RUNAS of another user is started cold there. An
external server decides about rights itself, and the job's own process runs as that user.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from trigmon.launch import arguments as words
from trigmon.launch.launch_plan import STDERR, Launcher, LaunchError, LaunchPlan, Lead, Order, Session
from trigmon.launch.permissions import Grants
from trigmon.launch.spark.cold import command
from trigmon.launch.spark.cold.submit import check_program
from trigmon.launch.spark.warm.connect_server import Serving, Shelf, is_elsewhere
from trigmon.mq.enums import SparkShort

RUNNING = "trigmon.spark.warm.job_process"
SHORT = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""The session of a short job: few rows are done before the Java code that Spark would make for them is compiled."""


class SparkConnectLauncher:
    """Plans warm starts; ``cold`` plans the jobs that cannot start warm. ``shelf`` has the records of sessions."""

    errors = (STDERR,)

    def __init__(
        self,
        cold: Launcher,
        shelf: Shelf,
        grants: Grants = Grants(),  # noqa: B008 - it never changes
        serving: Serving = Serving(),  # noqa: B008 - likewise
    ) -> None:
        self._cold = cold
        self._shelf = shelf
        self._grants = grants
        self._serving = serving

    def plan(self, order: Order) -> LaunchPlan:
        """See :class:`~trigmon.launch.launch_plan.Launcher`."""
        words.check_characters(order)
        process = order.process
        script, arguments = command.program(order), command.arguments(order)
        if command.is_elsewhere(script) or script.endswith(".jar"):
            raise LaunchError(f"a session of Spark Connect runs a PySpark file of this machine, not {script}")
        check_program(order)
        session = session_of(order, self._serving)
        python = os.environ.get("PYSPARK_DRIVER_PYTHON", sys.executable)
        plan = LaunchPlan(
            argv=[python, "-m", RUNNING, script, *arguments],
            fork=[script, *arguments] if python == sys.executable else [],
            session=session,
            environment=words.environment(order) | words.variables(process),
            working_directory=process.working_directory,
        )
        plan = self._grants.completed(plan, process)
        return plan if session.remote or not plan.user else self._cold.plan(order)

    def record_fields(self, order: Order, directory: Path) -> dict[str, str]:
        """See :class:`~trigmon.launch.launch_plan.Launcher`. A session is no application of its own."""
        return {} if self._shelf.session(order.run_id) is not None else self._cold.record_fields(order, directory)

    def lead(self, order: Order, directory: Path, pid: int) -> Lead | None:
        """See :class:`~trigmon.launch.launch_plan.Launcher`. Its jobs are among a server's, by their session."""
        given = self._shelf.session(order.run_id)
        if given is None:
            return self._cold.lead(order, directory, pid)
        if not given.server_id:
            return None
        server = self._shelf.server(given.server_id)
        return Lead(url=server.ui, tag=given.session_id, page_key=server.page_key) if server is not None else Lead()

    def again(self, order: Order, directory: Path, *, ends: bool) -> LaunchPlan | None:
        """Returns None: the only thing that is left is a session, which the monitor releases."""
        return None

    def tend(self) -> None:
        """Returns at once: the monitor maintains the servers all the time."""


def session_of(order: Order, serving: Serving) -> Session:
    """Returns the session that an order's definition asks for. Raises LaunchError."""
    process = order.process
    is_remote = is_elsewhere(process.spark_master)
    name = words.filled([process.spark_name], order)[0] if process.spark_name else ""
    return Session(
        remote=process.spark_master if is_remote else "",
        master="" if is_remote else process.spark_master or serving.master,
        name=name,
        conf=(SHORT if process.spark_short == SparkShort.YES else {}) | command.settings(process),
        py_files=command.files(process, "spark_py_files"),
        files=command.files(process, "spark_files"),
        archives=command.files(process, "spark_archives"),
        jars=command.files(process, "spark_jars"),
    )
