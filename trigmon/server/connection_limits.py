"""Connection limits: which connections there are, which are admitted, and the refusal when there is no room.

A connection takes a place from the moment it was accepted. A hello above the limit is answered with 2025. Some
connections above it are accepted for that answer; beyond those a connection is refused before its hello, so none waits
in the kernel. Some places are reserved for root, the daemon's user, administrators and monitors: clients that use up
all connections cannot lock out administrators. Only an administrator takes more than a user's share of the
connections, open objects, dynamic queues and reservations. All clients by plain TCP count as one user. Those by TLS
have places of their own until they have proved a user. A user has one share by whatever way it comes, and tickets at
most half of it.
"""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from trigmon.mq.errors import MQError
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused
from trigmon.qmgr.manager import QueueManager
from trigmon.qmgr.sessions import Identity, Session
from trigmon.server.connection import Connection
from trigmon.server.peer_identity import BY_TLS, Peer
from trigmon.server.strangers import MOST_STRANGERS, Strangers
from trigmon.setting_sections import ServerSettings
from trigmon.wire import codec

UNGREETED = 32
"""Connections that are accepted above the number allowed, so that their hello is answered with 2025."""

RESERVED = 8
"""Places above the number allowed, for root, the daemon's user, administrators and monitors."""

SPARE_DESCRIPTORS = 32 + UNGREETED + RESERVED
"""Descriptors below the number allowed: the store's files, the log, the monitor, and those who come above it."""


@dataclass(frozen=True)
class Shares:
    """What one user may have at most. None: see the methods; of the last three 0 is any number."""

    connections: int | None = None
    over_tcp: int | None = None
    handles: int = 0
    dynamic_queues: int = 0
    reservations: int = 0

    @classmethod
    def of(cls, server: ServerSettings) -> Shares:
        """Returns the limits of the settings."""
        return cls(
            server.max_connections_per_user,
            server.max_connections_over_tcp,
            server.max_handles_per_user,
            server.max_dynamic_queues_per_user,
            server.max_reservations_per_user,
        )

    def places(self, peer: Peer, share: int | str, room: int) -> int:
        """Returns how many of ``room`` places those may take who count under one of the peer's shares.

        By default a user has half, all of TCP a quarter. A user's tickets have half of what the user has.
        """
        if peer.administrator:
            return room + RESERVED
        limit, part = (self.over_tcp, 4) if -1 in peer.shares else (self.connections, 2)
        places = min(room, max(1, room // part) if limit is None else limit)
        if peer.ticket is not None and share == peer.shares[0]:
            places = max(1, places // 2)
        return places + (RESERVED if peer.monitor else 0)


class Clients:
    """The connections of one queue manager.

    ``room`` is how many may be greeted, administrators excepted. With a ``refusal`` every new connection gets that.
    """

    def __init__(self, manager: QueueManager, room: int, version: str, shares: Shares | None = None) -> None:
        # In the order they came: what is done with all of them is done in an order that can be repeated.
        self.connections: dict[Connection, None] = {}
        self.room = room
        self.refusal: Refused | None = None
        self.strangers = Strangers()
        self._manager = manager
        self._version = version
        self._arriving: set[Connection] = set()
        self._waiting = 0  # accepted connections whose user is being looked up
        # By client id, from the hello on; None until it has its session.
        self._by_client_id: dict[str, Session | None] = {}
        self._shares = shares or Shares()
        # Of each share, -1 for all by TCP: accepted connections, and greeted ones.
        self._accepted: Counter[int | str] = Counter()
        self._inside: Counter[int | str] = Counter()

    # -- places -------------------------------------------------------------------------------------------

    def may_enter(self, peer: Peer) -> bool:
        """Returns whether an accepted connection of this peer may speak at all."""
        present = len(self.connections) + len(self._arriving) + self._waiting - self._accepted[BY_TLS]
        if present >= self.room + UNGREETED + (RESERVED if peer.monitor else 0):
            return False
        return self._full_share(peer, self._accepted, UNGREETED) is None

    def _full_share(self, peer: Peer, places: Counter[int | str], more: int = 0) -> int | str | None:
        """Returns the first of the peer's shares that has no place left, nor any ``more``."""
        full = (s for s in peer.shares if places[s] >= self._shares.places(peer, s, self.room) + more)
        return next(full, None)

    def wait(self, uid: int) -> None:
        """Counts an accepted connection while its user is looked up."""
        self._waiting += 1
        self._accepted[uid] += 1

    def waited(self, uid: int) -> None:
        """Ends what :meth:`wait` began."""
        self._waiting -= 1
        self._accepted[uid] -= 1

    def expect(self, connection: Connection) -> None:
        """Counts a connection that was accepted and has not begun."""
        self._arriving.add(connection)
        self._accepted.update(connection.peer.shares)

    def identified(self, connection: Connection, peer: Peer) -> bool:
        """Counts a connection by TLS under its account from now on; False where it has gone meanwhile."""
        if connection not in self.connections:
            return False
        self.strangers.leave(connection)
        self._accepted.subtract(connection.peer.shares)
        self._accepted.update(peer.shares)
        connection.peer = peer
        return True

    def began(self, connection: Connection) -> None:
        """Keeps a connection until its last moment, which is now when all are refused."""
        self._arriving.discard(connection)
        self.connections[connection] = None
        if self.refusal is not None:
            connection.end(codec.encode_welcome(self.refusal))

    def gone(self, connection: Connection) -> None:
        """Gives the place of a connection free; its session may still have to be backed out."""
        if connection in self._arriving or connection in self.connections:
            self._accepted.subtract(connection.peer.shares)
        self.strangers.leave(connection)
        self._arriving.discard(connection)
        self.connections.pop(connection, None)
        if connection.disconnected and connection.session is not None:
            self.forget([connection.session])

    def forget(self, sessions: Iterable[Session]) -> None:
        """Lets the client ids of sessions that are over be used again."""
        for session in sessions:
            if self._by_client_id.get(session.identity.client_id) is session:
                del self._by_client_id[session.identity.client_id]
                self._inside.subtract(session.identity.shares)

    def no_room(self, peer: Peer) -> Refused:
        """Returns the refusal for a connection without a place."""
        about = f"{self.room} connections are open, and this queue manager lets no more in (server.max_connections)"
        full = self._full_share(peer, self._inside)
        if full is None:
            full = self._full_share(peer, self._accepted)
        if full is not None:
            places = self._shares.places(peer, full, self.room)
            by_name = f"the tasks by {full}" if peer.ticket and full == peer.shares[0] else peer.user or f"user {full}"
            who, key = ("all who come over TCP together", "over_tcp") if full == -1 else (by_name, "per_user")
            about = (
                f"{who} may have {places} connections of {self.room}, which are taken (server.max_connections_{key})"
            )
        return Refused(reason=int(Reason.MAX_CONNS_LIMIT_REACHED), about=about)

    # -- the greeting -------------------------------------------------------------------------------------

    def claim(self, connection: Connection, hello: codec.Hello) -> Identity | Refused:
        """Returns a client's identity: the user is the kernel's word, the client id its own; or the refusal."""
        peer = connection.peer
        if hello.protocol != codec.PROTOCOL_VERSION:
            return codec.other_version(hello, self._version)
        is_full = len(self._by_client_id) >= self.room + (RESERVED if peer.monitor else 0)
        if is_full or self._full_share(peer, self._inside) is not None:
            return self.no_room(peer)
        if hello.client_id in self._by_client_id:
            # Outcomes of units of work are kept by it: two at once would settle, and ask for, each other's.
            about = f"client_id {hello.client_id[:64]!r} is another live connection's: choose one at random for each"
            return Refused(reason=int(Reason.ALREADY_CONNECTED), about=about)
        self._by_client_id[hello.client_id] = None
        self._inside.update(peer.shares)
        return Identity(
            client_id=hello.client_id,
            application=hello.application,
            pid=peer.pid if peer.pid > 0 else hello.pid,
            uid=peer.uid,
            shares=peer.shares,
            user=peer.user,
            run_id="" if peer.ticket else hello.run_id,
            administrator=peer.administrator,
            monitor=peer.monitor,
            setter=peer.setter,
            groups=peer.groups,
            address=peer.address,
            ticket=peer.ticket,
            max_handles=0 if peer.administrator else self._shares.handles,
            max_dynamic_queues=0 if peer.administrator else self._shares.dynamic_queues,
            max_reservations=0 if peer.administrator else self._shares.reservations,
        )

    def enter(self, identity: Identity) -> Session | Refused:
        """Returns the session of who has a claim. Asks the queue manager, so it is done where that is asked."""
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
            self._inside.subtract(connection.peer.shares)
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

    # -- all of them --------------------------------------------------------------------------------------

    def look_after(self, now: float) -> None:
        """Ends the connections of peers whose time is up; ``now`` is on the loop's clock."""
        for connection in list(self.connections):
            connection.look_after(now)

    def end_all(self, in_session: Refused, before_session: Refused) -> None:
        """Ends all connections in order, each with its reason, behind the replies that it is owed."""
        # Numbered 0: it answers no call, it is the last reply of the connection. Some still wait for their welcome.
        reply, welcome = codec.encode_response(0, in_session), codec.encode_welcome(before_session)
        for connection in list(self.connections):
            connection.end(reply if connection.session else welcome)

    def cut_all(self) -> None:
        """Ends all connections at once; what lies unsent is thrown away."""
        for connection in list(self.connections):
            connection.cut()


def room_for(wanted: int, *, by_tls: bool) -> int:
    """Returns how many connections the process's limit of descriptors has room for, at most those wanted."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    spare = SPARE_DESCRIPTORS + (MOST_STRANGERS if by_tls else 0)
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft - spare))
