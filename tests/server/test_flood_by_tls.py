"""Connections by TLS, as many as one user or a stranger can make, keep nobody out: not by TLS, TCP or the socket."""

import contextlib
import socket
from pathlib import Path

import pytest

import trigmon
from tests.daemons import define
from tests.tls.authorities import Site
from tests.waiting import until
from trigmon.client.transport import open_tcp
from trigmon.mq.calls import Disconnect
from trigmon.mq.replies import Refused
from trigmon.server.connection_limits import UNGREETED
from trigmon.server.strangers import MOST_STRANGERS
from trigmon.tls.accounts import Account
from trigmon.tls.contexts import client_context
from trigmon.wire.codec import PROTOCOL_VERSION, Hello, decode_welcome, encode_hello, encode_request
from trigmon.wire.frames import FrameReader

EVERY = 20


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path / "tls")
    for name in ("alice", "bob"):
        made.client(name)
    made.let_in(*[Account(name, certificates=(f"CN={name}",)) for name in ("alice", "bob")])
    return made


def greeting(link):
    """The welcome or the refusal that comes on a link."""
    reader = FrameReader()
    while not (bodies := list(reader.feed(link.recv(4096)))):
        pass
    return decode_welcome(bytes(bodies[0]))


@pytest.mark.parametrize("leaves", [False, True])
@pytest.mark.parametrize(("places", "count"), [(100, 240), pytest.param(300, 1000, marks=pytest.mark.slow)])
def test_all_others_come_in_beside_a_user_who_takes_every_place_there_is(daemon, site, places, count, leaves):
    with socket.create_server(("127.0.0.1", 0)) as free:
        tcp = "{}:{}".format(*free.getsockname())
    one = daemon(settings={**site.settings, "server.max_connections": places, "server.tcp": tcp})
    with one.connect() as qm:
        define(qm, "Q", max_q_depth=999_999)
    files = [site.directory / f"{name}" for name in ("authority.crt", "alice.crt", "alice.key")]
    context = client_context(*files)
    refused = 0
    with contextlib.ExitStack() as held:
        for number in range(count):
            plain = open_tcp("localhost", site.port, 20)
            link = held.enter_context(context.wrap_socket(plain, server_hostname="localhost"))
            link.sendall(encode_hello(Hello(protocol=PROTOCOL_VERSION, client_id=f"alice-{number}")))
            refused += isinstance(greeting(link), Refused)
            if leaves:  # and never closes its half
                with contextlib.suppress(OSError):
                    link.sendall(encode_request(1, Disconnect()))
            if number % EVERY == 0:
                for address in (site.address("bob"), f"tcp://{tcp}", one.address):
                    with trigmon.connect(address, run_id="") as qm:
                        qm.put("Q", b"x")
        assert refused >= count - places // 2 - UNGREETED


def silent(site, context):
    """A stranger by TLS who says nothing behind the handshake; without a context nothing at all."""
    plain = open_tcp("localhost", site.port, 20)
    return plain if context is None else context.wrap_socket(plain, server_hostname="localhost")


@pytest.mark.parametrize("kind", ["says nothing behind the handshake", "says nothing at all", "guesses"])
@pytest.mark.parametrize("count", [MOST_STRANGERS + 40, pytest.param(1000, marks=pytest.mark.slow)])
def test_strangers_by_tls_keep_no_user_out_by_certificate_tcp_or_the_socket(daemon, site, kind, count):
    with socket.create_server(("127.0.0.1", 0)) as free:
        tcp = "{}:{}".format(*free.getsockname())
    one = daemon(settings={**site.settings, "server.max_connections": 20, "server.tcp": tcp})
    with one.connect() as qm:
        define(qm, "Q", max_q_depth=999_999)
    context = None if kind == "says nothing at all" else client_context(site.directory / "authority.crt")
    with contextlib.ExitStack() as held:
        for number in range(count):
            link = held.enter_context(silent(site, context))
            if kind == "guesses":
                hello = Hello(protocol=PROTOCOL_VERSION, client_id=f"eve-{number}", user="bob", password="a guess")
                link.sendall(encode_hello(hello))
            if number >= MOST_STRANGERS - 2 and number % EVERY == 0:
                for address in (site.address("bob"), f"tcp://{tcp}", one.address):
                    with trigmon.connect(address, run_id="", reconnect_s=0) as qm:
                        qm.put("Q", b"x")


def resident_kib(one):
    """How much memory the daemon has resident, in KiB."""
    status = Path(f"/proc/{one.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


@pytest.mark.parametrize("shakes_hands", [True, False])
def test_a_stranger_who_leaves_leaves_no_memory_to_the_garbage_collector(daemon, site, shakes_hands):
    """The buffers of a link by TLS take 256 KiB: of a flood they were gigabytes.

    An ordinary connection behind each ten is answered when the daemon has seen these leave: memory that many links
    take at one time stays with the process, whatever becomes of them.
    """
    one = daemon(settings=site.settings, program=("tests.server.without_gc",))
    context = client_context(site.directory / "authority.crt") if shakes_hands else None
    before = resident_kib(one)
    for number in range(200):
        silent(site, context).close()
        if number % 10 == 0:
            one.connect().disconnect()
    until(lambda: resident_kib(one) - before < 20 * 1024, timeout_s=60)
