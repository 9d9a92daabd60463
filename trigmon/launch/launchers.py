"""Which launcher serves which APPLTYPE."""

from __future__ import annotations

from pathlib import Path

from trigmon.launch.grants import Grants
from trigmon.launch.port import Launcher
from trigmon.launch.process import ProcessLauncher
from trigmon.launch.spark.launcher import SparkLauncher
from trigmon.launch.spark.rest_start import SparkRestLauncher
from trigmon.launch.spark.submit import SparkSubmitLauncher
from trigmon.mq.enums import ApplType, SparkStart


def launchers(data_directory: Path, grants: Grants | None = None) -> dict[int, Launcher]:
    """The application types this machine can start; ``data_directory`` holds what launching writes once."""
    grants = grants or Grants()
    return {
        ApplType.UNIX: ProcessLauncher(grants),
        ApplType.SPARK: SparkLauncher(
            {
                SparkStart.SUBMIT: SparkSubmitLauncher(data_directory, grants),
                SparkStart.REST: SparkRestLauncher(grants),
            }
        ),
    }
