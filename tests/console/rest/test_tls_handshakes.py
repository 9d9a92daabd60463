"""Handshakes of TLS that are under way have few places, and who brings one to its end always has one."""

from __future__ import annotations

import asyncio
import socket
import ssl

import pytest

from tests.tls.authorities import Site
from trigmon.console.rest.tls_handshakes import Handshakes
from trigmon.console.web.web_connections import MOST_STRANGERS
from trigmon.tls.contexts import client_context, server_context


class Greeter(asyncio.Protocol):
    """Greets who has brought the handshake to its end."""

    def connection_made(self, transport):
        transport.write(b"hello")
        transport.close()


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path / "tls")


def contexts(site: Site) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server = server_context(site.directory / "server.crt", site.directory / "server.key", None)
    return server, client_context(site.directory / "authority.crt")


async def greeting(port: int, context: ssl.SSLContext) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
    found = await reader.read()
    writer.close()
    return found


def test_silent_connections_have_few_places_and_the_newest_keep_theirs(site):
    server, client = contexts(site)

    async def flooded():
        with socket.create_server(("127.0.0.1", 0), backlog=100) as link:
            port = link.getsockname()[1]
            handshakes = Handshakes(server, Greeter)
            accepting = asyncio.create_task(handshakes.accept(link))
            held = []
            for _ in range(MOST_STRANGERS + 50):
                held.append(await asyncio.open_connection("127.0.0.1", port))
                assert len(handshakes._under_way) <= MOST_STRANGERS + 1
            assert await greeting(port, client) == b"hello"
            first, last = held[0][0], held[-1][0]
            assert await first.read() == b""  # it was cut
            assert not last.at_eof()
            handshakes.end()
            for reader, writer in held:
                assert await reader.read() == b""
                writer.close()
            accepting.cancel()
            await asyncio.gather(accepting, return_exceptions=True)

    asyncio.run(flooded())


def test_what_is_no_handshake_ends_that_connection_alone(site):
    server, client = contexts(site)

    async def tried():
        with socket.create_server(("127.0.0.1", 0)) as link:
            port = link.getsockname()[1]
            handshakes = Handshakes(server, Greeter)
            accepting = asyncio.create_task(handshakes.accept(link))
            for sent in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + bytes(60)):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(sent)
                writer.write_eof()
                await reader.read()
                writer.close()
            assert await greeting(port, client) == b"hello"
            while handshakes._under_way:
                await asyncio.sleep(0)
            accepting.cancel()
            await asyncio.gather(accepting, return_exceptions=True)

    asyncio.run(tried())
