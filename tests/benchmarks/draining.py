"""A queue of messages of a kilobyte into Parquet: drained by Spark, by a loop of single gets, and Spark's own source.

The loop gets under syncpoint and writes with pyarrow, a file and a commit for 10,000 messages. Spark's source of
made-up rows (``rate-micro-batch``) says what Spark and the disk could do if nothing had to be got from anywhere.
Beside them: the same queue read and left as it is, and a small drain of JSON in which a few messages cannot be read.
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
from tests.benchmarks.loads import cpu_seconds_at_rest
from tests.daemons import Daemon, define
from tests.processes import cpu_seconds
from trigmon.launch.spark import sockets
from trigmon.launch.spark.cold.java import find_java
from trigmon.mq.calls import Clear
from trigmon.mq.replies import Counted
from trigmon.spark import drain
from trigmon.spark.drain_queue import Drained
from trigmon.spark.options import MAX_ROWS

Q, BODY, A_FILE = "DRAINED", b"x" * 1024, 10_000
FEW = 2_000
"""More than those that need no Python workers."""
JSON_Q, JSON, BAD = "DRAINED.JSON", 5_000, (7, 2_500, 4_999)
"""Messages of JSON, and which of them are none; they go to :data:`ASIDE_Q`."""
OBJECT = b'{"id": 1234567, "name": "a name", "pad": "%s"}' % (b"x" * 975)
"""A message of JSON of a kilobyte."""
ASIDE_Q = "DRAINED.ASIDE"
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

    def fill(self, count: int | None = None, *, rests: bool = True, q_name: str = Q, body: bytes = BODY) -> None:
        """Puts the messages, and waits until the queue manager has ended its own work with them."""
        left = self._count if count is None else count
        with self._daemon.connect() as qm, qm.open(q_name, "output") as queue:
            for first in range(0, left, BATCH):
                queue.put_many([body] * min(BATCH, left - first), syncpoint=True)
                qm.commit()
        if rests:
            cpu_seconds_at_rest(self._daemon.process.pid)

    def drained(self, batches: int = 1, *, rests: bool = True) -> tuple[float, float]:
        """Messages a second by ``trigmon.spark.drain``, from its first call to its last, and the daemon's us a row.

        ``batches`` 0: as many as it makes by itself. ``rests``: not straight behind the puts.
        """
        self.fill(min(self._count, FEW), rests=False)
        self._drain(MAX_ROWS)  # else Spark may have to start its Python workers, which end after a minute at rest
        self.fill(rests=rests)
        before = cpu_seconds(self._daemon.process.pid)
        done = self._drain(self._count // batches if batches else MAX_ROWS)
        assert done.rows == self._count
        spent = cpu_seconds_at_rest(self._daemon.process.pid) - before
        return done.rows / done.seconds, spent * 1e6 / self._count

    def _drain(self, max_rows: int) -> Drained:
        return drain(
            self._spark,
            table=self.table(),
            queue=Q,
            qmgr=self._daemon.address,
            max_rows=max_rows,
            options={"columns": "msg_id,put_time,data"},
        )

    def drained_json(self) -> tuple[float, float]:
        """Messages a second of objects whose fields become columns, in batches by default."""
        self.fill(q_name=JSON_Q, body=OBJECT)
        how = {"options": {"format": "json"}, "schema": "id bigint, name string, pad string"}
        done = drain(self._spark, table=self.table(), queue=JSON_Q, qmgr=self._daemon.address, **how)
        assert (done.rows, done.rejected) == (self._count, [])
        return done.rows / done.seconds, 0.0

    def browsed(self) -> tuple[float, float]:
        """Messages a second by a batch read of the whole queue, which stay there, into Spark's sink of nothing."""
        self.fill()
        of = {"queue": Q, "qmgr": self._daemon.address, "columns": "msg_id,put_time,data"}
        began = time.perf_counter()
        self._spark.read.format("trigmon").options(**of).load().write.format("noop").mode("overwrite").save()
        took = time.perf_counter() - began
        with self._daemon.connect() as qm:
            while qm.ask(Clear(q_name=Q), Counted).more:
                pass
        return self._count / took, 0.0

    def with_bad(self) -> tuple[float, float]:
        """Messages a second of 5,000 of JSON, of which three cannot be read and are set aside."""
        bodies = [b'{"id": %d, "name": "n"}' % n for n in range(JSON)]
        for at in BAD:
            bodies[at] = b'{"id": [1]}'
        with self._daemon.connect() as qm, qm.open(JSON_Q, "output") as queue:
            queue.put_many(bodies, syncpoint=True)
            qm.commit()
        how = {"options": {"format": "json"}, "schema": "id bigint, name string"}
        done = drain(self._spark, table=self.table(), queue=JSON_Q, qmgr=self._daemon.address, **how)
        assert (done.rows, len(done.rejected)) == (JSON - len(BAD), len(BAD))
        return JSON / done.seconds, 0.0

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
        "in batches by default": partial(it.drained, 0),
        "in four batches": partial(it.drained, 4),
        "straight behind the puts": partial(it.drained, 0, rests=False),
        "as JSON objects": it.drained_json,
        "read, and left there": it.browsed,
        "3 bad of 5,000 of JSON": it.with_bad,
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
    for name, value in sockets.settings(home / "sockets").items():  # as trigmon starts every Spark
        builder = builder.config(name, value)
    spark = builder.config("spark.log.level", "OFF").config("spark.ui.showConsoleProgress", "false").getOrCreate()
    try:
        with daemon.connect() as qm:
            define(qm, Q, def_persistence="persistent", max_q_depth=count)
            define(qm, ASIDE_Q, max_q_depth=100_000)
            of_json = {"backout_requeue_q_name": ASIDE_Q, "max_q_depth": max(count, JSON)}
            define(qm, JSON_Q, def_persistence="persistent", **of_json)
        measured = Draining(home, spark, daemon, count)
        measured.drained()
        yield measured
    finally:
        spark.stop()
        daemon.stop()
