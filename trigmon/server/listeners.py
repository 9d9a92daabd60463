"""Listening sockets: how they are made, and how connections are accepted from them.

A Unix socket lies in a directory of its own, whose mode and group decide which users may put and get. Plain TCP is for
this machine only, TLS for others. Accepting is done here and not by asyncio's server, which writes hundreds of
tracebacks a second when descriptors run out, and has no limit of connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import ipaddress
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trigmon import paths
from trigmon.log import Seldom
from trigmon.server.exit_status import IN_USE, CannotStart, status_of
from trigmon.server.peer_identity import group_number

BACKLOG = 1024
BACK_OFF_S = 1.0
"""How long accepting rests when the machine has no descriptor or buffer left."""

AT_ONCE = 64
"""Connections accepted in one go: a flood of them must not keep those who are in from being served."""

_EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class UnixListener:
    """The daemon's own Unix socket: claimed, bound, and taken away at the end.

    A lock beside the socket, held as long as the process lives, says whose it is, so a socket file left by a killed
    daemon is replaced and a living one's never is.
    """

    def __init__(self, path: Path, mode: int, group: str | None, data: Path | None = None) -> None:
        length = len(os.fsencode(path))
        if length > paths.MAX_SOCKET_PATH:
            raise CannotStart(
                f"the socket's path {path} has {length} bytes and the system allows {paths.MAX_SOCKET_PATH}: "
                "set TRIGMON_RUNTIME to a shorter directory"
            )
        if path.parent == data and (group is not None or mode & 0o006):
            raise CannotStart(
                f"the socket's directory {data} is the data directory, and every user of the socket could read the "
                "messages there: set TRIGMON_RUNTIME to another directory, or leave server.socket_group and "
                "server.socket_mode as they are shipped"
            )
        self.path = path
        try:
            number = None if group is None else group_number(group)
        except KeyError:
            raise CannotStart(f"server.socket_group: there is no group {group!r} on this machine") from None
        try:
            self._prepare(path.parent, mode, number)
            self._lock = self._claim(path.with_name(f"{path.name}.lock"))
            self.socket = self._bind(mode, number)
        except OSError as error:
            why = f"the socket {path} cannot be made: {error.strerror} ({error.filename or path})"
            raise CannotStart(why, status_of(error)) from error

    @staticmethod
    def _prepare(directory: Path, mode: int, group: int | None) -> None:
        # The directory above is only passed through; in /tmp it must be ours, or its owner could swap what is in it.
        directory.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        if directory.parent.lstat().st_uid not in (0, os.geteuid()):
            raise CannotStart(f"{directory.parent} belongs to another user, who could take our socket's place")
        directory.mkdir(mode=0o700, exist_ok=True)
        if directory.stat().st_uid != os.geteuid():
            # Made for us with its mode, as by a unit's RuntimeDirectory.
            return
        if group is not None:
            os.chown(directory, -1, group)
        directory.chmod(0o755 if mode & 0o006 else 0o750)

    def _claim(self, path: Path) -> int:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            raise CannotStart(f"another queue manager of this name has the socket {self.path}", IN_USE) from None
        return lock

    def _bind(self, mode: int, group: int | None) -> socket.socket:
        if self.path.exists():
            if paths.answers(self.path):
                # Somebody without our lock: a socket unit's, or a program that is none of ours.
                raise CannotStart(f"somebody else answers on the socket {self.path}", IN_USE)
            self.path.unlink()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            listening.bind(str(self.path))
            if group is not None:
                os.chown(self.path, -1, group)
            self.path.chmod(mode)
            listening.listen(BACKLOG)
        except BaseException:
            listening.close()
            raise
        return listening

    def remove(self) -> None:
        """Takes the socket's file away and gives the name free."""
        with contextlib.suppress(OSError):
            self.path.unlink()
        os.close(self._lock)


def tcp_listener(address: tuple[str, int], setting: str = "server.tcp") -> socket.socket:
    """Returns a listening TCP socket at the address of this setting."""
    host, port = address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        # A restart must not wait for the kernel to forget the connections of the last run.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        status = IN_USE if error.errno == errno.EADDRINUSE else status_of(error)
        raise CannotStart(f"{setting}: nobody can listen on {host}:{port}: {error.strerror}", status) from error
    return listening


def where(listener: socket.socket) -> str:
    """Returns the address of a listening socket as people write it: a path, or host:port."""
    name = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        return str(name)
    host, port = name[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def open_to_all(listener: socket.socket) -> str:
    """Returns what follows from listening on TCP, for an operator."""
    return (
        f"{where(listener)} has neither TLS nor authentication: any local user can put, get and browse messages of "
        "every queue there and read definitions and runs; unset server.tcp where the Unix socket will do"
    )


def is_local(listener: socket.socket) -> bool:
    """Returns whether only this machine can reach a listening socket."""
    return listener.family == socket.AF_UNIX or ipaddress.ip_address(listener.getsockname()[0]).is_loopback


class Acceptor:
    """Takes connections from listening sockets and hands each with its listener to ``welcome``.

    Rests for a second when the machine is exhausted.
    """

    def __init__(
        self, sockets: list[socket.socket], welcome: Callable[[socket.socket, socket.socket], Any], seldom: Seldom
    ) -> None:
        self.sockets = sockets
        self._welcome = welcome
        self._seldom = seldom
        self._loop = asyncio.get_running_loop()
        self._accepting = False
        self._again: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Accepts from now on; to be called again to end a rest."""
        if self._accepting:
            return
        self._accepting = True
        for listening in self.sockets:
            self._loop.add_reader(listening.fileno(), self._accept, listening)

    def rest(self) -> None:
        """Accepts nothing until :meth:`start`; who knocks waits in the kernel."""
        self._accepting = False
        for listening in self.sockets:
            self._loop.remove_reader(listening.fileno())

    def close(self) -> None:
        """Accepts nothing any more; a client that connects is refused by the kernel."""
        self.rest()
        if self._again:
            self._again.cancel()
        for listening in self.sockets:
            listening.close()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(AT_ONCE):
            if not self._accepting:
                return
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _EXHAUSTED:
                    raise
                self._seldom.warning("no connection can be accepted", why=error.strerror)
                self.rest()
                self._again = self._loop.call_later(BACK_OFF_S, self.start)
                return
            connection.setblocking(False)
            self._welcome(connection, listening)
