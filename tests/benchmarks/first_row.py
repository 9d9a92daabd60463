"""From a put to the first row of the Spark job it starts, by each way to start one, all of them in turns.

The first act of a job behind its rows is to write into a pipe that the measuring process reads. A way is a definition,
a job is a script: to measure another, add it to :data:`WAYS` or :data:`JOBS`.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from tests.benchmarks.measuring import Figures, bars, in_turns, told
from tests.daemons import Daemon, define
from tests.waiting import until
from trigmon.demo import data
from trigmon.keeper import run_directory
from trigmon.launch.spark.cold import make_archive
from trigmon.launch.spark.cold.class_archive import Archives
from trigmon.launch.spark.cold.java import find_java
from trigmon.launch.spark.cold.submit import spark_home
from trigmon.launch.spark.warm.connect_server import Shelf, memory_of_session
from trigmon.mq.calls import Runs

PLAIN = "plain spark-submit"
WAYS: dict[str, dict[str, str]] = {
    # An option for its Java machine that says nothing is spark-submit's own to see to, so it is left to it.
    PLAIN: {"spark_environment": "SPARK_SUBMIT_OPTS=-Dleft.to=spark-submit"},
    "submit": {},
    "submit, a short job": {"spark_short": "yes"},
    # A session cannot have its server's settings.
    "connect": {"spark_start": "connect", "spark_conf": "spark.sql.shuffle.partitions=2"},
    "connect, a short job": {"spark_start": "connect", "spark_short": "yes", "spark_conf": ""},
}
"""Each way's name, and what its process definition says beyond :data:`DEFINITION`."""

DEFINITION = {
    "appl_type": "spark",
    "spark_master": "local[2]",
    "spark_conf": "spark.driver.bindAddress=127.0.0.1 spark.driver.host=127.0.0.1 spark.log.level=WARN "
    "spark.sql.shuffle.partitions=2",
}
INITQ = "SYSTEM.DEFAULT.INITIATION.QUEUE"
DATA_Q = "FIRST.ROW.FLIGHTS"
LONGEST_S = 600.0
REST_S = 100
"""Seconds at rest behind the warm-up of a server, until its Java has given back memory (a minute)."""

SCHEMA = """year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int, arr_time int,
    sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string, origin string, dest string,
    air_time int, distance int, hour int, minute int, time_hour timestamp"""
BEGINNING = """\
import sys, time
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
"""
END = """
with open(sys.argv[1], "w") as pipe:
    pipe.write(str(rows))
spark.stop()
"""
DRAINED = "a drain of 842 flights"
JOBS = {
    "range(1)": ("rows = len(spark.range(1).collect())", b"1"),
    # The rows go from Python into Spark, through a shuffle and back.
    "rows through a shuffle": (
        "rows = spark.createDataFrame([(n % 7, n) for n in range(1000)], ['k', 'n']).groupBy('k').sum('n').collect()\n"
        "rows = len(rows)",
        b"7",
    ),
    # Its last row is the first that is seen: a batch is in the table when all of it is.
    DRAINED: (
        "from trigmon.spark import drain\n"
        f"rows = drain(spark, table=f'{{sys.argv[2]}}/{{time.time_ns()}}', queue={DATA_Q!r}, "
        f"options={{'format': 'json'}}, schema='''{SCHEMA}''').rows",
        b"842",
    ),
}
"""Each job's name, its script between :data:`BEGINNING` and :data:`END`, and what it writes into the pipe."""


class FirstRow:
    """A queue manager with its monitor, and each job defined in every way."""

    def __init__(self, home: Path, *, archive: bool = True) -> None:
        """``archive`` False: jobs start without, and nothing is waited for that makes one."""
        home.mkdir()
        self.pipe = home / "pipe"
        os.mkfifo(self.pipe)
        self.reader = os.open(self.pipe, os.O_RDWR | os.O_NONBLOCK)  # for both, so that it never meets an end
        self.daemon = Daemon(home, with_monitor=True)
        if archive:
            self._archive()
        self.daemon.start()
        self.daemon.wait_for_event("monitor serves")
        self.connection = self.daemon.connect()
        define(self.connection, DATA_Q)
        for job, (text, _) in JOBS.items():
            script = home / f"job{list(JOBS).index(job)}.py"
            script.write_text(f"{BEGINNING}{text}\n{END}")
            for name, way in WAYS.items():
                queue = self._queue(job, name)
                said = DEFINITION | {"appl_id": f"{script} {self.pipe} {home / 'tables'}"} | way
                define(self.connection, f"{queue}.P", "PROCESS", **said)
                armed = {"trigger_control": "on", "trigger_type": "every", "initiation_q_name": INITQ}
                define(self.connection, queue, process_name=f"{queue}.P", **armed)
        self.daemon.wait_for_event("Spark Connect server is warm", LONGEST_S)

    def _archive(self) -> None:
        directory = self.daemon.data / "java"
        note = make_archive.make(Archives(directory), spark_home(os.environ), find_java(directory))
        assert note is not None, "somebody else is making it"
        assert not note.failed, note.failed
        print(f"an archive of classes of {note.size >> 20} MiB was made in {note.took_s:g} s", flush=True)

    @staticmethod
    def _queue(job: str, way: str) -> str:
        return f"FIRST.ROW.{list(JOBS).index(job)}.{list(WAYS).index(way)}"

    def memory(self) -> str:
        """Returns what the warm server takes of memory while no job runs."""
        (server,) = Shelf(self.daemon.data).all_servers()
        claim = run_directory.read(Shelf(self.daemon.data).directory(server.server_id))
        return f"{memory_of_session(claim['pid']) >> 20} MiB" if claim else "nothing: it is gone"

    def measure(self, job: str, way: str) -> tuple[float, float]:
        """Seconds from the put to the first row, and the load of the machine before it."""
        if job == DRAINED:
            with self.connection.open(DATA_Q, "output") as queue:
                queue.put_many(data.flights(), syncpoint=True)
                self.connection.commit()
        load = os.getloadavg()[0]
        began = time.perf_counter()
        self.connection.put(self._queue(job, way), b"go")
        heard, _, _ = select.select([self.reader], [], [], LONGEST_S)
        took = time.perf_counter() - began
        assert heard, f"no row in {took:.0f} s: {self.connection.call(Runs(limit=1)).rows}"
        assert os.read(self.reader, 10) == JOBS[job][1]
        until(self._is_quiet, LONGEST_S)  # it ends as well, and only then the next begins
        return took, load

    def _is_quiet(self) -> bool:
        return not any(self.connection.call(Runs(where={"state": state}, limit=1)).rows for state in ("due", "started"))

    def end(self) -> None:
        """Ends the queue manager, and its warm server, which a monitor leaves to its keeper for a while."""
        self.connection.disconnect()
        shelf = Shelf(self.daemon.data)
        claims = [run_directory.read(shelf.directory(server.server_id)) for server in shelf.all_servers()]
        self.daemon.end()
        os.close(self.reader)
        for claim in filter(None, claims):
            with suppress(ProcessLookupError):
                os.kill(claim["pid"], signal.SIGTERM)
            until(partial(_is_gone, claim["pid"]), LONGEST_S)


def _is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists() or not run_directory.start_ticks(pid)


@contextmanager
def first_rows(directory: Path, *, archive: bool) -> Iterator[FirstRow]:
    """Yields what measures, and ends it."""
    it = FirstRow(directory / "first-row", archive=archive)
    try:
        yield it
    finally:
        it.end()


def measured(directory: Path, rounds: int, *, quick: bool = False) -> dict[str, dict[str, Figures]]:
    """Returns the figures of each job by every way, taken in turns, and prints them. ``quick``: no archive, no rest."""
    found = {}
    with first_rows(directory, archive=not quick) as it:
        if not quick:
            time.sleep(REST_S)
            print(f"the warm server after {REST_S} s without a job: {it.memory()}", flush=True)
        for job in JOBS:
            figures = in_turns(rounds, {name: partial(it.measure, job, name) for name in WAYS}, "s")
            title = f"from a put to its Spark job's first row, local[2]: {job}"
            print("\n" + told(title, figures, against=PLAIN, note="load"), flush=True)
            print("\n" + bars(figures), flush=True)
            found[job] = figures
        print(f"the warm server behind all jobs: {it.memory()}", flush=True)
    return found
