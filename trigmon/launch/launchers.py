"""Which launcher serves which APPLTYPE."""

from __future__ import annotations

from pathlib import Path

from trigmon.launch.grants import Grants
from trigmon.launch.port import Launcher
from trigmon.launch.process import ProcessLauncher
from trigmon.launch.spark.connect import SparkConnectLauncher
from trigmon.launch.spark.launcher import SparkLauncher
from trigmon.launch.spark.rest_start import SparkRestLauncher
from trigmon.launch.spark.serving import Serving, Shelf
from trigmon.launch.spark.submit import SparkSubmitLauncher
from trigmon.mq.enums import ApplType, SparkStart


def launchers(
    data_directory: Path, grants: Grants | None = None, serving: Serving | None = None, *, class_archives: bool = True
) -> dict[int, Launcher]:
    """The application types this machine can start; ``data_directory`` holds what launching writes once.

    ``serving`` is of what kind Spark Connect servers are; ``class_archives`` says whether archives of classes are made
    for Spark's Java machines.
    """
    grants = grants or Grants()
    cold = SparkSubmitLauncher(data_directory, grants, makes_archives=class_archives)
    ways: dict[SparkStart, Launcher] = {
        SparkStart.SUBMIT: cold,
        SparkStart.CONNECT: SparkConnectLauncher(cold, Shelf(data_directory), grants, serving or Serving()),
        SparkStart.REST: SparkRestLauncher(grants),
    }
    return {
        ApplType.UNIX: ProcessLauncher(grants),
        ApplType.SPARK: SparkLauncher(ways),
    }
