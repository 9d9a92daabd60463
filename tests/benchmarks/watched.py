"""What the web console costs clients at work: messages of 16 clients with and without browsers that look at it."""

from __future__ import annotations

import socket
import threading
import time
from multiprocessing import get_context
from pathlib import Path

from tests.console.web.web_process import Web
from tests.daemons import Daemon, define
from tests.processes import cpu_seconds

CLIENTS, VIEWERS = 16, 5
BODY = b"x" * 1024
PATHS = ("/events/overview", "/events/overview", "/events/overview", "/events/queues/Q0", "/events/queues/Q1")
_FORK = get_context("fork")


class Watched:
    """A queue manager with a queue for each client, which puts a message and gets it, on and on.

    A turn lasts ``seconds``. The clients go on between the turns, so that turns can be short and many.
    """

    def __init__(self, home: Path, seconds: float) -> None:
        home.mkdir()
        self._seconds = seconds
        self.daemon = Daemon(home).start()
        with self.daemon.connect() as qm:
            for number in range(CLIENTS):
                define(qm, f"Q{number}", def_persistence="persistent")
        self._over = _FORK.Event()
        self._done = _FORK.Array("Q", CLIENTS, lock=False)
        ready = _FORK.Barrier(CLIENTS + 1)
        self._clients = [_FORK.Process(target=self._work, args=(number, ready)) for number in range(CLIENTS)]
        for client in self._clients:
            client.start()
        ready.wait(60)
        self._web = Web(self.daemon.env)
        self._web.enter()

    def end(self) -> None:
        self._over.set()
        for client in self._clients:
            client.join()
        self._web.end()
        self.daemon.end()

    def alone(self) -> tuple[float, float]:
        """Messages a second that were put and got while nobody looks at a page."""
        return self._rate(), 0.0

    def beside(self) -> tuple[float, float]:
        """The same while browsers look at live pages; and the processor time of the console, in percent of one."""
        links = [self._viewer(path) for path in PATHS]
        before, began = cpu_seconds(self._web.process.pid), time.monotonic()
        try:
            rate = self._rate()
            return rate, (cpu_seconds(self._web.process.pid) - before) / (time.monotonic() - began) * 100
        finally:
            for link in links:
                link.close()

    def _viewer(self, path: str) -> socket.socket:
        web = self._web
        link = socket.create_connection(web.host.split(":"), 60)
        link.sendall(f"GET {path} HTTP/1.1\r\nHost: {web.host}\r\nCookie: {web.cookie}\r\n\r\n".encode())
        assert b"200 OK" in link.recv(64)
        threading.Thread(target=_read_to_the_end, args=(link,), daemon=True).start()
        return link

    def _rate(self) -> float:
        before, began = sum(self._done), time.perf_counter()
        time.sleep(self._seconds)
        return (sum(self._done) - before) / (time.perf_counter() - began)

    def _work(self, number, ready) -> None:
        with self.daemon.connect() as qm, qm.open(f"Q{number}", "output", "input_shared") as queue:
            ready.wait(60)
            while not self._over.is_set():
                queue.put(BODY)
                queue.get()
                self._done[number] += 1


def _read_to_the_end(link: socket.socket) -> None:
    try:
        while link.recv(65_536):
            pass
    except OSError:
        return
