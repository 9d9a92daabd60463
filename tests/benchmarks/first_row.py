"""From a put to the first row of the Spark job it starts, by each way to start one, all of them in turns.

The job's rows go from Python into Spark, through a shuffle and back. Its first act behind that is to write into a pipe
that the measuring process reads. A way is a definition: to measure another, add it to :data:`WAYS`.
"""

from __future__ import annotations

import os
import select
import time
from functools import partial
from pathlib import Path

from tests.benchmarks.measuring import Figures, bars, in_turns, told
from tests.daemons import Daemon, define
from tests.waiting import until
from trigmon.launch.spark.cold import make_archive
from trigmon.launch.spark.cold.class_archive import Archives
from trigmon.launch.spark.cold.java import find_java
from trigmon.launch.spark.cold.submit import spark_home
from trigmon.mq.calls import Runs

PLAIN = "plain spark-submit"
WAYS: dict[str, dict[str, str]] = {
    # An option for its Java machine that says nothing is spark-submit's own to see to, so it is left to it.
    PLAIN: {"spark_environment": "SPARK_SUBMIT_OPTS=-Dleft.to=spark-submit"},
    "submit": {},
    "submit, a short job": {"spark_short": "yes"},
    # A session cannot have its server's settings.
    "connect": {"spark_start": "connect", "spark_conf": "spark.sql.shuffle.partitions=2"},
}
"""Each way's name, and what its process definition says beyond :data:`DEFINITION`."""

DEFINITION = {
    "appl_type": "spark",
    "spark_master": "local[2]",
    "spark_conf": "spark.driver.bindAddress=127.0.0.1 spark.driver.host=127.0.0.1 spark.log.level=WARN "
    "spark.sql.shuffle.partitions=2",
}
INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
LONGEST_S = 600.0

JOB = """\
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.createDataFrame([(n % 7, n) for n in range(1000)], ["k", "n"]).groupBy("k").sum("n").collect()
with open(sys.argv[1], "w") as pipe:
    pipe.write(str(len(rows)))
spark.stop()
"""


class FirstRow:
    """A queue manager with its monitor, and a job that is defined in every way."""

    def __init__(self, home: Path, *, archive: bool = True) -> None:
        """``archive`` False: jobs start without, and nothing is waited for that makes one."""
        home.mkdir()
        self.pipe = home / "pipe"
        os.mkfifo(self.pipe)
        self.reader = os.open(self.pipe, os.O_RDWR | os.O_NONBLOCK)  # for both, so that it never meets an end
        job = home / "job.py"
        job.write_text(JOB)
        self.daemon = Daemon(home, with_monitor=True)
        if archive:
            self._archive()
        self.daemon.start()
        self.daemon.wait_for_event("monitor serves")
        self.connection = self.daemon.connect()
        for name, way in WAYS.items():
            said = DEFINITION | {"appl_id": f"{job} {self.pipe}"} | way
            define(self.connection, self._queue(name) + ".P", "PROCESS", **said)
            armed = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": INITQ}
            define(self.connection, self._queue(name), process_name=self._queue(name) + ".P", **armed)
        self.daemon.wait_for_event("Spark Connect server is warm", LONGEST_S)

    def _archive(self) -> None:
        directory = self.daemon.data / "java"
        note = make_archive.make(Archives(directory), spark_home(os.environ), find_java(directory))
        assert note is not None, "somebody else is making it"
        assert not note.failed, note.failed
        print(f"an archive of classes of {note.size >> 20} MiB was made in {note.took_s:g} s", flush=True)

    @staticmethod
    def _queue(name: str) -> str:
        return f"FIRST.ROW.{list(WAYS).index(name)}"

    def measure(self, name: str) -> tuple[float, float]:
        """Seconds from the put to the first row, and the load of the machine before it."""
        load = os.getloadavg()[0]
        began = time.perf_counter()
        self.connection.put(self._queue(name), b"go")
        heard, _, _ = select.select([self.reader], [], [], LONGEST_S)
        took = time.perf_counter() - began
        assert heard, f"no row in {took:.0f} s: {self.connection.call(Runs(limit=1)).rows}"
        assert os.read(self.reader, 10) == b"7"
        until(self._is_quiet, LONGEST_S)  # it ends as well, and only then the next begins
        return took, load

    def _is_quiet(self) -> bool:
        return not any(self.connection.call(Runs(where={"state": state}, limit=1)).rows for state in ("due", "started"))

    def end(self) -> None:
        self.connection.disconnect()
        self.daemon.end()
        os.close(self.reader)


def measured(directory: Path, rounds: int, *, archive: bool = True) -> dict[str, Figures]:
    """Every way in turns, and what they showed as text on standard output."""
    it = FirstRow(directory / "first-row", archive=archive)
    try:
        figures = in_turns(rounds, {name: partial(it.measure, name) for name in WAYS}, "s")
    finally:
        it.end()
    title = "from a put to its Spark job's first row, local[2]"
    print("\n" + told(title, figures, against=PLAIN, note="load"), flush=True)
    print("\n" + bars(figures), flush=True)
    return figures
