"""A list of Redis with an append-only file that is synced before each answer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.peers.byte_link import ByteLink
from tests.benchmarks.peers.peer import QUEUE, Client, Peer
from tests.benchmarks.peers.server_process import ServerProcess, found


class RedisClient(Client):
    def __init__(self, where: Path, queue: str) -> None:
        self._link = ByteLink(where)
        self._queue = queue.encode()
        self._taken = b"taken-%d" % os.getpid()

    def call(self, *words: bytes) -> bytes | int | list[object] | None:
        self._send(*words)
        return self._reply()

    def _send(self, *words: bytes) -> None:
        self._link.send(_command(*words))

    def _reply(self) -> bytes | int | list[object] | None:
        line = self._link.line()
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise OSError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self._link.exactly(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self._reply() for _ in range(int(rest))]
        return rest

    def put(self, body: bytes) -> None:
        self.call(b"LPUSH", self._queue, body)

    def get(self) -> bytes:
        body = self.call(b"RPOP", self._queue)
        assert isinstance(body, bytes), body
        return body

    def confirmed_get(self) -> bytes:
        body = self.call(b"LMOVE", self._queue, self._taken, b"RIGHT", b"LEFT")
        assert isinstance(body, bytes), body
        assert self.call(b"LREM", self._taken, b"1", body) == 1
        return body

    def put_unit(self, bodies: Sequence[bytes]) -> None:
        commands = [_command(b"LPUSH", self._queue, body) for body in bodies]
        self._link.send(b"".join((_command(b"MULTI"), *commands, _command(b"EXEC"))))
        for _ in range(1 + len(bodies)):
            self._reply()
        done = self._reply()
        assert isinstance(done, list) and len(done) == len(bodies), done

    def close(self) -> None:
        self._link.close()


def _command(*words: bytes) -> bytes:
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)


class Redis(Peer):
    name = "Redis"
    durable_by = "appendonly yes, appendfsync always; no snapshots"

    @classmethod
    def why_absent(cls) -> str:
        return "" if found("redis-server") else "redis-server is not on PATH"

    def __init__(self, home: Path) -> None:
        self._socket = home / "redis.socket"
        settings = {
            "port": "0",
            "unixsocket": str(self._socket),
            "dir": str(home),
            "appendonly": "yes",
            "appendfsync": "always",
            "save": "",
        }
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        self._server = ServerProcess([found("redis-server"), *words], home)
        self._server.wait_until(self._ping)

    def _ping(self) -> None:
        client = self.connect()
        try:
            kept = client.call(b"CONFIG", b"GET", b"appendfsync")
        finally:
            client.close()
        assert kept == [b"appendfsync", b"always"], kept

    def connect(self, queue: str = QUEUE) -> RedisClient:
        return RedisClient(self._socket, queue)

    def empty(self, queue: str) -> None:
        client = self.connect()
        client.call(b"DEL", queue.encode())
        client.close()

    def cpu_seconds(self) -> float:
        return self._server.cpu_seconds()

    def end(self) -> None:
        self._server.end()
