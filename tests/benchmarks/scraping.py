"""What a scrape of the metrics costs with few and with many queues, and what clients notice of scrapes."""

from __future__ import annotations

import socket
import statistics
import threading
import time
from pathlib import Path
from urllib.request import urlopen

from tests.daemons import Daemon, define
from tests.processes import cpu_seconds
from tests.waiting import until
from trigmon.console.metrics.exporter import FRESH_S
from trigmon.mq.calls import PutMany

FRAME = 1000
SCRAPES = 20
BODY = b"x" * 1024


class Scraping:
    """A queue manager with so many queues and messages that serves its metrics."""

    def __init__(self, home: Path, queues: int, messages: int, seconds: float) -> None:
        self._seconds = seconds
        home.mkdir()
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self._url = f"http://127.0.0.1:{port}/metrics"
        self.daemon = Daemon(home, settings={"metrics.listen": f"127.0.0.1:{port}"}).start()
        each = messages // queues
        with self.daemon.connect() as qm:
            for number in range(queues):
                name = f"SCRAPED.{number:04}"
                define(qm, name, max_q_depth=999_999_999, def_persistence="persistent")
                sizes = [FRAME] * (each // FRAME) + ([each % FRAME] if each % FRAME else [])
                qm.pipeline(PutMany(q_name=name, bodies=[b"x"] * size) for size in sizes)
            define(qm, "PUT", max_q_depth=999_999_999)
        until(self._serves)

    def end(self) -> None:
        self.daemon.end()

    def _serves(self) -> bool:
        try:
            self._scrape()
        except OSError:
            return False
        return True

    def _scrape(self) -> bytes:
        with urlopen(self._url, timeout=60) as answer:
            return answer.read()

    def scrape(self) -> tuple[float, float]:
        """Milliseconds of a scrape, and of CPU of queue manager and exporter."""
        taken, before_s = [], self._cpu_seconds()
        for _ in range(SCRAPES):
            time.sleep(FRESH_S)  # a scrape before that gets what was read for the last one
            began = time.perf_counter()
            self._scrape()
            taken.append(time.perf_counter() - began)
        return statistics.median(taken) * 1e3, (self._cpu_seconds() - before_s) / SCRAPES * 1e3

    def _cpu_seconds(self) -> float:
        exporter = self.daemon.wait_for_event("metrics exporter started")["pid"]
        return cpu_seconds(self.daemon.process.pid) + cpu_seconds(exporter)

    def puts_alone(self) -> tuple[float, float]:
        """Puts a second of one client, and what 99 of 100 take at most, in milliseconds."""
        return self._puts()

    def puts_beside(self) -> tuple[float, float]:
        """The same with a scrape each second."""
        over = threading.Event()

        def scrape() -> None:
            while not over.wait(1.0):
                self._scrape()

        thread = threading.Thread(target=scrape)
        thread.start()
        try:
            return self._puts()
        finally:
            over.set()
            thread.join()

    def _puts(self) -> tuple[float, float]:
        waits = []
        with self.daemon.connect() as qm, qm.open("PUT", "output") as queue:
            end = time.perf_counter() + self._seconds
            while (began := time.perf_counter()) < end:
                queue.put(BODY, persistence="persistent")
                waits.append(time.perf_counter() - began)
        return len(waits) / self._seconds, sorted(waits)[len(waits) * 99 // 100] * 1e3
