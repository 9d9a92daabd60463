"""The process that serves the REST interface: it listens, by HTTPS where it has a certificate, until it is ended."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import uvicorn

from trigmon.console.rest.rest_app import rest_app
from trigmon.console.rest.tls_handshakes import TlsServer
from trigmon.console.web.web_connections import BrowserConnection, Places
from trigmon.console.web.web_server import END_S, MOST_CONNECTIONS, Server


def serve(
    link: socket.socket,
    address: str,
    q_mgr_name: str,
    announce: Callable[[], None],
    *,
    certificate: Path | None = None,
    key: Path | None = None,
) -> None:
    """Serves until SIGINT or SIGTERM; ``announce`` is called when connections are taken."""

    async def served() -> None:
        config = uvicorn.Config(
            rest_app(address, q_mgr_name),
            http=cast("type[asyncio.Protocol]", partial(BrowserConnection, places=Places())),
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            limit_concurrency=MOST_CONNECTIONS,
            lifespan="on",
            timeout_graceful_shutdown=END_S,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )
        server = Server(config) if certificate is None else TlsServer(config)

        def end() -> None:
            server.should_exit = True

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, end)
        announce()
        await server.serve(sockets=[link])

    try:
        asyncio.run(served())
    finally:
        link.close()
