"""Accepted connections before their hello: the look-up of the peer's user, the limits, and the refusal.

The system's user database can be a service on the network. It is asked in a thread, and only the connections of that
user wait for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from trigmon.log import Seldom
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused
from trigmon.rules.model.ticket import Ticket, unsigned
from trigmon.server.connection import Connection
from trigmon.server.connection_limits import Clients
from trigmon.server.executor import aside
from trigmon.server.peer_identity import BY_TLS, Authority, Peer
from trigmon.server.turns import Turns
from trigmon.wire import codec
from trigmon.wire.frames import HELLO_LIMIT

if TYPE_CHECKING:
    from trigmon.server.tls_arrivals import TlsArrivals

LOOK_UP_S = 8.0
"""So long a connection waits for the user database; a client waits 10 s for its welcome by default."""


HANDSHAKE_S = 10.0
"""So long a client may take for the handshake of TLS."""


class Arrivals:
    """Admits accepted connections or refuses them. ``why_away`` is the reason to refuse all, empty for none."""

    def __init__(self, authority: Authority, seldom: Seldom) -> None:
        self.why_away = ""
        self._authority = authority
        self._seldom = seldom
        self._turns: Turns
        self._clients: Clients
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiting: set[asyncio.Task[None]] = set()
        self._look_ups: dict[tuple[int, int], asyncio.Future[Peer]] = {}
        self.tls: TlsArrivals | None = None

    def serve(self, turns: Turns, clients: Clients) -> None:
        """Admits connections to this queue manager from now on."""
        self._turns, self._clients = turns, clients

    def welcome(self, accepted: socket.socket, listening: socket.socket) -> None:
        """Takes an accepted connection. Its user is known before its hello is read, or by TLS with it."""
        try:
            if self.tls is not None and listening is self.tls.listening:
                self._admit_by_tls(self.tls, accepted)
                return
            credentials = self._authority.credentials(accepted)
            peer = self._authority.known(credentials)
            if peer is not None:
                self._admit(accepted, peer)
            elif not self._is_refused(accepted, credentials):
                self._clients.wait(credentials.uid)
                task = asyncio.create_task(self._look_up(self._clients, accepted, credentials))
                self._waiting.add(task)
                task.add_done_callback(self._waiting.discard)
        except OSError:
            accepted.close()  # the client has closed its end

    def sign_ticket(self, ticket: Ticket) -> str:
        """Returns a reservation's ticket as text. Raises FunctionNotSupported where there is no TLS listener."""
        return unsigned(ticket) if self.tls is None else self.tls.sign_ticket(ticket)

    def close(self) -> None:
        """Closes the connections that still wait for the user database."""
        for task in self._waiting:
            task.cancel()
        if self.tls is not None:
            self.tls.close()

    def _admit_by_tls(self, tls: TlsArrivals, accepted: socket.socket) -> None:
        """Begins the handshake. No reason can be sent before it: who comes while nobody is served is disconnected."""
        peer = replace(self._authority.credentials(accepted), uid=BY_TLS)
        if self.why_away:
            self._seldom.warning("no room for more connections", connections=self._clients.room, why=self.why_away)
            accepted.close()
            return
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        clients = self._clients
        connection = Connection(self._turns, peer, asyncio.get_running_loop(), identify=partial(tls.identify, clients))
        if ended := clients.strangers.take(connection, partial(_end, clients, connection, accepted)):
            count = len(clients.strangers)
            why = f"{count} connections by TLS have not proved a user; the oldest one from {ended} was ended"
            self._seldom.warning("no room for more connections", connections=clients.room, why=why)
        self._expect(connection, accepted, ssl=tls.context, ssl_handshake_timeout=HANDSHAKE_S)

    def _expect(self, connection: Connection, accepted: socket.socket, **options: Any) -> None:
        loop = asyncio.get_running_loop()
        self._clients.expect(connection)
        task = loop.create_task(loop.connect_accepted_socket(lambda: connection, accepted, **options))
        self._tasks.add(task)
        task.add_done_callback(partial(self._arrived, self._clients, connection))

    def _admit(self, accepted: socket.socket, peer: Peer) -> None:
        """Gives the connection a protocol, or refuses it. Raises OSError where the client has closed its end."""
        if self._is_refused(accepted, peer):
            return
        self._expect(Connection(self._turns, peer, asyncio.get_running_loop()), accepted)

    def _is_refused(self, accepted: socket.socket, peer: Peer) -> bool:
        if self.why_away:
            _refuse(accepted, Refused(reason=int(Reason.CF_NOT_AVAILABLE), about=self.why_away))
        elif not self._clients.may_enter(peer):
            refusal = self._clients.no_room(peer)
            self._seldom.warning("no room for more connections", connections=self._clients.room, why=refusal.about)
            _refuse(accepted, refusal)
        else:
            return False
        return True

    async def _look_up(self, clients: Clients, accepted: socket.socket, credentials: Peer) -> None:
        """Asks the user database in a thread, one for all waiting connections of a user."""
        uid = credentials.uid
        key = uid, credentials.gid
        if key not in self._look_ups:
            self._look_ups[key] = look_up = aside(partial(self._authority.look_up, credentials))
            look_up.add_done_callback(lambda _: self._look_ups.pop(key))
        look_up = self._look_ups[key]
        try:
            await asyncio.wait({look_up}, timeout=LOOK_UP_S)
        except asyncio.CancelledError:
            accepted.close()
            raise
        finally:
            clients.waited(uid)
        try:
            if not look_up.done():
                why = f"the system's user database has not answered for {LOOK_UP_S:.0f} s about user {uid}"
                self._seldom.warning("the user database does not answer", why=why)
                _refuse(accepted, Refused(reason=int(Reason.Q_MGR_NOT_AVAILABLE), about=why))
            else:
                self._admit(accepted, replace(look_up.result(), pid=credentials.pid))
        except OSError:
            accepted.close()

    def _arrived(self, clients: Clients, connection: Connection, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            clients.gone(connection)
            why = str(error) or type(error).__name__
            self._seldom.warning("a connection went before it began", why=why, address=connection.peer.address)
            # Its frames refer to it and to the link's buffers, 256 KiB, which would await the garbage collector.
            error.__traceback__ = None


def _end(clients: Clients, connection: Connection, accepted: socket.socket) -> None:
    """Ends a connection by TLS, also in its handshake."""
    if connection in clients.connections:
        connection.cut()
    else:
        with contextlib.suppress(OSError):
            accepted.shutdown(socket.SHUT_RDWR)  # the handshake meets the end of the link, and closes it


def _refuse(accepted: socket.socket, refusal: Refused) -> None:
    """Sends the reason and closes the connection. Raises OSError where the client has closed its end."""
    with accepted:
        accepted.send(codec.encode_welcome(refusal))  # whole: nobody has written to this socket yet
        with contextlib.suppress(BlockingIOError):
            # TCP throws an answer away that is followed by the end of a side that has not read everything.
            accepted.recv(HELLO_LIMIT)
