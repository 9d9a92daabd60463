"""Connections by TLS that have not proved a user: they have places of their own, which nobody can fill for long.

Every peer that reaches the port can begin a handshake, so these places are no user's share. Where all are taken, the
next connection ends another one: the oldest of the address that has the most. A client proves its user as soon as it
can, so silent connections are ended before it, and those of one address never end the only one of another address.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trigmon.server.password_guesses import network

if TYPE_CHECKING:
    from trigmon.server.connection import Connection

MOST_STRANGERS = 256
"""Connections by TLS without a user, beside those of ``server.max_connections``."""


class Strangers:
    """Who has not proved a user yet, by address."""

    def __init__(self, most: int = MOST_STRANGERS) -> None:
        self._most = most
        self._networks: dict[Connection, str] = {}
        # Of each address the connections in the order they came, each with what ends it.
        self._of: dict[str, dict[Connection, Callable[[], None]]] = {}

    def __len__(self) -> int:
        return len(self._networks)

    def take(self, connection: Connection, end: Callable[[], None]) -> str:
        """Gives a connection a place; returns the address of the one that was ended for it, "" for none.

        ``end`` ends the connection, and is called when it has no place any longer.
        """
        ended = self._end_one() if len(self) >= self._most else ""
        place = self._networks[connection] = network(connection.peer.host)
        self._of.setdefault(place, {})[connection] = end
        return ended

    def leave(self, connection: Connection) -> None:
        """Frees the place of a connection that has proved its user, or has gone."""
        place = self._networks.pop(connection, None)
        if place is not None:
            del self._of[place][connection]
            if not self._of[place]:
                del self._of[place]

    def _end_one(self) -> str:
        place, there = max(self._of.items(), key=lambda item: len(item[1]))
        oldest, end = next(iter(there.items()))
        self.leave(oldest)
        end()
        return place
