"""A stream of NATS JetStream with file storage that is synced at every write."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.peers.byte_link import ByteLink
from tests.benchmarks.peers.peer import QUEUE, UNITS, Client, Peer
from tests.benchmarks.peers.server_process import ServerProcess, found, free_port

CAN_SYNC = (2, 10)
CONFIG = """
listen: "127.0.0.1:{port}"
max_payload: 8388608
jetstream {{
  store_dir: "{home}/jetstream"
  {sync}
}}
"""


class NatsClient(Client):
    def __init__(self, port: int, queue: str) -> None:
        self._link = ByteLink(port)
        self._queue = queue.encode()
        assert self._link.line().startswith(b"INFO")
        self._inbox = b"_INBOX." + os.urandom(8).hex().encode()
        self._link.send(b'CONNECT {"verbose":false,"headers":true}\r\nSUB %b.* 1\r\nPING\r\n' % self._inbox)
        assert self._link.line() == b"PONG"

    def _publish(self, subject: bytes, data: bytes) -> bytes:
        return b"PUB %b %b.1 %d\r\n%b\r\n" % (subject, self._inbox, len(data), data)

    def _message(self) -> tuple[bytes, bytes]:
        """Returns the subject to answer to and the data of the next message. Raises OSError for a refusal."""
        while (words := self._link.line().split(b" "))[0] not in (b"MSG", b"HMSG"):
            if words[0] == b"-ERR":
                raise OSError(b" ".join(words).decode())
            if words[0] == b"PING":
                self._link.send(b"PONG\r\n")
        data = self._link.exactly(int(words[-1]) + 2)[:-2]
        if words[0] == b"HMSG":
            raise OSError(data.decode())
        return words[3] if len(words) == 5 else b"", data

    def ask(self, subject: str, **named: object) -> dict[str, object]:
        """Returns the answer of the server's own interface. Raises OSError where it is a refusal."""
        self._link.send(self._publish(f"$JS.API.{subject}".encode(), json.dumps(named).encode() if named else b""))
        return self._checked()

    def _checked(self) -> dict[str, object]:
        answer: dict[str, object] = json.loads(self._message()[1])
        if "error" in answer:
            raise OSError(str(answer["error"]))
        return answer

    def put(self, body: bytes) -> None:
        self.put_unit([body])

    def put_unit(self, bodies: Sequence[bytes]) -> None:
        self._link.send(b"".join(self._publish(self._queue, body) for body in bodies))
        for _ in bodies:
            self._checked()

    def get(self) -> bytes:
        self._link.send(self._publish(b"$JS.API.CONSUMER.MSG.NEXT.%b.%b" % (self._queue, self._queue), b"1"))
        answer_to, body = self._message()
        self._link.send(self._publish(answer_to, b"+ACK"))
        self._message()
        return body

    def close(self) -> None:
        self._link.close()


def version() -> tuple[int, ...]:
    """Returns the version of the server that was found."""
    shown = subprocess.run([found("nats-server"), "-v"], capture_output=True, text=True, check=True).stdout
    return tuple(map(int, re.findall(r"\d+", shown)[:3]))


class Nats(Peer):
    name = "NATS JetStream"
    durable_by = "sync_interval: always"
    remark = "an acknowledgement of a get is answered, but not promised to be synced; units as beanstalkd"
    sync = "sync_interval: always"

    @classmethod
    def why_absent(cls) -> str:
        if not found("nats-server"):
            return "nats-server is not on PATH"
        if (here := version()) < CAN_SYNC:
            return f"nats-server {'.'.join(map(str, here))} knows no sync_interval: always, 2.10 does"
        return ""

    def __init__(self, home: Path) -> None:
        self._port = free_port()
        config = home / "nats.conf"
        config.write_text(CONFIG.format(port=self._port, home=home, sync=self.sync))
        self._server = ServerProcess([found("nats-server"), "-c", str(config)], home)
        self._server.wait_until(self._define)

    def _define(self) -> None:
        client = self.connect()
        for queue in (QUEUE, UNITS):
            client.ask(
                f"STREAM.CREATE.{queue}", name=queue, subjects=[queue], retention="workqueue", storage="file", max_age=0
            )
            settings = {"durable_name": queue, "ack_policy": "explicit", "max_ack_pending": -1}
            client.ask(f"CONSUMER.DURABLE.CREATE.{queue}.{queue}", stream_name=queue, config=settings)
        client.close()

    def connect(self, queue: str = QUEUE) -> NatsClient:
        return NatsClient(self._port, queue)

    def empty(self, queue: str) -> None:
        client = self.connect()
        client.ask(f"STREAM.PURGE.{queue}")
        client.close()

    def cpu_seconds(self) -> float:
        return self._server.cpu_seconds()

    def end(self) -> None:
        self._server.end()
