"""The overview: what needs attention, the queues, and what runs; live."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from trigmon.console.overview import read_overview
from trigmon.console.web.web_console import WebConsole, console_of
from trigmon.rules.attention import URGENT


async def overview_page(request: Request) -> Response:
    """Returns the page."""
    console = console_of(request)
    return console.page("overview.html", fragment=await console.shared.get("overview", lambda: _fragment(console)))


async def overview_events(request: Request) -> Response:
    """Returns its changes as server-sent events."""
    console = console_of(request)
    return console.live(console.changes("overview", lambda: _fragment(console)))


async def _fragment(console: WebConsole) -> str:
    overview = await console.clients.read(lambda qm: read_overview(qm, console.overview_memory))
    return console.fragment("overview_part.html", view=overview, urgent=URGENT)
