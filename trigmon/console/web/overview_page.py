"""The overview: what needs attention, what runs, the queues, schedules, watches, copies and bridges; live."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from trigmon.client.connection import Connection
from trigmon.console.overview import Overview, QueueRow, read_overview, waiting_overview
from trigmon.console.timed_rows import TimedRow, bridge_row, copy_row, read_timed
from trigmon.console.web.page_templates import queue_path
from trigmon.console.web.web_console import WebConsole, console_of
from trigmon.mq.errors import CfNotAvailable
from trigmon.mq.run import WENT_WRONG
from trigmon.rules.attention import URGENT

MOST_QUEUES = 200
"""So many queues stand on the page, which is made anew each second."""


async def overview_page(request: Request) -> Response:
    """Returns the page."""
    console = console_of(request)
    return console.page("overview.html", fragment=await console.shared.get("overview", lambda: _fragment(console)))


async def overview_events(request: Request) -> Response:
    """Returns its changes as server-sent events."""
    console = console_of(request)
    return console.live(console.changes("overview", lambda: _fragment(console)))


async def _fragment(console: WebConsole) -> str:
    def read(qm: Connection) -> tuple[Overview, list[TimedRow]]:
        return read_overview(qm, console.overview_memory), read_timed(qm, time.time_ns() // 1_000_000)

    try:
        overview, timed = await console.clients.read(read)
    except CfNotAvailable as error:
        overview, timed = waiting_overview(console.clients.q_mgr_name, error.about), []
    return console.fragment(
        "overview_part.html",
        view=overview,
        queues=shown_queues(overview.queues),
        timed=[*timed, *map(copy_row, overview.copies), *map(bridge_row, overview.bridges)],
        troubled={(each.what, each.name) for each in overview.attention if each.kind != "paused"},
        urgent=URGENT,
        went_wrong=WENT_WRONG,
    )


def shown_queues(queues: list[QueueRow]) -> list[QueueRow]:
    """Returns the queues for the page by name; where they are very many, those that are in use or have failed."""
    used = sorted(
        queues, key=lambda row: (not (row.depth or row.readers or row.running or row.failed or row.paused), row.name)
    )
    return sorted(used[:MOST_QUEUES], key=lambda row: row.name)


async def queue_by_name(request: Request) -> Response:
    """Leads to the page of the queue that a person has named."""
    name = request.query_params.get("name", "").strip()
    return RedirectResponse(queue_path(name) if name else "/", 303)
