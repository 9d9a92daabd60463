"""Blocking calls of the client from an event loop: a few threads, each with a connection of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from trigmon.client.address import connect
from trigmon.client.connection import Connection
from trigmon.mq.calls import Ping
from trigmon.mq.errors import ConnectionBroken, QMgrStopping

T = TypeVar("T")
THREADS = 4
CONNECT_S = 5.0
CALL_S = 30.0


class ClientThreads:
    """Threads that work with a queue manager; a connection is made when it is needed, and again when it was lost."""

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._pool = ThreadPoolExecutor(THREADS, "trigmon-web")
        self._own = threading.local()
        self._made: set[Connection] = set()
        self.q_mgr_name = ""
        """The queue manager that answered last."""

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Returns what ``work`` reads, which changes nothing; it is done again where the link was lost meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, work)

    async def act(self, work: Callable[[Connection], T]) -> T:
        """Returns what ``work`` returns, which is done once. Raises ConnectionBroken where nobody knows."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._act, work)

    def close(self) -> None:
        """Ends the threads and drops the connections; a call under way comes to its end first."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        for connection in self._made:
            connection.drop()

    def _read(self, work: Callable[[Connection], T]) -> T:
        was_there = getattr(self._own, "connection", None) is not None
        try:
            return work(self._connection())
        except (ConnectionBroken, QMgrStopping):
            # One that has lain idle may have been lost long ago: only the next call finds that out.
            if not was_there:
                raise
            self._forget()
            return work(self._connection())

    def _act(self, work: Callable[[Connection], T]) -> T:
        self._read(lambda qm: qm.call(Ping()))  # so that no lost link is found out by what may be done once only
        return work(self._connection())

    def _connection(self) -> Connection:
        connection: Connection | None = getattr(self._own, "connection", None)
        if connection is not None and connection.alive:
            return connection
        self._forget()
        connection = connect(
            self._address, application="trigmon web", run_id="", timeout_s=CONNECT_S, call_timeout_s=CALL_S
        )
        self._own.connection = connection
        self._made.add(connection)
        self.q_mgr_name = connection.q_mgr_name
        return connection

    def _forget(self) -> None:
        connection: Connection | None = getattr(self._own, "connection", None)
        if connection is not None:
            self._made.discard(connection)
            connection.drop()
        self._own.connection = None
