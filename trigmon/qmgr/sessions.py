"""The identity of connections. What a connection has open is a fact of the store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trigmon.mq.calls import BridgeState, Call, CopyState, LostServer, WatchState
from trigmon.mq.errors import NotAuthorized
from trigmon.rules.model.facts import Wants
from trigmon.rules.model.handle_changes import Connect, DropConnection
from trigmon.rules.model.handles import ConnectionFacts
from trigmon.rules.model.ticket import Ticket, check_ticket
from trigmon.store.port import Store


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a client: from its hello, and from the socket's peer.

    ``administrator`` may change objects, ``monitor`` may write the run ledger, ``setter`` may use MQSET; an
    administrator may do both. ``max_handles``, ``max_dynamic_queues`` and ``max_reservations`` are for its user, over
    all connections; 0 is any number.
    """

    client_id: str
    application: str = ""
    pid: int = 0
    uid: int = -1
    shares: tuple[int | str, ...] = ()  # whose limits of connections it counts under
    user: str = ""
    run_id: str = ""
    administrator: bool = False
    monitor: bool = False
    setter: bool = False
    groups: tuple[str, ...] = ()
    address: str = ""  # host and port of a client by TCP or TLS
    max_handles: int = 0
    max_dynamic_queues: int = 0
    max_reservations: int = 0
    ticket: Ticket | None = None  # by which it came


ITSELF = Identity(client_id="", application="trigmon", administrator=True)
"""The queue manager's own identity, for its own calls."""


class Parked(msgspec.Struct):
    """A get that waits: performed again when its queue changes, and when its deadline has come (None: never).

    ``until_ms`` is how long it may wait, None for ever: later than the deadline where it only goes on looking.
    """

    sequence: int
    call: Call
    q_name: str
    deadline_ms: int | None
    until_ms: int | None


class Session:
    """A connection, for the manager. ``attachment`` belongs to the caller, the server or a simulation.

    ``ends_on_news``: it is a monitor's, and its waiting get ends when an operator asks for something. ``is_asked``: its
    call is being performed, and changes on the way do not end its wait. ``lost_servers``: a monitor's name, and which
    of its Spark Connect servers end again and again. ``bridges``: its name, and how it stands to initiation queues
    elsewhere. ``watches``: how the watches are that its process serves, None
    where it serves none. ``copy``: how the copy of a queue elsewhere is that it does, None where it does none.
    """

    __slots__ = (
        "attachment",
        "bridges",
        "connection",
        "copy",
        "ends_on_news",
        "identity",
        "is_asked",
        "is_gone",
        "lost_servers",
        "parked",
        "watches",
    )

    def __init__(self, connection: int, identity: Identity) -> None:
        self.connection = connection
        self.identity = identity
        self.parked: Parked | None = None
        self.is_gone = False
        self.is_asked = False
        self.ends_on_news = False
        self.lost_servers: tuple[str, list[LostServer]] = ("", [])
        self.bridges: tuple[str, list[BridgeState]] = ("", [])
        self.watches: list[WatchState] | None = None
        self.copy: CopyState | None = None
        self.attachment: Any = None

    def begin(self, store: Store, now: int) -> None:
        """Makes the connection known. Nothing of it needs to be durable. Raises NotAuthorized for a ticket (2035)."""
        store.apply([Connect(self.facts(now))], False)
        if (ticket := self.identity.ticket) is None:
            return
        try:
            check_ticket(
                ticket, store.facts(Wants(self.connection, reservation=ticket.reservation), False).reservation, now
            )
        except NotAuthorized:
            store.apply([DropConnection(self.connection)], False)
            raise

    def facts(self, since_ms: int) -> ConnectionFacts:
        """Returns what the rules may know of a connection that begins now."""
        it = self.identity
        return ConnectionFacts(
            self.connection,
            it.client_id,
            it.application,
            it.user,
            it.pid,
            it.run_id,
            is_administrator=it.administrator,
            is_setter=it.setter,
            is_monitor=it.monitor,
            groups=it.groups,
            max_handles=it.max_handles,
            max_dynamic_queues=it.max_dynamic_queues,
            max_reservations=it.max_reservations,
            since_ms=since_ms,
            ticket=it.ticket,
        )


class SessionReports:
    """What connected monitors and services report of themselves, and what this session does."""

    def __init__(self, session: Session, sessions: Mapping[int, Session]) -> None:
        self._session = session
        self._sessions = sessions

    def report_servers(self, monitor: str, servers: list[LostServer]) -> None:
        """Notes which of this monitor's Spark Connect servers end again and again."""
        self._session.lost_servers = monitor, servers

    def report_bridges(self, monitor: str, bridges: list[BridgeState]) -> None:
        """Notes how this monitor stands to initiation queues elsewhere."""
        self._session.bridges = monitor, bridges

    def report_watches(self, watches: list[WatchState]) -> None:
        """Notes how the watches are that this session's process serves."""
        self._session.watches = watches

    def report_copy(self, state: CopyState) -> None:
        """Notes how the copy is that this session does."""
        self._session.copy = state

    def lost_servers(self) -> dict[str, list[LostServer]]:
        """Returns by monitor the Spark Connect servers that end again and again."""
        return dict(each.lost_servers for each in self._sessions.values() if each.lost_servers[1])

    def bridges(self) -> dict[str, list[BridgeState]]:
        """Returns by monitor how it stands to initiation queues elsewhere."""
        return dict(each.bridges for each in self._sessions.values() if each.bridges[1])

    def watches(self) -> dict[str, WatchState] | None:
        """Returns by name how the watches are, None where no process serves them."""
        reported = [each.watches for each in self._sessions.values() if each.watches is not None]
        return {state.name: state for states in reported for state in states} if reported else None

    def copies(self) -> list[CopyState]:
        """Returns how the copies of queues elsewhere are, by name."""
        return sorted((each.copy for each in self._sessions.values() if each.copy is not None), key=lambda it: it.name)
