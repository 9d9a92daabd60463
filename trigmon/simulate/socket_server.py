"""A queue manager of this process behind a Unix socket, for a test's other processes, as Spark's Python workers are."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from trigmon.mq.errors import ConnectionBroken
from trigmon.simulate.local_client import InProcessLink
from trigmon.wire import codec
from trigmon.wire.frames import Body, FrameReader, ProtocolError

_RECEIVE = 262_144


class SocketServer:
    """Serves clients at ``address``, each by a thread of its own and by a link that ``connect`` makes."""

    def __init__(self, connect: Callable[[codec.Hello], InProcessLink]) -> None:
        self._connect = connect
        self._directory = tempfile.mkdtemp(prefix="trigmon-")  # a socket's path has at most 107 bytes
        path = Path(self._directory, "socket")
        self.address = f"unix:{path}"
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen()
        self._clients: set[socket.socket] = set()
        threading.Thread(target=self._accept, name="trigmon socket server", daemon=True).start()

    def close(self) -> None:
        """Ends the listener and every connection."""
        for one in (self._listening, *tuple(self._clients)):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # it wakes the thread that waits for it, as close does not
        self._listening.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _accept(self) -> None:
        with suppress(OSError):  # the listener has ended
            while True:
                client, _ = self._listening.accept()
                self._clients.add(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Answers one client until it goes, or until the queue manager has ended under it."""
        bodies = _bodies(client)
        with client, suppress(OSError, ProtocolError):
            link = self._connect(codec.decode_hello(next(bodies)))
            try:
                client.sendall(codec.encode_welcome(link.welcome))
                for body in bodies:
                    client.sendall(link.exchange(body))
            except ConnectionBroken:
                pass  # the queue manager was restarted: the client finds its connection closed
            finally:
                link.close()
                self._clients.discard(client)


def _bodies(client: socket.socket) -> Iterator[Body]:
    """Yields the bodies of a client's frames until it closes the connection."""
    reader = FrameReader()
    while data := client.recv(_RECEIVE):
        yield from reader.feed(data)
