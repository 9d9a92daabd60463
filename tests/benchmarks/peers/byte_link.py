"""A socket to a server whose protocol has lines and counted bytes."""

from __future__ import annotations

import socket
from pathlib import Path

ANSWER_S = 120.0


class ByteLink:
    """A connected socket with a buffer of what was read ahead. Raises ConnectionError where the server ends it."""

    def __init__(self, address: Path | int) -> None:
        if isinstance(address, Path):
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.settimeout(ANSWER_S)
            try:
                self._socket.connect(str(address))
            except OSError:
                self._socket.close()
                raise
        else:
            self._socket = socket.create_connection(("127.0.0.1", address), ANSWER_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = bytearray()

    def send(self, data: bytes) -> None:
        """Sends all of it."""
        self._socket.sendall(data)

    def line(self) -> bytes:
        """Returns the next line without its end."""
        start = 0
        while (at := self._rest.find(b"\r\n", start)) < 0:
            start = max(0, len(self._rest) - 1)
            self._read()
        found = bytes(self._rest[:at])
        del self._rest[: at + 2]
        return found

    def exactly(self, count: int) -> bytes:
        """Returns the next bytes, so many."""
        while len(self._rest) < count:
            self._read()
        found = bytes(self._rest[:count])
        del self._rest[:count]
        return found

    def _read(self) -> None:
        data = self._socket.recv(262_144)
        if not data:
            self._socket.close()
            raise ConnectionError("the server has closed the connection")
        self._rest += data

    def close(self) -> None:
        """Closes it."""
        self._socket.close()
