"""What clients wait for a put while a backup of many messages is made, beside what they wait without one."""

from __future__ import annotations

import subprocess
import sys
import time
from multiprocessing import get_context
from pathlib import Path

from tests.benchmarks.restarting import fill
from tests.daemons import Daemon, define
from trigmon.paths import file_name

CLIENTS = 16
SMALL, BODY = "SMALL", b"x" * 1024
_FORK = get_context("fork")


class BackingUp:
    """A queue manager with ``many`` messages of 1 KiB, and clients that put for ``seconds`` at least."""

    def __init__(self, home: Path, many: int, seconds: float) -> None:
        self._seconds = seconds
        self._file = home / "backup"
        home.mkdir()
        fill(home / file_name("QM1"), many)
        self.daemon = Daemon(home).start()
        with self.daemon.connect() as qm:
            define(qm, SMALL, max_q_depth=999_999_999)

    def end(self) -> None:
        self.daemon.end()

    def alone(self) -> tuple[float, float]:
        """Milliseconds that 99 of 100 puts take at most, and the longest."""
        return self._waits(lambda: time.sleep(self._seconds))

    def beside(self) -> tuple[float, float]:
        """The same while backups are made, one behind the other."""
        return self._waits(self._back_up)

    def _back_up(self) -> None:
        until = time.monotonic() + self._seconds
        while time.monotonic() < until:
            self._file.unlink(missing_ok=True)
            argv = [sys.executable, "-m", "trigmon", "backup", str(self._file)]
            subprocess.run(argv, env=self.daemon.env, check=True, stdout=subprocess.DEVNULL)

    def _waits(self, meanwhile) -> tuple[float, float]:
        over, results = _FORK.Event(), _FORK.SimpleQueue()
        ready = _FORK.Barrier(CLIENTS + 1)
        clients = [_FORK.Process(target=self._put, args=(ready, over, results)) for _ in range(CLIENTS)]
        for client in clients:
            client.start()
        ready.wait(60)
        meanwhile()
        over.set()
        waits = sorted(each for _ in clients for each in results.get())
        for client in clients:
            client.join()
        return waits[len(waits) * 99 // 100] * 1e3, waits[-1] * 1e3

    def _put(self, ready, over, results) -> None:
        waits = []
        with self.daemon.connect() as qm, qm.open(SMALL, "output") as queue:
            ready.wait(60)
            while not over.is_set():
                began = time.perf_counter()
                queue.put(BODY, persistence="persistent")
                waits.append(time.perf_counter() - began)
        results.put(waits)
