"""Who is in, who may come in, and who is told at the door that there is no room.

A connection takes a place from the moment it was accepted. Those who say hello above the number allowed are told 2025;
of those a few are heard, and when the step is full as well the rest is told without having been asked anything, so
nobody is left waiting in the kernel. Some places more are kept for root, the daemon's user, administrators and
monitors: whoever fills the house cannot keep those out who could end it.
"""

from __future__ import annotations

from collections.abc import Iterable

from trigmon.mq.errors import MQError
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.sessions import Identity, Session
from trigmon.server.authority import Peer
from trigmon.server.connection import Connection
from trigmon.wire import codec

ON_THE_STEP = 32
"""Connections that are accepted above the number allowed, only to hear that in answer to their hello."""

KEPT = 8
"""Places above the number allowed, for root, the daemon's user, administrators and monitors."""


class Guests:
    """The connections of one queue manager. ``room`` is how many may have said hello, but for administrators."""

    def __init__(self, manager: QueueManager, room: int, version: str) -> None:
        # In the order they came: what is done with all of them is done in an order that can be told again.
        self.connections: dict[Connection, None] = {}
        self.room = room
        self._manager = manager
        self._version = version
        self._arriving: set[Connection] = set()
        # By the id it has said, from then on; None until it has its session.
        self._by_client_id: dict[str, Session | None] = {}

    # -- places -------------------------------------------------------------------------------------------

    def may_enter(self, peer: Peer) -> bool:
        """Whether an accepted connection of this peer may speak at all."""
        present = len(self.connections) + len(self._arriving)
        return present < self.room + ON_THE_STEP + (KEPT if peer.monitor else 0)

    def expect(self, connection: Connection) -> None:
        """Counts a connection that was accepted and has not begun."""
        self._arriving.add(connection)

    def began(self, connection: Connection) -> None:
        """Keeps a connection until its last moment."""
        self._arriving.discard(connection)
        self.connections[connection] = None

    def gone(self, connection: Connection) -> None:
        """Gives the place of a connection free; its session may still have to be backed out."""
        self._arriving.discard(connection)
        self.connections.pop(connection, None)
        if connection.disconnected and connection.session is not None:
            self.forget([connection.session])

    def forget(self, sessions: Iterable[Session]) -> None:
        """Lets the client ids of sessions that are over be used again."""
        for session in sessions:
            if self._by_client_id.get(session.identity.client_id) is session:
                del self._by_client_id[session.identity.client_id]

    def no_room(self) -> Refused:
        """What is said to those for whom there is no place."""
        about = f"{self.room} connections are open, and this queue manager lets no more in"
        return Refused(reason=int(Reason.MAX_CONNS_LIMIT_REACHED), about=about)

    # -- the greeting -------------------------------------------------------------------------------------

    def claim(self, connection: Connection, hello: codec.Hello) -> Identity | Refused:
        """Who a client is, the kernel said; what it is called, it says itself, and that is its own from now on."""
        peer = connection.peer
        if hello.protocol != codec.PROTOCOL_VERSION:
            return codec.other_version(hello, self._version)
        if len(self._by_client_id) >= self.room + (KEPT if peer.monitor else 0):
            return self.no_room()
        if hello.client_id in self._by_client_id:
            # Outcomes of units of work are kept by it: two at once would settle, and ask for, each other's.
            about = f"client_id {hello.client_id[:64]!r} is another live connection's: choose one at random for each"
            return Refused(reason=int(Reason.ALREADY_CONNECTED), about=about)
        self._by_client_id[hello.client_id] = None
        return Identity(
            client_id=hello.client_id,
            application=hello.application,
            pid=peer.pid if peer.pid > 0 else hello.pid,
            uid=peer.uid,
            user=peer.user,
            run_id=hello.run_id,
            administrator=peer.administrator,
            monitor=peer.monitor,
            setter=peer.setter,
        )

    def enter(self, identity: Identity) -> Session | Refused:
        """The session of who has a claim. Asks the queue manager, so it is done where that is asked."""
        try:
            return self._manager.connect(identity)
        except MQError as error:
            return Refused(reason=error.reason, about=error.about)

    def greet(
        self, connection: Connection, client_id: str, entered: Session | Refused, frame_limit: int
    ) -> codec.Welcome | Refused:
        """Gives the connection its session, or its claim up."""
        if isinstance(entered, Refused):
            del self._by_client_id[client_id]
            return entered
        entered.attachment = connection
        connection.session = self._by_client_id[client_id] = entered
        return codec.Welcome(
            protocol=codec.PROTOCOL_VERSION,
            q_mgr_name=self._manager.name,
            server_version=self._version,
            administrator=connection.peer.administrator,
            monitor=connection.peer.monitor,
            frame_limit=frame_limit,
        )
