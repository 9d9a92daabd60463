"""Connections to the web console: a request has a deadline, and those without the cookie have few places.

Any local user may connect. The cookie tells the owner of the console from others: a connection that has not shown
it is cut when many others come behind it, so nobody keeps the owner out.
"""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_S = 10.0
"""So long a client may take to send a request, from the connection or the end of the answer before it."""
MANY_STRANGERS, MOST_STRANGERS = 64, 256
"""Beyond the first number one is cut that has had SHORT_S to show the cookie, beyond the second one at once."""
SHORT_S = 0.25
KNOWN = "trigmon.known"
"""The ASGI extension by which the application says that a connection has shown the cookie."""


class Stranger(Protocol):
    """A connection of which nothing is proved yet."""

    def cut(self) -> None:
        """Ends the connection at once."""


class Places:
    """The places of connections that have not shown the cookie: where all are taken, the oldest ones are cut."""

    def __init__(self) -> None:
        self._strangers: dict[Stranger, float] = {}  # by when they came, the oldest first

    def take(self, connection: Stranger, now_s: float) -> None:
        """Gives a place to a connection that came now."""
        self._strangers[connection] = now_s
        while len(self._strangers) > MANY_STRANGERS:
            oldest, came_s = next(iter(self._strangers.items()))
            if now_s - came_s < SHORT_S and len(self._strangers) <= MOST_STRANGERS:
                return
            self.leave(oldest)
            oldest.cut()

    def leave(self, connection: Stranger) -> None:
        """Frees the place of a connection, which has ended or is the owner's."""
        self._strangers.pop(connection, None)


class BrowserConnection(H11Protocol):
    """A connection whose requests have a deadline as a whole, and that has one of the ``places`` until it is known."""

    def __init__(self, *, places: Places, **given: Any) -> None:
        super().__init__(**given)
        self._places = places
        self._answer = self.app
        self.app = self._timed  # uvicorn calls what is here for each request
        self._answers = 0
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Gives the connection a place and a deadline."""
        super().connection_made(transport)
        self._places.take(self, self.loop.time())
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Frees the place."""
        self._places.leave(self)
        self._end_deadline()
        super().connection_lost(exc)

    def cut(self) -> None:
        """Ends the connection at once."""
        self.transport.abort()

    def _await_request(self) -> None:
        self._end_deadline()
        self._deadline = self.loop.call_later(REQUEST_S, self.cut)

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    async def _timed(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, whose headers have come; an answer may last, as that of a live page does."""
        self._end_deadline()
        self._answers += 1
        scope["extensions"] = scope.get("extensions", {}) | {KNOWN: lambda: self._places.leave(self)}
        try:
            await self._answer(scope, receive, send)
        finally:
            self._answers -= 1
            # A request that was sent ahead of this answer may be under way already.
            if not self._answers and not self.transport.is_closing():
                self._await_request()
