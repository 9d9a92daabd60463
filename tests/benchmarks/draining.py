"""A queue of messages of a kilobyte into Parquet: drained by Spark, by a loop of single gets, and Spark's own source.

The loop gets under syncpoint and writes with pyarrow, a file and a commit for 10,000 messages. Spark's source of
made-up rows (``rate-micro-batch``) says what Spark and the disk could do if nothing had to be got from anywhere.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

import trigmon
from tests.benchmarks.heads import BATCH
from tests.benchmarks.loads import cpu_seconds
from tests.daemons import Daemon, define
from trigmon.launch.spark.cold.java import find_java
from trigmon.spark import drain

Q, BODY, A_FILE = "DRAINED", b"x" * 1024, 10_000
ROOT = Path(__file__).parents[2]


class Draining:
    """A queue manager and a warm Spark of two threads, both for all rounds."""

    def __init__(self, home: Path, spark: Any, daemon: Daemon, count: int) -> None:
        self._home = home
        self._spark = spark
        self._daemon = daemon
        self._count = count
        self._number = 0

    def table(self) -> Path:
        self._number += 1
        return self._home / f"table{self._number}"

    def fill(self) -> None:
        with self._daemon.connect() as qm, qm.open(Q, "output") as queue:
            for first in range(0, self._count, BATCH):
                queue.put_many([BODY] * min(BATCH, self._count - first), syncpoint=True)
                qm.commit()

    def drained(self, batches: int = 1) -> tuple[float, float]:
        """Messages a second by ``trigmon.spark.drain``, from its first call to its last, and the daemon's us a row."""
        self.fill()
        before = cpu_seconds(self._daemon.process.pid)
        done = drain(
            self._spark,
            table=self.table(),
            queue=Q,
            qmgr=self._daemon.address,
            max_rows=self._count // batches,
            options={"columns": "msg_id,put_time,data"},
        )
        assert done.rows == self._count
        spent = cpu_seconds(self._daemon.process.pid) - before
        return done.rows / done.seconds, spent * 1e6 / self._count

    def looped(self) -> tuple[float, float]:
        """Messages a second by single gets."""
        self.fill()
        table = self.table()
        table.mkdir()
        began = time.perf_counter()
        with self._daemon.connect() as qm, qm.open(Q, "input_shared") as queue:
            got: list[Any] = []
            while True:
                try:
                    got.append(queue.get(syncpoint=True))
                except trigmon.NoMsgAvailable:
                    break
                if len(got) == A_FILE:
                    self._written(qm, got, table)
            self._written(qm, got, table)
        return self._count / (time.perf_counter() - began), 0.0

    def _written(self, qm: Any, got: list[Any], table: Path) -> None:
        columns = {
            "msg_id": [m.msg_id for m in got],
            "put_time": [m.put_ms for m in got],
            "data": [m.data for m in got],
        }
        pyarrow.parquet.write_table(pa.table(columns), table / f"{time.time_ns()}.parquet")
        qm.commit()
        got.clear()

    def made_up(self) -> tuple[float, float]:
        """Rows a second of Spark's own source into a sink of its own, over one batch of as many."""
        source = self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", self._count).load()
        rows = source.selectExpr("value", "timestamp", "repeat('x', 1024) as data")
        table = self.table()
        written = rows.writeStream.format("parquet").option("path", str(table))
        query = written.option("checkpointLocation", f"{table}.checkpoint").start()
        while not query.recentProgress:
            time.sleep(0.02)
        took_ms = query.recentProgress[0]["durationMs"]["triggerExecution"]
        query.stop()
        return self._count / took_ms * 1e3, 0.0


def ways(it: Draining) -> dict[str, Callable[[], tuple[float, float]]]:
    """Returns the ways that are compared, by their names."""
    return {
        "single gets and pyarrow": it.looped,
        "trigmon.spark.drain": it.drained,
        "in four batches": partial(it.drained, 4),
        "made-up rows": it.made_up,
    }


@contextmanager
def draining(home: Path, count: int) -> Iterator[Draining]:
    """What is measured, warmed up by one drain."""
    from pyspark.sql import SparkSession

    os.environ["JAVA_HOME"] = str(find_java(home / "java").home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "trigmon" / "spark" / "found")])
    daemon = Daemon(home / "drained")
    daemon.home.mkdir(parents=True)
    daemon.start()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.log.level", "OFF").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    try:
        with daemon.connect() as qm:
            define(qm, Q, def_persistence="persistent", max_q_depth=count)
        measured = Draining(home, spark, daemon, count)
        measured.drained()
        yield measured
    finally:
        spark.stop()
        daemon.stop()
