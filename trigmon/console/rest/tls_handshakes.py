"""Connections whose handshake of TLS is under way: each has a deadline, and there are few places.

A connection that sends nothing costs a place until it is cut. So the oldest ones are cut where many others come behind
them, and nobody who brings a handshake to its end is kept out.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from functools import partial

from trigmon.console.web.web_connections import Places
from trigmon.console.web.web_server import Server

HANDSHAKE_S = 5.0
"""So long a client may take for the handshake."""
NO_DESCRIPTORS_S = 0.2
"""So long no connection is accepted where the process can open no more."""


class Handshake:
    """A handshake that is under way."""

    def __init__(self, task: asyncio.Task[object]) -> None:
        self.task = task

    def cut(self) -> None:
        """Ends the connection."""
        self.task.cancel()


class Handshakes:
    """Accepts connections and lets those in that bring a handshake to its end; ``made`` makes their protocols."""

    def __init__(self, context: ssl.SSLContext, made: Callable[[], asyncio.Protocol]) -> None:
        self._context = context
        self._made = made
        self._places = Places()
        self._under_way: set[Handshake] = set()

    async def accept(self, link: socket.socket) -> None:
        """Accepts connections until it is cancelled."""
        loop = asyncio.get_running_loop()
        link.setblocking(False)
        while True:
            try:
                accepted, _ = await loop.sock_accept(link)
            except OSError:
                await asyncio.sleep(NO_DESCRIPTORS_S)
                continue
            shaking = loop.connect_accepted_socket(
                self._made, accepted, ssl=self._context, ssl_handshake_timeout=HANDSHAKE_S
            )
            one = Handshake(loop.create_task(shaking))
            self._under_way.add(one)
            one.task.add_done_callback(partial(self._ended, one, accepted))
            self._places.take(one, loop.time())

    def _ended(self, one: Handshake, accepted: socket.socket, task: asyncio.Task[object]) -> None:
        self._under_way.discard(one)
        self._places.leave(one)
        if task.cancelled() or task.exception() is not None:
            accepted.close()

    def end(self) -> None:
        """Cuts what is under way."""
        for one in list(self._under_way):
            one.cut()


class TlsServer(Server):
    """A server that makes the handshakes itself, by the context of its configuration."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begins to accept connections."""
        await super().startup(sockets=[])
        context = self.config.ssl
        assert context is not None
        self._handshakes = Handshakes(context, self._protocol)
        self._accepting = [asyncio.create_task(self._handshakes.accept(link)) for link in sockets or []]

    def _protocol(self) -> asyncio.Protocol:
        made = self.config.http_protocol_class
        return made(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)  # type: ignore[call-arg]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends what is under way, and accepts nothing more."""
        for task in self._accepting:
            task.cancel()
        self._handshakes.end()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        await super().shutdown(sockets)
