"""A way to PostgreSQL that can be cut: a Unix socket before the server's own, whose bytes are held back while it is.

What was sent before a cut, and is held, arrives when it is mended: as a network that lost packets sends them again.
"""

from __future__ import annotations

import contextlib
import socket
import tempfile
import threading
from pathlib import Path

from psycopg.conninfo import conninfo_to_dict, make_conninfo

_NAME = ".s.PGSQL.5432"
_CHUNK = 65536


class Way:
    """``dsn`` leads through it to a server that is reached by a socket in a directory."""

    def __init__(self, dsn: str) -> None:
        self._here = tempfile.TemporaryDirectory(prefix="trigmon-way-")
        there = conninfo_to_dict(dsn)["host"]
        self.dsn = make_conninfo(dsn, host=self._here.name)
        self._there = Path(str(there)) / _NAME
        self._passable = threading.Event()
        self._passable.set()
        self._door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._door.bind(f"{self._here.name}/{_NAME}")
        self._door.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Nothing passes any more, and nobody is told."""
        self._passable.clear()

    def mend(self) -> None:
        """Everything passes again, what was held first."""
        self._passable.set()

    def close(self) -> None:
        """The end."""
        self.mend()
        self._door.close()
        self._here.cleanup()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        self._passable.wait()
        far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            far.connect(str(self._there))
        except OSError:
            far.close()
            near.close()
            return
        back = threading.Thread(target=self._pass_on, args=(far, near), daemon=True)
        back.start()
        self._pass_on(near, far)
        back.join()
        near.close()
        far.close()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(_CHUNK):
                self._passable.wait()
                sink.sendall(data)
        self._passable.wait()
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
