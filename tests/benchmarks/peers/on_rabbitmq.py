"""A quorum queue of RabbitMQ with one member: a put is confirmed when its log is synced."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.peers.amqp_link import AmqpLink
from tests.benchmarks.peers.peer import QUEUE, UNITS, Client, Peer
from tests.benchmarks.peers.server_process import ServerProcess, found, free_port

OWN_PLACE = "/usr/lib/rabbitmq/bin"
"""Where distributions keep the program itself; the one on PATH may only be for root, and change to another user."""


class RabbitmqClient(Client):
    def __init__(self, port: int, queue: str) -> None:
        self._link = AmqpLink(port)
        self._queue = queue

    def put(self, body: bytes) -> None:
        self.put_unit([body])

    def put_unit(self, bodies: Sequence[bytes]) -> None:
        self._link.put(b"".join(self._link.published(self._queue, body) for body in bodies), len(bodies))

    def get(self) -> bytes:
        return self._link.get(self._queue)

    def close(self) -> None:
        self._link.close()


def _program() -> str:
    return shutil.which("rabbitmq-server", path=OWN_PLACE) or found("rabbitmq-server")


class Rabbitmq(Peer):
    name = "RabbitMQ"
    durable_by = "a quorum queue of one member, publisher confirms"
    remark = "a get's acknowledgement has no answer, so its gets promise less; units as beanstalkd"

    @classmethod
    def why_absent(cls) -> str:
        if not _program():
            return "rabbitmq-server is not on PATH"
        # It would start this one as a daemon of its own, and leave it.
        return "" if found("epmd") else "epmd of its Erlang is not on PATH"

    def __init__(self, home: Path) -> None:
        self._port = free_port()
        epmd = str(free_port())
        names = {"ERL_EPMD_PORT": epmd, "ERL_EPMD_ADDRESS": "127.0.0.1", "HOME": str(home)}
        own = {
            "NODENAME": f"bench{os.getpid()}@localhost",
            "NODE_IP_ADDRESS": "127.0.0.1",
            "NODE_PORT": str(self._port),
            "DIST_PORT": str(free_port()),
            "MNESIA_BASE": str(home / "data"),
            "LOG_BASE": str(home / "logs"),
            "PID_FILE": str(home / "pid"),
            "CONFIG_FILE": str(home / "rabbitmq.conf"),
            "ADVANCED_CONFIG_FILE": str(home / "advanced.config"),
            "ENABLED_PLUGINS_FILE": str(home / "plugins"),
            "CONF_ENV_FILE": str(home / "env"),
        }
        (home / "plugins").write_text("[].")
        (home / "env").touch()
        (home / "rabbitmq.conf").touch()
        self._names = ServerProcess([found("epmd"), "-port", epmd, "-address", "127.0.0.1"], home, names)
        try:
            self._names.wait_until(lambda: socket.create_connection(("127.0.0.1", int(epmd))).close())
            settings = names | {f"RABBITMQ_{name}": value for name, value in own.items()}
            self._server = ServerProcess([_program()], home, settings)
            self._server.wait_until(self._define)
        except BaseException:
            self._names.end()
            raise

    def _define(self) -> None:
        link = AmqpLink(self._port)
        for queue in (QUEUE, UNITS):
            link.declare(queue, "quorum")
        link.close()

    def connect(self, queue: str = QUEUE) -> RabbitmqClient:
        return RabbitmqClient(self._port, queue)

    def empty(self, queue: str) -> None:
        link = AmqpLink(self._port)
        link.purge(queue)
        link.close()

    def cpu_seconds(self) -> float:
        return self._server.cpu_seconds()

    def end(self) -> None:
        self._server.end()
        self._names.end()
