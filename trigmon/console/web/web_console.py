"""What all pages share: the client, what was read last, the templates, and what this console may do."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from typing import Any
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from trigmon.console.error_text import sentence
from trigmon.console.overview import Memory
from trigmon.console.web.client_threads import ClientThreads
from trigmon.console.web.depth_history import DepthHistory
from trigmon.console.web.page_templates import PageTemplates
from trigmon.console.web.shared_values import EVERY_S, SharedValues
from trigmon.console.web.web_access import Keys
from trigmon.console.web.web_connections import REQUEST_S
from trigmon.mq.errors import MQError, UnknownObjectName

MOST_STREAMS = 64
"""Browsers that look at a live page at a time; more are refused (503)."""
LARGEST_FORM = 65_536
MOST_NOTES = 64
_CSRF = "form"


class WebConsole:
    """The state of the web console. ``allow_actions``: forms may change something; ``show_data``: of messages."""

    def __init__(
        self, clients: ClientThreads, *, allow_actions: bool = False, show_data: bool = False, token: str = ""
    ) -> None:
        self.clients = clients
        self.allow_actions = allow_actions
        self.show_data = show_data
        self.keys = Keys(token)
        self.shared = SharedValues()
        self.depths = DepthHistory()
        self.overview_memory = Memory()
        self.streams = 0
        self.ending = asyncio.Event()
        self._notes: OrderedDict[str, str] = OrderedDict()
        self.templates = PageTemplates(
            allow_actions=allow_actions, show_data=show_data, csrf=self.keys.made_for(_CSRF), csrf_field="csrf"
        )

    def fragment(self, template: str, /, **values: Any) -> str:
        """Returns a part of a page."""
        return self.templates.render(template, **values)

    def page(self, template: str, /, *, status: int = 200, **values: Any) -> HTMLResponse:
        """Returns a whole page."""
        named = {"q_mgr_name": self.clients.q_mgr_name, "now_ms": now_ms()}
        return HTMLResponse(self.templates.render(template, **named | values), status)

    async def form(self, request: Request) -> dict[str, str]:
        """Returns the fields of a form that may change something. Raises HTTPException for one that may not."""
        if not self.allow_actions:
            raise HTTPException(403, "This console only shows: trigmon web --allow-actions.")
        body = b""
        try:
            async with asyncio.timeout(REQUEST_S):
                async for part in request.stream():
                    body += part
                    if len(body) > LARGEST_FORM:
                        raise HTTPException(413, "The form is too large.")
        except TimeoutError:
            raise HTTPException(408, "The form did not come as a whole.") from None
        fields = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
        if not self.keys.is_for(_CSRF, fields.pop("csrf", "")):
            raise HTTPException(
                403, "The form is not from this console, or from before its restart: load the page anew."
            )
        return fields

    def add_note(self, text: str) -> str:
        """Keeps what an action has done, for the page that it leads to; returns the number it is asked for by."""
        number = secrets.token_hex(8)
        self._notes[number] = text
        while len(self._notes) > MOST_NOTES:
            self._notes.popitem(last=False)
        return number

    def note(self, request: Request) -> str:
        """Returns the note that a request asks for; "" where there is none, or it was shown already."""
        return self._notes.pop(request.query_params.get("note", ""), "")

    def live(self, events: AsyncIterator[str]) -> Response:
        """Returns an answer of server-sent events. Raises HTTPException where too many are open."""
        if self.streams >= MOST_STREAMS:
            raise HTTPException(503, f"{MOST_STREAMS} pages are live already; this one does not move.")
        return StreamingResponse(self._counted(events), media_type="text/event-stream")

    async def _counted(self, events: AsyncIterator[str]) -> AsyncIterator[str]:
        self.streams += 1
        try:
            async for each in events:
                yield each
        finally:
            self.streams -= 1

    async def goes_on(self, seconds: float) -> bool:
        """Waits so long; returns False as soon as the process is to end."""
        try:
            await asyncio.wait_for(self.ending.wait(), seconds)
        except TimeoutError:
            return True
        return False

    async def must_be_there(self, key: Hashable, read: Callable[[], Awaitable[Any]]) -> None:
        """Raises UnknownObjectName for what is not there to be followed; the events tell any other trouble."""
        try:
            await self.shared.get(key, read)
        except UnknownObjectName:
            raise
        except MQError:
            return

    async def changes(self, key: Hashable, read: Callable[[], Awaitable[str]]) -> AsyncIterator[str]:
        """Yields a part of a page as an event whenever it has changed, and that the queue manager does not answer."""
        last, goes_on = "", True
        while goes_on:
            try:
                change = event("part", await self.shared.get(key, read))
            except MQError as error:
                change = event("away", sentence(error))
            if change != last:
                yield change
                last = change
            goes_on = await self.goes_on(EVERY_S)


def event(name: str, text: str, id_: str = "") -> str:
    """Returns a server-sent event; a text may have several lines."""
    head = f"event: {name}\n" + (f"id: {id_}\n" if id_ else "")
    return head + "".join(f"data: {line}\n" for line in text.replace("\r", "").split("\n")) + "\n"


def now_ms() -> int:
    """Returns the milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def console_of(request: Request) -> WebConsole:
    """Returns the console that a request is for."""
    console: WebConsole = request.app.state.console
    return console
