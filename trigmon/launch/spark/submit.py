"""SPKSTART(SUBMIT): a job is started cold, by spark-submit, and what that needs on this machine."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from trigmon.launch import words
from trigmon.launch.grants import Grants
from trigmon.launch.port import STDERR, STDOUT, LaunchError, LaunchPlan, Lead, Order
from trigmon.launch.spark import command, log_lines, status, with_keytab
from trigmon.launch.spark.java import find_java
from trigmon.mq.attributes import Process

_FIRST_BYTES = 1 << 18


def spark_home(environ: Mapping[str, str]) -> Path:
    """SPARK_HOME when it has a spark-submit, else the pyspark of this Python. Raises LaunchError."""
    given = environ.get("SPARK_HOME")
    if given and (Path(given) / "bin" / "spark-submit").is_file():
        return Path(given)
    found = importlib.util.find_spec("pyspark")  # located, not imported: a monitor need not pay for it
    if found is None or found.origin is None:
        raise LaunchError("no Spark was found: SPARK_HOME has no bin/spark-submit, and pyspark is not installed")
    return Path(found.origin).parent


class SparkSubmitLauncher:
    """Plans what is started cold.

    ``data_directory`` is where the bundled Java's launcher is written when it is needed, ``grants`` what the
    administrator lets a definition ask for.
    """

    # spark-submit copies both streams of the Python it runs to its own stdout, so a traceback stands there.
    errors = (STDERR, STDOUT)

    def __init__(self, data_directory: Path, grants: Grants = Grants()) -> None:  # noqa: B008 - it never changes
        self.data_directory = data_directory
        self._grants = grants

    def plan(self, order: Order) -> LaunchPlan:
        """See :class:`~trigmon.launch.port.Launcher`."""
        process = order.process
        said = command.submitted(order, process.spark_keytab)
        check_program(order)
        environ = os.environ | command.variables(process)
        home = spark_home(environ)
        java = find_java(self.data_directory / "java", environ)
        spark = {"SPARK_HOME": str(home), "JAVA_HOME": str(java.home)}
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
            spark[name] = environ.get(name, sys.executable)
        argv = [str(home / "bin" / "spark-submit"), *said]
        if process.spark_keytab:
            argv = [sys.executable, "-I", with_keytab.__file__, *argv]
        plan = LaunchPlan(
            argv=argv,
            environment=words.environment(order) | command.variables(process) | spark,
            working_directory=process.working_directory,
        )
        return self._grants.completed(plan, _with_keytab(process))

    def told(self, directory: Path) -> dict[str, str]:
        """The id of the Spark application, where the cluster gave it one and Spark's log says it."""
        found = log_lines.application_in(_log(directory))
        return {"application_id": found} if found else {}

    def lead(self, order: Order, directory: Path, pid: int) -> Lead | None:
        """See :class:`~trigmon.launch.port.Launcher`. In client mode the driver is the run's own process."""
        log = _log(directory)
        return Lead(log_lines.application_in(log), status.of_local_driver(log, pid))

    def again(self, order: Order, directory: Path, *, ends: bool) -> LaunchPlan | None:
        """A driver ends with its process, and spark-submit of a driver elsewhere knows nothing to go on with."""
        return None


def _log(directory: Path) -> str:
    """The beginning of Spark's log."""
    try:
        with (directory / STDERR).open("rb") as file:
            return file.read(_FIRST_BYTES).decode(errors="replace")
    except OSError:
        return ""


def check_program(order: Order) -> None:
    """Raises LaunchError when the program is to lie on this machine and does not."""
    program = command.program(order)
    if not command.is_elsewhere(program) and not Path(program).is_file():
        kind = "jar" if order.process.spark_class or program.endswith(".jar") else "PySpark file"
        raise LaunchError(f"no {kind} {program}")


def _with_keytab(process: Process) -> Process:
    """The keytab is a secret like the others."""
    said = [text for text in (process.secrets.strip(), process.spark_keytab) if text]
    return replace(process, secrets=",".join(said)) if process.spark_keytab else process
