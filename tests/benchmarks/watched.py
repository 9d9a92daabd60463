"""What the web console costs clients at work: messages of 16 clients with and without browsers that look at it."""

from __future__ import annotations

import socket
import threading
import time
from multiprocessing import get_context
from pathlib import Path

from tests.benchmarks.loads import cpu_seconds
from tests.console.web.web_process import Web
from tests.daemons import Daemon, define

CLIENTS, VIEWERS = 16, 5
BODY = b"x" * 1024
PATHS = ("/events/overview", "/events/overview", "/events/overview", "/events/queues/Q0", "/events/queues/Q1")
_FORK = get_context("fork")


class Watched:
    """A queue manager with a queue for each client, which puts a message and gets it, for ``seconds``."""

    def __init__(self, home: Path, seconds: float) -> None:
        home.mkdir()
        self._seconds = seconds
        self.daemon = Daemon(home).start()
        with self.daemon.connect() as qm:
            for number in range(CLIENTS):
                define(qm, f"Q{number}", def_persistence="persistent")
        self._web: Web | None = None

    def end(self) -> None:
        self.daemon.end()

    def alone(self) -> tuple[float, float]:
        """Messages a second that were put and got."""
        return self._rate(), 0.0

    def beside(self) -> tuple[float, float]:
        """The same while browsers look at live pages; and the processor time of the console, in percent of one."""
        web = Web(self.daemon.env)
        web.enter()
        links = [self._viewer(web, path) for path in PATHS]
        before, began = cpu_seconds(web.process.pid), time.monotonic()
        try:
            rate = self._rate()
            return rate, (cpu_seconds(web.process.pid) - before) / (time.monotonic() - began) * 100
        finally:
            for link in links:
                link.close()
            web.end()

    def _viewer(self, web: Web, path: str) -> socket.socket:
        link = socket.create_connection(web.host.split(":"), 60)
        link.sendall(f"GET {path} HTTP/1.1\r\nHost: {web.host}\r\nCookie: {web.cookie}\r\n\r\n".encode())
        assert b"200 OK" in link.recv(64)
        threading.Thread(target=_read_to_the_end, args=(link,), daemon=True).start()
        return link

    def _rate(self) -> float:
        over, results = _FORK.Event(), _FORK.SimpleQueue()
        ready = _FORK.Barrier(CLIENTS + 1)
        clients = [_FORK.Process(target=self._work, args=(n, ready, over, results)) for n in range(CLIENTS)]
        for client in clients:
            client.start()
        ready.wait(60)
        began = time.perf_counter()
        time.sleep(self._seconds)
        over.set()
        done = sum(results.get() for _ in clients)
        took = time.perf_counter() - began
        for client in clients:
            client.join()
        return done / took

    def _work(self, number, ready, over, results) -> None:
        done = 0
        with self.daemon.connect() as qm, qm.open(f"Q{number}", "output", "input_shared") as queue:
            ready.wait(60)
            while not over.is_set():
                queue.put(BODY)
                queue.get()
                done += 1
        results.put(done)


def _read_to_the_end(link: socket.socket) -> None:
    try:
        while link.recv(65_536):
            pass
    except OSError:
        return
