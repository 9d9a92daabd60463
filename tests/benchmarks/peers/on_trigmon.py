"""A queue manager: persistent messages, one Unix socket, no monitor."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.peers.peer import QUEUE, UNITS, Client, Peer
from tests.benchmarks.peers.server_process import ending_signals_held_back, ending_with_this
from tests.daemons import Daemon, define
from tests.processes import cpu_seconds_of_all
from trigmon.mq.calls import Clear


class TrigmonClient(Client):
    def __init__(self, daemon: Daemon, queue: str) -> None:
        self._qm = daemon.connect()
        self._out = self._qm.open(queue, "output")
        self._in = self._qm.open(queue, "input_shared")

    def put(self, body: bytes) -> None:
        self._out.put(body)

    def get(self) -> bytes:
        return bytes(self._in.get().data)

    def confirmed_get(self) -> bytes:
        data = bytes(self._in.get(syncpoint=True).data)
        self._qm.commit()
        return data

    def put_unit(self, bodies: Sequence[bytes]) -> None:
        self._out.put_many(list(bodies), syncpoint=True)
        self._qm.commit()

    def close(self) -> None:
        self._qm.disconnect()


class Trigmon(Peer):
    name = "trigmon"
    durable_by = "persistent messages"

    @classmethod
    def why_absent(cls) -> str:
        return ""

    def __init__(self, home: Path) -> None:
        with ending_signals_held_back():
            self._daemon = self._make(home)
        with self._daemon.connect() as qm:
            for queue in (QUEUE, UNITS):
                define(qm, queue, max_q_depth=999_999_999, def_persistence="persistent")

    def _make(self, home: Path) -> Daemon:
        return Daemon(home).start(preexec_fn=ending_with_this())

    def connect(self, queue: str = QUEUE) -> TrigmonClient:
        return TrigmonClient(self._daemon, queue)

    def empty(self, queue: str) -> None:
        with self._daemon.connect() as qm:
            qm.call(Clear(q_name=queue))

    @property
    def pid(self) -> int:
        return int(self._daemon.process.pid)

    def cpu_seconds(self) -> float:
        return cpu_seconds_of_all(self.pid)

    def end(self) -> None:
        self._daemon.end()
