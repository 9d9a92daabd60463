"""Jobs of procrastinate on PostgreSQL: deferred, fetched, and deleted when finished."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.peers.on_postgres_server import Postgres
from tests.benchmarks.peers.peer import QUEUE, Client, Peer

TASK = "take"


class ProcrastinateClient(Client):
    def __init__(self, dsn: str, queue: str) -> None:
        import procrastinate

        # A pool of one connection: a client has one elsewhere, too.
        self._loop = asyncio.new_event_loop()
        app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=dsn, min_size=1, max_size=1))
        self._app: Any = app
        self._do(app.open_async())
        self._queue = queue
        self._deferrer: Any = app.configure_task(TASK, queue=queue)
        self._worker: int | None = None

    def _do(self, coroutine: Any) -> Any:
        return self._loop.run_until_complete(coroutine)

    def put(self, body: bytes) -> None:
        self._do(self._deferrer.defer_async(body=body.decode("latin-1")))

    def put_unit(self, bodies: Sequence[bytes]) -> None:
        self._do(self._deferrer.batch_defer_async(*({"body": body.decode("latin-1")} for body in bodies)))

    def get(self) -> bytes:
        return bytes(self._do(self._get()).encode("latin-1"))

    async def _get(self) -> str:
        from procrastinate.jobs import Status

        manager = self._app.job_manager
        if self._worker is None:
            self._worker = await manager.register_worker()
        while (job := await manager.fetch_job([self._queue], self._worker)) is None:
            pass
        await manager.finish_job(job, Status.SUCCEEDED, delete_job=True)
        return str(job.task_kwargs["body"])

    def make_tables(self) -> None:
        self._do(self._app.schema_manager.apply_schema_async())

    def empty(self) -> None:
        delete = "DELETE FROM procrastinate_jobs WHERE queue_name = %(queue)s"
        self._do(self._app.connector.execute_query_async(delete, queue=self._queue))

    def close(self) -> None:
        self._do(self._app.close_async())
        self._loop.close()


class Procrastinate(Peer):
    name = "procrastinate"
    durable_by = "a PostgreSQL of its own, fsync and synchronous_commit on"
    remark = "a get is a fetch and a finish with deletion"

    @classmethod
    def why_absent(cls) -> str:
        return Postgres.why_absent() if importlib.util.find_spec("procrastinate") else "procrastinate is not importable"

    def __init__(self, home: Path) -> None:
        self._postgres = Postgres(home)
        client = self.connect()
        client.make_tables()
        client.close()

    def connect(self, queue: str = QUEUE) -> ProcrastinateClient:
        return ProcrastinateClient(self._postgres.dsn, queue)

    def empty(self, queue: str) -> None:
        client = self.connect(queue)
        client.empty()
        client.close()

    def cpu_seconds(self) -> float:
        return self._postgres.cpu_seconds()

    def end(self) -> None:
        self._postgres.end()
