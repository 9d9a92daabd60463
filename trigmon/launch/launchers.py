"""Which launcher serves which APPLTYPE."""

from __future__ import annotations

from pathlib import Path

from trigmon.launch.grants import Grants
from trigmon.launch.port import Launcher
from trigmon.launch.process import ProcessLauncher
from trigmon.launch.spark.launcher import SparkLauncher
from trigmon.launch.spark.submit import SparkSubmitLauncher
from trigmon.mq.enums import ApplType, SparkStart


def launchers(
    data_directory: Path, grants: Grants | None = None, *, class_archives: bool = True
) -> dict[int, Launcher]:
    """The application types this machine can start; ``data_directory`` holds what launching writes once.

    ``class_archives`` says whether archives of classes are made for Spark's Java machines.
    """
    grants = grants or Grants()
    cold = SparkSubmitLauncher(data_directory, grants, makes_archives=class_archives)
    return {
        ApplType.UNIX: ProcessLauncher(grants),
        ApplType.SPARK: SparkLauncher({SparkStart.SUBMIT: cold}),
    }
