"""beanstalkd with a binlog that is synced at every write; a get is a reserve and a delete."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.peers.byte_link import ByteLink
from tests.benchmarks.peers.peer import QUEUE, Client, Peer
from tests.benchmarks.peers.server_process import ServerProcess, found, free_port

LONGEST = 8 * 1024 * 1024
_AT_ONCE = 100


class BeanstalkdClient(Client):
    def __init__(self, port: int, queue: str) -> None:
        self._link = ByteLink(port)
        self._queue = queue.encode()
        self._link.send(b"use %b\r\nwatch %b\r\n" % (queue.encode(), queue.encode()))
        self._expect(b"USING")
        self._expect(b"WATCHING")
        self._link.send(b"ignore default\r\n")
        self._expect(b"WATCHING")

    def _expect(self, word: bytes) -> list[bytes]:
        words = self._link.line().split()
        assert words[0] == word, words
        return words

    def put(self, body: bytes) -> None:
        self.put_unit([body])

    def put_unit(self, bodies: Sequence[bytes]) -> None:
        self._link.send(b"".join(b"put 0 0 600 %d\r\n%b\r\n" % (len(body), body) for body in bodies))
        for _ in bodies:
            self._expect(b"INSERTED")

    def get(self) -> bytes:
        self._link.send(b"reserve\r\n")
        number, body = self._reserved()
        self._link.send(b"delete %b\r\n" % number)
        self._expect(b"DELETED")
        return body

    def _reserved(self) -> tuple[bytes, bytes]:
        _, number, length = self._expect(b"RESERVED")
        return number, self._link.exactly(int(length) + 2)[:-2]

    def empty(self) -> None:
        self._link.send(b"stats-tube %b\r\n" % self._queue)
        stats = self._link.exactly(int(self._expect(b"OK")[1]) + 2).decode()
        left = int(stats.partition("current-jobs-ready:")[2].split()[0])
        while left:
            many = min(left, _AT_ONCE)
            self._link.send(b"reserve\r\n" * many)
            numbers = [self._reserved()[0] for _ in range(many)]
            self._link.send(b"".join(b"delete %b\r\n" % number for number in numbers))
            for _ in numbers:
                self._expect(b"DELETED")
            left -= many

    def close(self) -> None:
        self._link.close()


class Beanstalkd(Peer):
    name = "beanstalkd"
    durable_by = "-b DIRECTORY -f0: its binlog is synced at every write"
    remark = "knows no unit of work: its 100 puts are sent ahead of their answers"

    @classmethod
    def why_absent(cls) -> str:
        return "" if found("beanstalkd") else "beanstalkd is not on PATH"

    def __init__(self, home: Path) -> None:
        self._port = free_port()
        binlog = home / "binlog"
        binlog.mkdir()
        where = ["-b", str(binlog), "-f0", "-l", "127.0.0.1", "-p", str(self._port)]
        self._server = ServerProcess([found("beanstalkd"), *where, "-z", str(LONGEST)], home)
        self._server.wait_until(lambda: self.connect().close())

    def connect(self, queue: str = QUEUE) -> BeanstalkdClient:
        return BeanstalkdClient(self._port, queue)

    def empty(self, queue: str) -> None:
        client = self.connect(queue)
        client.empty()
        client.close()

    def cpu_seconds(self) -> float:
        return self._server.cpu_seconds()

    def end(self) -> None:
        self._server.end()
