"""APPLTYPE SPARK: the command line of spark-submit, as a pure function, and what it needs on this machine."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from trigmon.launch import words
from trigmon.launch.grants import Grants
from trigmon.launch.port import STDERR, STDOUT, LaunchError, LaunchPlan, Order
from trigmon.launch.spark.java import find_java
from trigmon.rules.programs import has_placeholder

# As a standalone master, YARN and Kubernetes name applications; a local one is named nowhere but in its driver.
_APPLICATION = re.compile(rb"\b(?:app-[0-9]{14}-[0-9]{4}|application_[0-9]{13}_[0-9]{4,}|spark-[0-9a-f]{32})\b")
_FIRST_BYTES = 1 << 18


def command(spark_submit: str, order: Order) -> list[str]:
    """spark-submit's argument list: master, conf, py-files, then the script and its arguments.

    APPLICID is the script (further words go before the definition's arguments), ENVRDATA's words come last, and
    placeholders are filled in all of them. Pure; raises LaunchError.
    """
    words.check_characters(order)
    process = order.process
    script, *first = words.split_words(order.trigger.appl_id, "APPLICID") or [""]
    if not script or has_placeholder([script]) or script.startswith("-"):
        raise LaunchError(f"APPLICID must begin with the PySpark file to run, not {script!r}")
    argv = [spark_submit]
    if process.spark_master:
        argv += ["--master", process.spark_master]
    for setting in words.split_words(process.spark_conf, "SPKCONF"):
        if "=" not in setting.lstrip("="):
            raise LaunchError(f"SPKCONF must hold words of the form key=value, not {setting!r}")
        argv += ["--conf", setting]
    files = [located(name.strip(), process.working_directory) for name in process.spark_py_files.split(",")]
    if any(files):
        argv += ["--py-files", ",".join(name for name in files if name)]
    after = (
        first + words.split_words(process.spark_arguments, "SPKARGS") + words.environment_words(order.trigger.env_data)
    )
    return [*argv, located(script, process.working_directory), *words.filled(after, order)]


def located(name: str, working_directory: str) -> str:
    """A file's name as Spark will find it: relative ones lie beside the definition, URLs stay as they are."""
    if not name or "://" in name or name.startswith("local:"):
        return name
    return str(Path(working_directory, name))


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
    """Plans APPLTYPE SPARK.

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
        home = spark_home(os.environ)
        argv = command(str(home / "bin" / "spark-submit"), order)
        script = located(words.split_words(order.trigger.appl_id, "APPLICID")[0], order.process.working_directory)
        if "://" not in script and not script.startswith("local:") and not Path(script).is_file():
            raise LaunchError(f"no PySpark file {script}")
        java = find_java(self.data_directory / "java")
        spark = {"SPARK_HOME": str(home), "JAVA_HOME": str(java.home)}
        for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
            spark[name] = os.environ.get(name, sys.executable)
        plan = LaunchPlan(
            argv=argv,
            environment=words.environment(order) | spark,
            working_directory=order.process.working_directory,
        )
        return self._grants.completed(plan, order.process)

    def told(self, directory: Path) -> dict[str, str]:
        """The id of the Spark application, where the cluster gave it one and Spark's log says it."""
        try:
            with (directory / STDERR).open("rb") as file:
                found = _APPLICATION.search(file.read(_FIRST_BYTES))
        except OSError:
            return {}
        return {"application_id": found[0].decode()} if found else {}
