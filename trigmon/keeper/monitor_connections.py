"""The connections of monitors to a keeper. Orders are read from them and events are sent; the keeper waits for none.

Standard library only: the keeper imports it.
"""

from __future__ import annotations

import selectors
import socket
import time
from contextlib import suppress

from trigmon.keeper import protocol
from trigmon.keeper.keeper_log import report
from trigmon.keeper.process import may_change_users


class MonitorConnection:
    """One connection. ``unsent`` are the bytes that the monitor has not taken yet."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.may_change_users = may_change_users(link)
        self.unsent = b""
        self._lines = protocol.Lines()
        link.setblocking(False)

    def send(self, line: bytes) -> None:
        """Sends as much as the monitor takes. Raises OSError when it has gone."""
        self.unsent += line
        with suppress(BlockingIOError):
            sent = self.link.send(self.unsent, socket.MSG_NOSIGNAL)
            self.unsent = self.unsent[sent:]

    def receive(self) -> tuple[list[protocol.Message], bool]:
        """Returns all messages that have come, and whether the monitor is there. What a killed one sent counts too."""
        messages: list[protocol.Message] = []
        try:
            while data := self.link.recv(1 << 16):
                messages += self._lines.feed(data)
        except BlockingIOError:
            return messages, True
        except OSError:  # it died with something unread
            pass
        except ValueError:  # no JSON
            report()
        return messages, False


class MonitorConnections:
    """All connections of one keeper. Orders stay here, in the order they came in, until the keeper takes them."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._connections: dict[int, MonitorConnection] = {}
        self._orders: list[protocol.Message] = []
        self.closed_at = 0.0
        """When a connection was closed last, by the monotonic clock."""

    def __len__(self) -> int:
        return len(self._connections)

    def add(self, link: socket.socket) -> MonitorConnection:
        """Receives from a connection from now on."""
        connection = MonitorConnection(link)
        self._connections[link.fileno()] = connection
        self._selector.register(link, selectors.EVENT_READ, lambda: self._receive(connection))
        return connection

    def receive_all(self) -> None:
        """Receives what has come on all connections, without waiting."""
        for connection in list(self._connections.values()):
            self._receive(connection)

    def take_orders(self) -> list[protocol.Message]:
        """Returns the orders that have come in since the last call; ``may_change_users`` is the sender's own right."""
        orders, self._orders = self._orders, []
        return orders

    def send(self, line: bytes, *to: MonitorConnection) -> None:
        """Sends a line to these connections, without any to all. A monitor that has gone is dropped."""
        for connection in to or tuple(self._connections.values()):
            try:
                connection.send(line)
            except OSError:
                self._close(connection)
                continue
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.unsent else 0)
            if self._selector.get_key(connection.link).events != wanted:
                self._selector.modify(connection.link, wanted, lambda each=connection: self._receive_and_send(each))

    def close(self) -> None:
        """Closes all connections."""
        for connection in list(self._connections.values()):
            self._close(connection)

    def _receive(self, connection: MonitorConnection) -> None:
        if connection.link.fileno() < 0:
            return  # closed since the selector named it
        messages, is_there = connection.receive()
        self._orders += [{**message, "may_change_users": connection.may_change_users} for message in messages]
        if not is_there:
            self._close(connection)

    def _receive_and_send(self, connection: MonitorConnection) -> None:
        self._receive(connection)
        if connection.link.fileno() in self._connections:
            self.send(b"", connection)

    def _close(self, connection: MonitorConnection) -> None:
        if self._connections.pop(connection.link.fileno(), None) is not None:
            self._selector.unregister(connection.link)
            connection.link.close()
            self.closed_at = time.monotonic()
