"""One real Spark (local[2]) for all tests of this folder that are marked so, on the Java that a launcher would find."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from pyarrow.parquet import read_metadata

from tests.daemons import define
from trigmon.launch.spark.cold.java import find_java
from trigmon.mq.calls import Display

ROOT = Path(__file__).parents[2]
FOUND = ROOT / "trigmon" / "spark" / "found"
_numbers = iter(range(1, 10_000))


def spark_environment(directory):
    """Returns the variables of a process that runs Spark from this checkout."""
    return {
        "JAVA_HOME": str(find_java(Path(directory) / "java").home),
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(FOUND)]),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONWARNINGS": "default",
    }


def writers(table):
    """Returns which programs have written the table's Parquet files."""
    return {read_metadata(file).created_by.split(" version")[0] for file in Path(table).rglob("*.parquet")}


def postgres_jar():
    """Returns PostgreSQL's JDBC driver, from a variable or the files of Maven; None where there is none."""
    named = os.environ.get("TRIGMON_TESTS_POSTGRES_JAR")
    kept = sorted(Path.home().glob(".m2/repository/org/postgresql/postgresql/*/postgresql-*.jar"))
    return named or (str(kept[-1]) if kept else None)


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    before = dict(os.environ)
    os.environ.update(spark_environment(tmp_path_factory.mktemp("java")))
    try:
        settings = {
            "spark.ui.enabled": "false",
            "spark.log.level": "ERROR",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "Asia/Tokyo",
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
            "spark.ui.showConsoleProgress": "false",
        }
        if jar := postgres_jar():
            settings["spark.jars"] = jar  # as --jars does
        builder = SparkSession.builder.master("local[2]").appName("tests")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    finally:
        os.environ.clear()
        os.environ.update(before)
    yield session
    session.stop()


@pytest.fixture
def q_name(qm):
    """Returns a queue of the test's own."""
    name = f"SPARK.{next(_numbers)}"
    define(qm, name, def_persistence="persistent", max_q_depth=100_000)
    return name


@pytest.fixture
def here(shared_daemon, q_name, spark):
    """Returns what says to drain which queue."""
    return {"queue": q_name, "qmgr": shared_daemon.address}


def depth(qm, name):
    return qm.call(Display(object_type="QLOCAL", name=name)).rows[0]["current_q_depth"]


def row_of(qm, name):
    return qm.call(Display(object_type="QLOCAL", name=name)).rows[0]
