"""The SQLite storage of huey, which every process opens for itself."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.peers.peer import QUEUE, Client, Peer

BUSY_S = 120


class HueyClient(Client):
    def __init__(self, path: Path, queue: str) -> None:
        from huey.storage import SqliteStorage

        self._storage: Any = SqliteStorage(queue, filename=str(path), fsync=True, strict_fifo=True, timeout=BUSY_S)

    def put(self, body: bytes) -> None:
        self._storage.enqueue(body)

    def put_unit(self, bodies: Sequence[bytes]) -> None:
        for body in bodies:
            self._storage.enqueue(body)

    def get(self) -> bytes:
        return bytes(self._storage.dequeue())

    def empty(self) -> None:
        self._storage.flush_queue()

    def close(self) -> None:
        self._storage.close()


class Huey(Peer):
    name = "huey"
    durable_by = "SqliteStorage(fsync=True)"
    remark = "a library in the clients, no server; knows no unit of work: 100 puts, one behind the other"

    @classmethod
    def why_absent(cls) -> str:
        return "" if importlib.util.find_spec("huey") else "huey is not importable"

    def __init__(self, home: Path) -> None:
        self._path = home / "huey.db"
        self.connect().close()

    def connect(self, queue: str = QUEUE) -> HueyClient:
        return HueyClient(self._path, queue)

    def empty(self, queue: str) -> None:
        client = self.connect(queue)
        client.empty()
        client.close()

    def cpu_seconds(self) -> None:
        return None

    def end(self) -> None: ...
