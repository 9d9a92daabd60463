"""The launchers by application type (APPLTYPE)."""

from __future__ import annotations

from pathlib import Path

from trigmon.launch.launch_plan import Launcher
from trigmon.launch.permissions import Grants
from trigmon.launch.spark.cluster.rest_start import SparkRestLauncher
from trigmon.launch.spark.cold.submit import SparkSubmitLauncher
from trigmon.launch.spark.spark_launcher import SparkLauncher
from trigmon.launch.spark.warm.connect import SparkConnectLauncher
from trigmon.launch.spark.warm.connect_server import Serving, Shelf
from trigmon.launch.unix import ProcessLauncher
from trigmon.mq.enums import ApplType, SparkStart


def launchers(
    data_directory: Path, grants: Grants | None = None, serving: Serving | None = None, *, class_archives: bool = True
) -> dict[int, Launcher]:
    """Returns the launchers of the application types that this machine can start.

    ``data_directory`` holds files that launchers write once. ``serving`` are the settings of Spark Connect servers.
    ``class_archives`` says whether archives of classes are made for Spark's Java machines.
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
