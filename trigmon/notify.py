"""Notifications to the service manager, and what it hands over: sd_notify(3), sd_watchdog_enabled(3), sd_listen_fds(3).

The variables are taken out of the environment once read, for they are meant for this process and for none it starts.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import MutableMapping

FIRST_FD = 3
"""Where inherited descriptors begin (SD_LISTEN_FDS_START)."""


class ServiceManager:
    """Tells the service manager how it goes; silent where there is none.

    ``watchdog_s`` is how often, in seconds, it wants a sign of life, or None: half of what it allows, as its manual
    advises.
    """

    def __init__(self, environ: MutableMapping[str, str] = os.environ) -> None:
        address = environ.pop("NOTIFY_SOCKET", "")
        # systemd writes an abstract address with @, the kernel wants a NUL.
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) if address else None
        period_us = environ.pop("WATCHDOG_USEC", "")
        meant_for = environ.pop("WATCHDOG_PID", str(os.getpid()))
        wanted = address and period_us.isdecimal() and meant_for == str(os.getpid())
        self.watchdog_s = int(period_us) / 2_000_000 if wanted else None
        self._alive_until = 0.0

    @property
    def listens(self) -> bool:
        """Whether a service manager receives these notifications."""
        return self._socket is not None

    def ready(self) -> None:
        """Clients can connect from now on."""
        self._tell(f"READY=1\nMAINPID={os.getpid()}")

    def status(self, text: str) -> None:
        """Sends one line for ``systemctl status``."""
        self._tell(f"STATUS={text}")

    def stopping(self) -> None:
        """Notifies that the end has begun."""
        self._tell("STOPPING=1\nSTATUS=stopping")

    def alive(self) -> None:
        """Notifies the watchdog that the loop turns."""
        self._tell("WATCHDOG=1")

    def beat(self) -> None:
        """Sends the same for a loop that turns as often as it likes; sends no more often than the watchdog needs."""
        if self.watchdog_s and time.monotonic() >= self._alive_until:
            self._alive_until = time.monotonic() + self.watchdog_s
            self.alive()

    def close(self) -> None:
        """Tells nothing any more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _tell(self, lines: str) -> None:
        if self._socket is None:
            return
        try:
            self._socket.sendto(lines.encode(), self._address)
        except OSError:
            # A manager that went away or is too busy to listen is no reason to stop serving.
            return


def inherited_sockets(environ: MutableMapping[str, str] = os.environ) -> list[socket.socket]:
    """Returns the listening sockets of a socket unit, non-blocking and not inherited by children."""
    count = environ.pop("LISTEN_FDS", "0")
    meant_for = environ.pop("LISTEN_PID", "")
    environ.pop("LISTEN_FDNAMES", None)
    if meant_for != str(os.getpid()) or not count.isdecimal():
        return []
    sockets = []
    for descriptor in range(FIRST_FD, FIRST_FD + int(count)):
        os.set_inheritable(descriptor, False)
        opened = socket.socket(fileno=descriptor)
        opened.setblocking(False)
        sockets.append(opened)
    return sockets
