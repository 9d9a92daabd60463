"""What is measured on PostgreSQL: our daemon there, and the queue that everybody builds there with SKIP LOCKED.

Both are on one server with fsync on; every answered put and get is durable. A unit of work may stay open meanwhile:
for the plain queue that is a transaction, whose snapshot keeps dead rows alive.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg

from tests.benchmarks.loads import seconds
from tests.benchmarks.servers import BODY, Q, Trigmon
from tests.daemons import Daemon, define
from tests.postgres import Server
from tests.processes import cpu_seconds

Begin = Callable[[], None]
TABLE = """
CREATE TABLE plain (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, priority smallint NOT NULL, data bytea NOT NULL)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX plain_order ON plain (priority DESC, id)"""
PUT = "INSERT INTO plain (priority, data) VALUES (%s, %b)"
GET = """
DELETE FROM plain WHERE id = (SELECT id FROM plain ORDER BY priority DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING data"""


def per_second(
    it: TrigmonThere | SkipLocked, server: Server, work: str, clients: int, each: int
) -> tuple[float, float]:
    """Messages a second, and the CPU a message in microseconds of all that serves: PostgreSQL, and our daemon."""
    before = server.cpu_seconds() + it.cpu_seconds()
    took = seconds(clients, lambda _, begin: getattr(it, work)(each, begin))
    spent = server.cpu_seconds() + it.cpu_seconds() - before
    total = clients * each
    return total / took, spent / total * 1e6


class TrigmonThere(Trigmon):
    """A queue manager that keeps no local file."""

    def cpu_seconds(self) -> float:
        return cpu_seconds(self.pid)

    def __init__(self, home: Path, server: Server) -> None:
        said = {"store.postgres": server.dsn, "store.accept_loss": "true"}
        self.daemon = Daemon(home, settings=said).start()
        with self.daemon.connect() as qm:
            define(qm, Q, max_q_depth=999_999_999, def_persistence="persistent")

    def both(self, count: int, begin: Begin) -> None:
        with self.daemon.connect() as qm, qm.open(Q, "output") as out, qm.open(Q, "input_shared") as queue:
            begin()
            for _ in range(count):
                out.put(BODY)
                queue.get(wait_interval_ms=60_000)

    @contextlib.contextmanager
    def held_open(self) -> Iterator[None]:
        with self.daemon.connect() as qm, qm.open(Q, "input_shared") as queue:
            qm.put(Q, BODY)
            queue.get(syncpoint=True)
            yield
            qm.commit()


class SkipLocked:
    """A table and its clients, each with a session of its own."""

    def cpu_seconds(self) -> float:
        return 0.0

    def __init__(self, server: Server) -> None:
        self._dsn = server.dsn
        with self._connect() as db:
            for statement in TABLE.split(";"):
                db.execute(statement)

    def end(self) -> None: ...

    def _connect(self) -> psycopg.Connection:
        return psycopg.connect(self._dsn, autocommit=True, prepare_threshold=0)

    def put(self, count: int, begin: Begin) -> None:
        with self._connect() as db:
            begin()
            for _ in range(count):
                db.execute(PUT, (0, BODY))

    def get(self, count: int, begin: Begin) -> None:
        with self._connect() as db:
            begin()
            for _ in range(count):
                assert db.execute(GET).fetchone()

    def both(self, count: int, begin: Begin) -> None:
        with self._connect() as db:
            begin()
            for _ in range(count):
                db.execute(PUT, (0, BODY))
                while db.execute(GET).fetchone() is None:
                    pass

    @contextlib.contextmanager
    def held_open(self) -> Iterator[None]:
        with psycopg.connect(self._dsn) as db:
            db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            db.execute("SELECT count(*) FROM plain")
            yield
            db.commit()
