"""A drain without Spark: what the daemon and the reader spend on a row of a reservation, stage by stage.

These are CPU times, which say something on a busy machine too, where rates do not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import pyarrow as pa

from tests.benchmarks.heads import BATCH
from tests.benchmarks.loads import cpu_seconds_at_rest
from tests.daemons import Daemon, define
from tests.processes import cpu_seconds
from trigmon.client.reservation import Reservation
from trigmon.process_memory import keep_freed_memory
from trigmon.spark import options
from trigmon.spark.arrow_rows import COLUMNS
from trigmon.spark.reader import Stretch, read_stretch

Q, BODY = "RESERVED", b"x" * 1024
READS = {"data alone": ("data",), "data, id and time": ("data", "msg_id", "put_time"), "every column": tuple(COLUMNS)}
STAGES = ("reserve", *(f"read {what}" for what in READS), "settle")


class Reserving:
    """A queue manager on SQLite, and a queue of ``count`` messages of 1 KiB that are reserved, read and settled."""

    def __init__(self, home: Path, count: int) -> None:
        self._count = count
        home.mkdir()
        self._daemon = Daemon(home).start()
        self.spent: dict[str, list[tuple[float, float]]] = {stage: [] for stage in STAGES}
        with self._daemon.connect() as qm:
            define(qm, Q, def_persistence="persistent", max_q_depth=count)

    def end(self) -> None:
        self._daemon.end()

    def play(self) -> None:
        """Fills the queue and drains it once, and notes what each stage cost."""
        with self._daemon.connect() as qm:
            for first in range(0, self._count, BATCH):
                qm.put_many(Q, [BODY] * min(BATCH, self._count - first))
            with qm.open(Q, "input_shared") as queue:
                made: list[Reservation] = []
                self._note("reserve", lambda: made.append(queue.reserve("reader", max_messages=self._count)))
                for what, columns in READS.items():
                    self._note(f"read {what}", partial(self._read, made[0].number, columns))
                self._note("settle", made[0].settle)

    def _read(self, number: int, columns: tuple[str, ...]) -> None:
        schema = pa.schema([(name, COLUMNS[name][0]) for name in columns])
        given = options.read({"queue": Q, "qmgr": self._daemon.address})
        stretch = Stretch(number, [(0, self._count)])
        rows = sum(batch.num_rows for batch in read_stretch(given, stretch, schema))
        assert rows == self._count

    def _note(self, stage: str, work: Callable[[], object]) -> None:
        """Notes the CPU of the daemon, until it is idle again, and of this process, in microseconds a row."""
        pid = self._daemon.process.pid
        there, here = cpu_seconds(pid), time.process_time()
        work()
        here = time.process_time() - here
        now = cpu_seconds_at_rest(pid)  # the rows of what was settled go in slices afterwards
        self.spent[stage].append(((now - there) * 1e6 / self._count, here * 1e6 / self._count))


def measured(directory: Path, rounds: int, count: int) -> None:
    """Prints what a row costs at each stage, the median of the rounds."""
    keep_freed_memory()  # as a task that reads does
    it = Reserving(directory / "reserving", count)
    try:
        for _ in range(rounds):
            it.play()
    finally:
        it.end()
    print(f"CPU of a row in a reservation of {count:,} messages of 1 KiB, SQLite, us")
    for stage, spent in it.spent.items():
        there, here = (median(values) for values in zip(*spent, strict=True))
        lowest = min(there for there, _ in spent)
        print(f"  {stage:<34}daemon {there:>6.1f}   reader {here:>6.1f}   (daemon from {lowest:.1f})", flush=True)
