"""The connection to the systemd that starts units for this user: the machine's for root, the user's own for others.

The socket is the manager's own, which systemctl and systemd-run use too: no bus daemon need run, and only root
and the manager's own user get in. The machine's manager is not asked on behalf of others, though polkit could allow it:
polkit does not get a transient unit's properties, so a user who may start one there may do all that root may.

Standard library only: the keeper imports it.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trigmon.keeper import dbus

ROOT, MANAGER = "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager"
PROPERTIES = "org.freedesktop.DBus.Properties"
PATIENCE_S = 5.0
"""How long an answer of systemd's is waited for."""
_CAP_SYS_ADMIN = 1 << 21


def socket_path() -> Path:
    """Returns the socket of the manager that starts units for this user."""
    uid = os.geteuid()
    if uid == 0:
        return Path("/run/systemd/private")
    return Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}", "systemd/private")


def is_the_users_own() -> bool:
    """Returns whether it is a user's manager, which can start programs as that user only."""
    return os.geteuid() != 0


def gives_more_than_we_have() -> bool:
    """Returns whether a program that the manager starts as root would have rights that this process lacks."""
    if os.geteuid() != 0:
        return False
    lines = Path("/proc/self/status").read_bytes().splitlines()
    effective = next((int(line.split()[1], 16) for line in lines if line.startswith(b"CapEff:")), 0)
    return not effective & _CAP_SYS_ADMIN


def why_not() -> str:
    """Returns why no unit can be started from here, with the remedy; "" when one can."""
    try:
        Manager().close()
    except OSError as error:
        uid = os.geteuid()
        manager = (
            f"of user {uid} (loginctl enable-linger {uid} starts it, now and at each boot)"
            if uid
            else "of this machine"
        )
        return f"no systemd {manager} answers at {socket_path()}: {error.strerror or error}"
    return ""


class Manager:
    """A connection to systemd. Its making, and each method that uses it, raises OSError when there is none."""

    def __init__(self) -> None:
        self._link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._messages = dbus.Messages()
        self._serial = 0
        self._waiting: dict[int, Callable[[dbus.Message], None]] = {}
        self._signals: list[dbus.Message] = []
        try:
            self._link.settimeout(PATIENCE_S)
            self._link.connect(str(socket_path()))
            self._authenticate()
            self._link.settimeout(None)
            self._link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(PATIENCE_S), 0))
        except BaseException:
            self._link.close()
            raise

    def fileno(self) -> int:
        """Returns the descriptor, for polling."""
        return self._link.fileno()

    def close(self) -> None:
        """Closes the connection."""
        self._link.close()

    def call(self, then: Callable[[dbus.Message], None], member: str, signature: str = "", *body: Any) -> None:
        """Calls the manager; ``then`` gets the answer, a return or an error, from :meth:`receive`."""
        self._send(then, ROOT, MANAGER, member, signature, *body)

    def call_for_all(self, then: Callable[[dbus.Message], None], path: str) -> None:
        """Asks for all properties of the object at a path."""
        self._send(then, path, PROPERTIES, "GetAll", "s", "")

    def ask(self, member: str, signature: str = "", *body: Any) -> tuple[Any, ...]:
        """Calls the manager and returns the body of its answer. Raises OSError when it is refused."""
        answers: list[dbus.Message] = []
        self.call(answers.append, member, signature, *body)
        return self._wait(answers)

    def ask_for_all(self, path: str) -> dict[str, Any]:
        """Returns all properties of the object at a path. Raises OSError when it is refused."""
        answers: list[dbus.Message] = []
        self.call_for_all(answers.append, path)
        return dict(self._wait(answers)[0])

    def receive(self) -> list[dbus.Message]:
        """Returns the signals that have come, and passes answers to their callbacks first.

        Where the connection has ended, what was sent before is returned first.
        """
        try:
            while True:
                self._take(self._link.recv(1 << 16, socket.MSG_DONTWAIT))
        except BlockingIOError:
            pass
        except OSError:
            if not self._signals:
                raise
        signals, self._signals = self._signals, []
        return signals

    def _wait(self, answers: list[dbus.Message]) -> tuple[Any, ...]:
        until = time.monotonic() + PATIENCE_S
        while not answers:
            if not select.select([self._link], [], [], max(0.0, until - time.monotonic()))[0]:
                raise TimeoutError("systemd does not answer")
            self._take(self._link.recv(1 << 16))
        if answers[0].kind == dbus.ERROR:
            raise OSError(refusal(answers[0]))
        return answers[0].body

    def _take(self, data: bytes) -> None:
        if not data:
            raise ConnectionResetError("systemd has closed the connection")
        try:
            messages = self._messages.feed(data)
        except ValueError as error:
            raise OSError(str(error)) from error
        for message in messages:
            if message.kind == dbus.SIGNAL:
                self._signals.append(message)
            elif then := self._waiting.pop(message.reply_to, None):
                then(message)

    def _send(
        self, then: Callable[[dbus.Message], None], path: str, interface: str, member: str, signature: str, *body: Any
    ) -> None:
        self._serial += 1
        message = dbus.call(self._serial, path, interface, member, signature, *body)
        self._waiting[self._serial] = then
        self._link.sendall(message, socket.MSG_NOSIGNAL)

    def _authenticate(self) -> None:
        """Authenticates by D-Bus's EXTERNAL: systemd takes the user from the socket.

        AUTH and BEGIN are sent at once, as systemd's own clients do, and no call with them: systemd 252 handles a call
        that arrives together with BEGIN only when something more comes.
        """
        uid = str(os.geteuid()).encode().hex()
        self._link.sendall(b"\0AUTH EXTERNAL " + uid.encode() + b"\r\nBEGIN\r\n", socket.MSG_NOSIGNAL)
        reply = b""
        while not reply.endswith(b"\r\n"):
            more = self._link.recv(256)
            if not more:
                raise ConnectionResetError("systemd has closed the connection")
            reply += more
        if not reply.startswith(b"OK "):
            raise PermissionError(f"systemd refuses the connection: {reply.decode(errors='replace').strip()}")


def refusal(answer: dbus.Message) -> str:
    """Returns the text of a D-Bus error."""
    return str(answer.body[0]) if answer.body else answer.error
