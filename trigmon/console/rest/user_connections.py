"""Connections of the users of the REST interface: a request takes an idle one of its user, or makes one.

A password costs the queue manager a tenth of a second on purpose, and behind wrong ones it lets this machine wait. So a
user who is known is asked once a minute, and is not held up by another one who guesses.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from trigmon.client.address import connect_as
from trigmon.client.connection import Connection, hand_over
from trigmon.mq.calls import Ping
from trigmon.mq.errors import MQError

CONNECT_S = 10.0
LONGEST_S = 60.0
"""So long a connection serves: an account that is removed, or has another password, is known to be so behind it."""


class _Idle(NamedTuple):
    connection: Connection
    made_s: float


class UserConnections:
    """The idle connections, by a key that tells no password."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._secret = os.urandom(32)
        self._lock = threading.Lock()
        self._idle: dict[bytes, list[_Idle]] = {}

    @contextmanager
    def of(self, user: str, password: str) -> Iterator[Connection]:
        """Yields a connection of a user; it is kept when its block ends cleanly.

        Raises NotAuthorized for a wrong password, QMgrNotAvailable and others of :func:`connect_as`.
        """
        key = self._key(user, password)
        found = self._taken(key)
        if found is None:
            made = connect_as(self._address, user, password, application="trigmon rest", timeout_s=CONNECT_S)
            found = _Idle(made, time.monotonic())
        try:
            yield found.connection
        except BaseException:
            # What is open or not committed ends with it.
            found.connection.drop()
            raise
        with self._lock:
            self._idle.setdefault(key, []).append(found)
        self._prune(time.monotonic() - LONGEST_S)

    def is_known(self, user: str, password: str) -> bool:
        """Returns whether a connection of this user is idle, so that the next request waits for no password."""
        self._prune(time.monotonic() - LONGEST_S)
        with self._lock:
            return bool(self._idle.get(self._key(user, password)))

    def let_in(self, user: str, password: str) -> None:
        """Makes an idle connection of a user. Raises as :meth:`of` does."""
        with self.of(user, password):
            pass

    def _key(self, user: str, password: str) -> bytes:
        text = f"{user}\0{password}".encode(errors="surrogatepass")
        return hmac.new(self._secret, text, hashlib.sha256).digest()

    def close(self) -> None:
        """Ends the idle connections."""
        self._prune(float("inf"))

    def _taken(self, key: bytes) -> _Idle | None:
        """Returns an idle connection that answers."""
        self._prune(time.monotonic() - LONGEST_S)
        while True:
            with self._lock:
                if not self._idle.get(key):
                    return None
                found = self._idle[key].pop()
                hand_over(found.connection)
            try:
                found.connection.call(Ping())
            except MQError:
                found.connection.drop()
                continue
            return found

    def _prune(self, before_s: float) -> None:
        with self._lock:
            ended = [one for ones in self._idle.values() for one in ones if one.made_s < before_s]
            kept = {key: [one for one in ones if one.made_s >= before_s] for key, ones in self._idle.items()}
            self._idle = {key: ones for key, ones in kept.items() if ones}
        for one in ended:
            hand_over(one.connection)
            one.connection.drop()
