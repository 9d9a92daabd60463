"""Which launcher serves which APPLTYPE."""

from __future__ import annotations

from pathlib import Path

from trigmon.launch.port import Launcher
from trigmon.launch.process import ProcessLauncher
from trigmon.launch.spark_submit import SparkSubmitLauncher
from trigmon.mq.enums import ApplType


def launchers(data_directory: Path) -> dict[int, Launcher]:
    """The application types this machine can start; ``data_directory`` holds what launching writes once."""
    return {
        ApplType.UNIX: ProcessLauncher(),
        ApplType.SPARK: SparkSubmitLauncher(data_directory),
    }
