"""A small Spark session of this machine, for tests of jobs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",
}
"""Little of everything: a test has few rows, and each part of a shuffle costs a start."""


@contextmanager
def local_session(java_home: str, directory: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yields a session of two threads, and stops it. Tables of SQL and what Spark spills go below ``directory``.

    ``settings`` come before those of this module. A session that is there already is yielded as it is, and left.
    """
    from pyspark.sql import SparkSession

    if there := SparkSession.getActiveSession():
        yield there
        return
    own = {"spark.sql.warehouse.dir": f"{directory}/warehouse", "spark.local.dir": f"{directory}/local"}
    builder = SparkSession.builder.master("local[2]").appName("tests")
    for name, value in {**_SETTINGS, **own, **settings}.items():
        builder = builder.config(name, value)
    before = dict(os.environ)
    os.environ |= {"JAVA_HOME": java_home, "PYSPARK_PYTHON": sys.executable}
    try:
        session = builder.getOrCreate()
    finally:
        os.environ.clear()
        os.environ.update(before)
    yield session
    session.stop()
