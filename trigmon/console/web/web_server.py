"""The process of the web console: it listens, prints its address, and serves until it is ended."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import cast

import uvicorn

from trigmon.console.web.client_threads import ClientThreads
from trigmon.console.web.web_app import web_app
from trigmon.console.web.web_connections import BrowserConnection, Places
from trigmon.console.web.web_console import WebConsole
from trigmon.console.web.web_socket import Listening

MOST_CONNECTIONS = 512
"""More get 503."""
END_S = 2
"""Live pages have so long to end when the process is to end; then they are cut off."""


class Server(uvicorn.Server):
    """A server that is ended by ``should_exit``: uvicorn's own would raise the signal again behind its end."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves the signals to the event loop."""
        yield


def serve(
    listening: Listening,
    qmgr: str | None,
    announce: Callable[[str], None],
    *,
    allow_actions: bool = False,
    show_data: bool = False,
    token: str = "",
    names: tuple[str, ...] = (),
) -> None:
    """Serves until SIGINT or SIGTERM. ``announce`` gets the token (blank: made anew) when connections are taken.

    Raises QMgrNotAvailable and the like where no queue manager answers at the start.
    """
    console = WebConsole(ClientThreads(qmgr), allow_actions=allow_actions, show_data=show_data, token=token)

    async def served() -> None:
        await console.clients.read(lambda qm: qm.q_mgr_name)
        config = uvicorn.Config(
            web_app(console, names),
            http=cast("type[asyncio.Protocol]", partial(BrowserConnection, places=Places())),
            log_level="warning",
            access_log=False,  # the first request holds the token
            server_header=False,
            proxy_headers=False,
            ws="none",
            limit_concurrency=MOST_CONNECTIONS,
            lifespan="on",
            timeout_graceful_shutdown=END_S,
        )
        server = Server(config)

        def end() -> None:
            server.should_exit = True
            console.ending.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, end)
        announce(console.keys.token)
        await server.serve(sockets=[listening.link])

    try:
        asyncio.run(served())
    finally:
        listening.close()
