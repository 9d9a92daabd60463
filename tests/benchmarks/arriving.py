"""What a watch costs: files that become messages, beside files that are only moved and read, and a watch at rest."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from tests.benchmarks.measuring import in_turns, told
from tests.daemons import Daemon, define
from tests.processes import cpu_seconds
from tests.waiting import until
from tests.watches.watched_queue import WATCHES
from trigmon.mq.calls import Delete, Display, DisplayConnections

BODY = b"x" * 100


class Arriving:
    """A directory with so many files, and a queue manager."""

    def __init__(self, home: Path, count: int) -> None:
        home.mkdir()
        self.home, self.count, self.round = home, count, 0
        (home / "qm").mkdir()
        self.daemon = Daemon(home / "qm").start()

    def end(self) -> None:
        self.daemon.end()

    def _filled(self) -> Path:
        self.round += 1
        place = self.home / f"in{self.round}"
        place.mkdir()
        for number in range(self.count):
            (place / f"f{number:06}").write_bytes(BODY)
        return place

    def moved(self) -> tuple[float, float]:
        """Files a second that are read and moved, and nothing else; milliseconds to the first."""
        place = self._filled()
        (place / "done").mkdir()
        began, first_s = time.perf_counter(), 0.0
        for entry in sorted(os.scandir(place), key=lambda entry: entry.name):
            if entry.is_file():
                hashlib.sha256(Path(entry.path).read_bytes()).hexdigest()
                Path(entry.path).rename(place / "done" / entry.name)
                first_s = first_s or time.perf_counter() - began
        return self.count / (time.perf_counter() - began), first_s * 1000

    def watched(self) -> tuple[float, float]:
        """Files a second that become messages; milliseconds from the definition of the watch to the first."""
        place = self._filled()
        with self.daemon.connect() as qm:
            define(qm, "ARRIVED", max_q_depth=999_999_999)
            define(qm, "AT.ONCE", "WATCH", directory="/", pattern="none", q_name="ARRIVED")

            def depth() -> int:
                return int(qm.call(Display(object_type="QLOCAL", name="ARRIVED")).rows[0]["current_q_depth"])

            until(lambda: _pid(qm) is not None)  # the process is there, as it is for any watch but the first
            began = time.perf_counter()
            define(qm, "ALL", "WATCH", directory=str(place), quiet_s=0, q_name="ARRIVED")
            until(lambda: depth() > 0)
            first_s = time.perf_counter() - began
            until(lambda: depth() == self.count)
            took_s = time.perf_counter() - began
            for name in ("ALL", "AT.ONCE"):
                qm.call(Delete(object_type="WATCH", name=name))
            qm.call(Delete(object_type="QLOCAL", name="ARRIVED", purge=True))
        return self.count / took_s, first_s * 1000


class AtRest:
    """A queue manager with no watch, or with one over so many files that do not match."""

    def __init__(self, home: Path, files: int | None, seconds: float) -> None:
        home.mkdir()
        self.seconds = seconds
        place = home / "in"
        place.mkdir()
        for number in range(files or 0):
            (place / f"f{number:06}").write_bytes(b"")
        (home / "qm").mkdir()
        self.daemon = Daemon(home / "qm").start()
        self.pids = [self.daemon.process.pid]
        if files is None:
            return
        with self.daemon.connect() as qm:
            define(qm, "Q")
            define(qm, "W", "WATCH", directory=str(place), pattern="*.csv", q_name="Q")
            self.pids.append(until(lambda: _pid(qm)))

    def end(self) -> None:
        self.daemon.end()

    def rests(self) -> tuple[float, float]:
        """Milliseconds of CPU a second of all processes, and resident MB of the watches'."""
        before_s = sum(map(cpu_seconds, self.pids))
        time.sleep(self.seconds)
        spent_s = sum(map(cpu_seconds, self.pids)) - before_s
        resident = Path(f"/proc/{self.pids[-1]}/statm").read_text().split()[1] if len(self.pids) > 1 else "0"
        return spent_s / self.seconds * 1000, int(resident) * os.sysconf("SC_PAGE_SIZE") / 1e6


def _pid(qm) -> int | None:
    rows = qm.call(DisplayConnections()).rows
    return next((row["pid"] for row in rows if row["application"] == WATCHES), None)


def measured(directory: Path, rounds: int, count: int, seconds: float) -> None:
    """Prints both."""
    it = Arriving(directory / "arriving", count)
    try:
        ways = {"read and moved alone": it.moved, "with a message each": it.watched}
        figures = in_turns(rounds, ways, "files/s")
    finally:
        it.end()
    print(told(f"{count:,} files of 100 bytes", figures, against="read and moved alone", note="to the first, ms"))
    none, empty, full = "no watch", "a watch, no file", f"a watch, {count:,} other files"
    there = {}
    try:
        for name, files in ((none, None), (empty, 0), (full, count)):
            there[name] = AtRest(directory / f"rest{len(there)}", files, seconds)
        figures = in_turns(rounds, {name: each.rests for name, each in there.items()}, "ms/s")
    finally:
        for each in there.values():
            each.end()
    print("\n" + told("CPU at rest", figures, against=none, note="resident MB of the watches' process"), flush=True)
