"""The queue of litequeue, a SQLite file that every process opens for itself."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.peers.peer import QUEUE, UNITS, Client, Peer

BUSY_S = 120


class LitequeueClient(Client):
    def __init__(self, path: Path) -> None:
        from litequeue import LiteQueue

        self.queue: Any = LiteQueue(path, timeout=BUSY_S)
        self.queue.conn.execute("PRAGMA synchronous = FULL")

    def put(self, body: bytes) -> None:
        self.queue.put(body.decode("latin-1"))

    def put_unit(self, bodies: Sequence[bytes]) -> None:
        with self.queue.transaction(mode="IMMEDIATE"):
            for body in bodies:
                self.put(body)

    def get(self) -> bytes:
        message = self.queue.pop()
        self.queue.done(message.message_id)
        return bytes(message.data.encode("latin-1"))

    def close(self) -> None:
        self.queue.conn.close()


class Litequeue(Peer):
    name = "litequeue"
    durable_by = "PRAGMA synchronous = FULL"
    remark = "a library in the clients, no server; keeps what was got"

    @classmethod
    def why_absent(cls) -> str:
        return "" if importlib.util.find_spec("litequeue") else "litequeue is not importable"

    def __init__(self, home: Path) -> None:
        self._home = home
        for queue in (QUEUE, UNITS):
            self.connect(queue).close()

    def connect(self, queue: str = QUEUE) -> LitequeueClient:
        return LitequeueClient(self._home / f"{queue}.db")

    def empty(self, queue: str) -> None:
        client = self.connect(queue)
        client.queue.conn.execute(f"DELETE FROM {client.queue.table}")
        client.close()

    def cpu_seconds(self) -> None:
        return None

    def end(self) -> None: ...
