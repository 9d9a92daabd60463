"""The application: which page is where, what goes wrong, and the minute's sample of depths."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from importlib.resources import files

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from trigmon.client.connection import Connection
from trigmon.console.error_text import NOT_REACHABLE, sentence
from trigmon.console.web.dead_letter_page import dead_letter_action, dead_letter_page, dead_letter_rehearsal
from trigmon.console.web.depth_history import EVERY_S
from trigmon.console.web.overview_page import overview_events, overview_page, queue_by_name
from trigmon.console.web.queue_page import queue_events, queue_page
from trigmon.console.web.rehearse_page import alter_action, rehearse_page
from trigmon.console.web.run_page import run_events, run_page
from trigmon.console.web.runs_page import runs_page
from trigmon.console.web.web_access import Access
from trigmon.console.web.web_actions import cancel_run, pause_queue, resume_queue, retry_run, start_process
from trigmon.console.web.web_console import WebConsole, console_of, now_ms
from trigmon.mq.calls import QueueStatus
from trigmon.mq.errors import MQError, NotAuthorized, UnknownObjectName
from trigmon.mq.paging import all_rows

_TYPES = {"console.css": "text/css", "console.js": "text/javascript", "icon.svg": "image/svg+xml"}
_STATIC = {name: (files("trigmon.console.web") / "static" / name).read_bytes() for name in _TYPES}


def web_app(console: WebConsole, names: tuple[str, ...] = ()) -> ASGIApp:
    """Returns the application. ``names`` are further names by which browsers may come."""
    pages = {
        "/": overview_page,
        "/events/overview": overview_events,
        "/events/queues/{name:path}": queue_events,
        "/events/runs/{run_id}": run_events,
        "/queues": queue_by_name,
        "/queues/{name:path}": queue_page,
        "/runs": runs_page,
        "/runs/{run_id}": run_page,
        "/dead-letters": dead_letter_page,
        "/dead-letters/rehearse": dead_letter_rehearsal,
        "/rehearse": rehearse_page,
        "/static/{name}": static_file,
    }
    actions = {
        "/actions/retry-run": retry_run,
        "/actions/cancel-run": cancel_run,
        "/actions/pause-queue": pause_queue,
        "/actions/resume-queue": resume_queue,
        "/actions/start-process": start_process,
        "/actions/dead-letters": dead_letter_action,
        "/actions/alter-queue": alter_action,
    }

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        sampling = asyncio.create_task(_sample_depths(console))
        yield
        sampling.cancel()
        console.clients.close()

    app = Starlette(
        routes=[
            *(Route(path, page) for path, page in pages.items()),
            *(Route(path, action, methods=["POST"]) for path, action in actions.items()),
        ],
        exception_handlers={HTTPException: _http_error, MQError: _mq_error},
        lifespan=lifespan,
    )
    app.state.console = console
    return Access(app, console.keys, names)


async def static_file(request: Request) -> Response:
    """Returns the styles, the script or the icon."""
    name = request.path_params["name"]
    if name not in _STATIC:
        raise HTTPException(404, "There is no such file.")
    return Response(_STATIC[name], media_type=_TYPES[name])


async def _sample_depths(console: WebConsole) -> None:
    """Adds a sample of the depths each minute; one that cannot be had is left out."""

    def read(qm: Connection) -> dict[str, int]:
        rows = all_rows(qm.call, QueueStatus())
        return {row["name"]: row["current_q_depth"] for row in rows if not row["name"].startswith("SYSTEM.")}

    while True:
        with suppress(MQError):
            console.depths.add(now_ms(), await console.clients.read(read))
        await asyncio.sleep(EVERY_S)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return console_of(request).page("problem.html", status=error.status_code, text=error.detail, again=False)


async def _mq_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, MQError)
    status = 400
    if isinstance(error, UnknownObjectName):
        status = 404
    elif isinstance(error, NotAuthorized):
        status = 403
    elif int(error.reason) in NOT_REACHABLE:
        status = 503
    elif request.method == "POST":
        status = 409
    return console_of(request).page("problem.html", status=status, text=sentence(error), again=status == 503)
