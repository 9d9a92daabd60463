"""The socket that the web console listens on: a loopback address, or a Unix domain socket of this user alone."""

from __future__ import annotations

import ipaddress
import os
import socket
import stat
from pathlib import Path
from typing import NamedTuple

BACKLOG = 64


class Listening(NamedTuple):
    """A socket that listens, and how a browser comes to it: ``url`` is blank and ``path`` set for a Unix socket."""

    link: socket.socket
    url: str = ""
    path: Path | None = None

    def close(self) -> None:
        """Ends it, and takes the file of a Unix socket away."""
        self.link.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def listening_at(address: str) -> Listening:
    """Opens ``HOST:PORT`` of a loopback address (port 0: any), or ``unix:PATH``.

    Raises ValueError for another address, OSError where it cannot listen there.
    """
    if address.startswith("unix:"):
        return _unix(Path(address.removeprefix("unix:").removeprefix("//")).expanduser().absolute())
    host, colon, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isdecimal() or int(port) > 65_535 or not _is_loopback(host):
        problem = f"{address!r} is neither a loopback address such as 127.0.0.1:8080 nor unix:PATH"
        raise ValueError(f"{problem}; from another machine: ssh -L")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    link = socket.socket(family, socket.SOCK_STREAM)
    try:
        link.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        link.bind((host, int(port)))
        link.listen(BACKLOG)
    except OSError as error:
        link.close()
        raise OSError(error.errno, error.strerror, address) from None
    bound, number = link.getsockname()[:2]  # a name such as localhost may have further addresses
    shown = f"[{bound}]" if family == socket.AF_INET6 else bound
    return Listening(link, f"http://{shown}:{number}")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _unix(path: Path) -> Listening:
    _remove_left_behind(path)
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)  # nobody may connect between bind and chmod
    try:
        link.bind(str(path))
        link.listen(BACKLOG)
    except OSError as error:
        link.close()
        raise OSError(error.errno, error.strerror, str(path)) from None
    finally:
        os.umask(before)
    return Listening(link, path=path)


def _remove_left_behind(path: Path) -> None:
    """Removes the socket of a process that has gone. Raises OSError for one that answers, and for another file."""
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(17, "is there and is no socket", str(path))
    except FileNotFoundError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
    raise FileExistsError(17, "another process listens there", str(path))
