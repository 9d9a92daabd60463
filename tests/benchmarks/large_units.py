"""A client's put and get while the daemon finishes the large unit of work of another client.

What a client waits is compared with what it waits on the idle daemon, in the same run.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

from tests.daemons import Daemon, define
from tests.processes import cpu_seconds
from trigmon.client.connection import Connection
from trigmon.client.queue import Queue
from trigmon.mq.calls import Alter

LARGE, SMALL = "LARGE", "SMALL"
BATCH = 1000
IDLE_PAIRS, PAIRS = 500, 20
IDLE_S = 0.5
ENDS = ("commit of puts", "backout of gets", "commit of gets", "backout of puts")


class LargeUnits:
    """A queue manager on SQLite; units of work of ``count`` messages of 100 bytes."""

    def __init__(self, home: Path, count: int) -> None:
        self.count = count
        home.mkdir()
        self.daemon = Daemon(home).start()
        with self.daemon.connect() as qm:
            attributes = {"max_uncommitted_msgs": 999_999_999}
            qm.call(Alter(object_type="QMGR", name="QM1", attributes=attributes))
            for name in (LARGE, SMALL):
                define(qm, name, max_q_depth=999_999_999, def_persistence="persistent")

    def end(self) -> None:
        self.daemon.end()

    def idle(self) -> list[float]:
        """Returns the milliseconds of pairs of a put and a get on the idle daemon."""
        with self.daemon.connect() as qm, qm.open(SMALL, "input_shared", "output") as queue:
            return [pair(queue) for _ in range(IDLE_PAIRS)]

    def during(self, end: str) -> tuple[float, list[float]]:
        """Returns the milliseconds of the unit's end, and of the pairs until the daemon is idle again."""
        connect = self.daemon.connect
        with connect() as large, connect() as qm, qm.open(SMALL, "input_shared", "output") as small:
            self._work(large, end)
            began = time.perf_counter()
            large.commit() if end.startswith("commit") else large.backout()
            took_ms = (time.perf_counter() - began) * 1000
            pairs = [pair(small) for _ in range(PAIRS)]
            while not self._is_idle():
                pairs += [pair(small) for _ in range(PAIRS)]
            return took_ms, pairs

    def _work(self, qm: Connection, end: str) -> None:
        if end.endswith("puts"):
            with qm.open(LARGE, "output") as queue:
                for _ in range(self.count // BATCH):
                    queue.put_many([b"m" * 100] * BATCH, syncpoint=True)
            return
        got = 0
        with qm.open(LARGE, "input_shared") as queue:
            while got < self.count:
                got += len(queue.get_many(BATCH, syncpoint=True))

    def _is_idle(self) -> bool:
        """Returns whether the daemon has used no CPU for a while: its slices follow one another at once."""
        before = cpu_seconds(self.daemon.process.pid)
        time.sleep(IDLE_S)
        return cpu_seconds(self.daemon.process.pid) == before


def pair(queue: Queue) -> float:
    """Puts and gets a persistent message; returns the milliseconds."""
    began = time.perf_counter()
    queue.put(b"s" * 100)
    queue.get()
    return (time.perf_counter() - began) * 1000


def measured(directory: Path, count: int) -> None:
    """Prints what another client waits, on the idle daemon and during each kind of end."""
    units = LargeUnits(directory / "large-units", count)
    try:
        idle = units.idle()
        print(f"put and get of another client while a unit of {count:,} messages ends, SQLite")
        print(line("on the idle daemon", idle, idle), flush=True)
        for end in ENDS:
            took_ms, pairs = units.during(end)
            print(f"{line(end, pairs, idle)}   answered in {took_ms:.1f} ms", flush=True)
    finally:
        units.end()


def line(title: str, pairs: list[float], idle: list[float]) -> str:
    """Returns one row of the table: the median, its ratio to the idle daemon's, and the worst, in milliseconds."""
    middle = median(pairs)
    return f"  {title:<34}{middle:>10.2f} ms {middle / median(idle):>8.2f} x   worst {max(pairs):.1f} ms"
