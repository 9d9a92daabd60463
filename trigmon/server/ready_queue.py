"""The ready queue: connections with calls that can be performed, and their fair share of the next turn."""

from __future__ import annotations

from trigmon.mq.calls import Call
from trigmon.qmgr.sessions import Session
from trigmon.server.connection import Connection
from trigmon.server.memory_budget import TURN_MESSAGES, Room

FAIR_SHARE = 8
"""Messages a connection may bring into a turn at least, however many connections there are."""

Batch = list[tuple[Session, int, Call]]


class ReadyQueue:
    """Ready connections, in the order in which they take part in turns."""

    def __init__(self) -> None:
        self._connections: dict[Connection, None] = {}

    def __bool__(self) -> bool:
        return bool(self._connections)

    def add(self, connection: Connection) -> None:
        """Adds a connection behind all others, if it is ready and not yet there."""
        if connection.is_ready:
            self._connections[connection] = None

    def remove(self, connection: Connection) -> None:
        """Removes a connection that has ended."""
        self._connections.pop(connection, None)

    def next_batch(self) -> Batch:
        """Returns the calls of the next turn: of each connection some, in its order."""
        batch: Batch = []
        room = Room()
        share = max(FAIR_SHARE, TURN_MESSAGES // max(1, len(self._connections)))
        waiting, self._connections = self._connections, {}
        served: list[Connection] = []
        for connection in waiting:
            if room.is_left and connection.session is not None:
                session = connection.session
                batch += [(session, sequence, call) for sequence, call in connection.take(share, room)]
                served.append(connection)
            else:
                self.add(connection)
        # Behind the connections that were not served.
        for connection in served:
            self.add(connection)
        return batch
