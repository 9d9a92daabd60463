"""What is measured: our daemon, beanstalkd with a sync a write, and SQLite's own commits on the same disk.

Each can put and get durable messages of a kilobyte. Times are of whole client processes; see :mod:`loads`.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import apsw

from tests.benchmarks.loads import seconds
from tests.daemons import Daemon, define
from tests.processes import cpu_seconds

BODY = b"x" * 1024
Q = "BENCH"


class Trigmon:
    """A queue manager; messages are persistent, so an answered put outlives a power cut."""

    def __init__(self, home: Path) -> None:
        self.daemon = Daemon(home).start()
        with self.daemon.connect() as qm:
            define(qm, Q, max_q_depth=999_999_999, def_persistence="persistent")

    def end(self) -> None:
        self.daemon.end()

    def put(self, count: int, begin: Callable[[], None]) -> None:
        with self.daemon.connect() as qm, qm.open(Q, "output") as queue:
            begin()
            for _ in range(count):
                queue.put(BODY)

    def get(self, count: int, begin: Callable[[], None]) -> None:
        with self.daemon.connect() as qm, qm.open(Q, "input_shared") as queue:
            begin()
            for _ in range(count):
                queue.get()

    def put_units(self, count: int, begin: Callable[[], None]) -> None:
        with self.daemon.connect() as qm, qm.open(Q, "output") as queue:
            begin()
            for number in range(1, count + 1):
                queue.put(BODY, syncpoint=True)
                if number % 100 == 0:
                    qm.commit()

    def put_frames(self, count: int, begin: Callable[[], None]) -> None:
        with self.daemon.connect() as qm, qm.open(Q, "output") as queue:
            begin()
            for _ in range(count // 100):
                queue.put_many([BODY] * 100, syncpoint=True)
                qm.commit()

    @property
    def pid(self) -> int:
        return int(self.daemon.process.pid)


class Beanstalkd:
    """beanstalkd with a binlog that is synced at every write; a get is a reserve and a delete."""

    program = shutil.which("beanstalkd") or shutil.which("beanstalkd", path="/usr/sbin:/usr/local/bin")

    def __init__(self, home: Path) -> None:
        assert self.program
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        argv = [self.program, "-b", str(home), "-f0", "-l", "127.0.0.1", "-p", str(self.port)]
        self.process = subprocess.Popen(argv)
        until = time.monotonic() + 10
        while True:
            try:
                self._connect().close()
                return
            except OSError:
                assert time.monotonic() < until and self.process.poll() is None, "beanstalkd does not answer"
                time.sleep(0.02)

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()

    def _connect(self) -> socket.socket:
        link = socket.create_connection(("127.0.0.1", self.port))
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return link

    def put(self, count: int, begin: Callable[[], None]) -> None:
        with self._connect() as link:
            begin()
            for _ in range(count):
                link.sendall(b"put 0 0 60 %d\r\n%s\r\n" % (len(BODY), BODY))
                assert link.recv(100).startswith(b"INSERTED")

    def get(self, count: int, begin: Callable[[], None]) -> None:
        with self._connect() as link:
            begin()
            for _ in range(count):
                link.sendall(b"reserve\r\n")
                reply = b""
                while len(reply) < len(BODY) or not reply.endswith(b"\r\n"):
                    reply += link.recv(4096)
                link.sendall(b"delete %s\r\n" % reply.split(b" ", 2)[1])
                assert link.recv(100) == b"DELETED\r\n"

    @property
    def pid(self) -> int:
        return self.process.pid


class Sqlite:
    """One process that inserts rows and commits: what the disk and SQLite allow anybody who stores there."""

    pid = 0

    def __init__(self, home: Path) -> None:
        self.path = str(home / "rows.db")
        self._per_commit(1)(1, lambda: None)

    def end(self) -> None: ...

    def put(self, count: int, begin: Callable[[], None]) -> None:
        self._per_commit(1)(count, begin)

    def put_units(self, count: int, begin: Callable[[], None]) -> None:
        self._per_commit(100)(count, begin)

    put_frames = put_units

    def _per_commit(self, rows: int) -> Callable[[int, Callable[[], None]], None]:
        def insert(count: int, begin: Callable[[], None]) -> None:
            db = apsw.Connection(self.path)
            for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL"):
                db.execute(f"PRAGMA {pragma}").fetchall()
            db.execute("CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, data BLOB NOT NULL)")
            begin()
            for number in range(count):
                if number % rows == 0:
                    db.execute("BEGIN IMMEDIATE")
                db.execute("INSERT INTO row (data) VALUES (?)", (BODY,))
                if number % rows == rows - 1:
                    db.execute("COMMIT")
            db.close()

        return insert


def per_second(server: Trigmon | Beanstalkd | Sqlite, work: str, clients: int, each: int) -> tuple[float, float]:
    """Messages a second, and the server's CPU a message in microseconds."""
    before = cpu_seconds(server.pid) if server.pid else 0.0
    took = seconds(clients, lambda _, begin: getattr(server, work)(each, begin))
    spent = cpu_seconds(server.pid) - before if server.pid else 0.0
    total = clients * each
    return total / took, spent / total * 1e6
