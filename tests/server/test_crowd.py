"""More clients than the limit: which are connected, which get the reason, and which are always connected."""

import contextlib
import os
import resource
import signal
import socket
import time

import pytest

import trigmon
from tests.daemons import Raw, define
from trigmon.mq.calls import Ping, Put, Status
from trigmon.mq.enums import PutOption, UnitOutcome
from trigmon.server.connection_limits import RESERVED
from trigmon.wire.codec import PROTOCOL_VERSION, Hello, decode_welcome, encode_hello


@pytest.fixture
def crowded(daemon):
    """Makes a daemon with few places, whose TCP peers are nobody in particular; the daemon, and where it listens."""

    def make(places, **settings):
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = free.getsockname()
        where = f"{address[0]}:{address[1]}"
        settings.setdefault("max_connections_over_tcp", places)
        more = {f"server.{name}": value for name, value in settings.items()}
        return daemon(settings={"server.max_connections": places, "server.tcp": where} | more), address

    return make


def knock(address):
    """Connects as an ordinary client and leaves; returns the reason of a refusal, else None."""
    try:
        trigmon.connect(f"tcp://{address[0]}:{address[1]}").disconnect()
    except trigmon.MQError as error:
        return error.reason
    return None


def test_one_connection_too_many_gets_the_reason_and_is_accepted_when_one_has_ended(crowded):
    one, address = crowded(3)
    clients = [Raw(one, tcp=address) for _ in range(3)]
    assert knock(address) == 2025
    clients[0].link.close()
    time.sleep(0.2)
    assert knock(address) is None
    for client in clients:
        client.link.close()


def test_places_are_kept_for_those_who_may_administer(crowded):
    one, address = crowded(2)
    with contextlib.ExitStack() as inside:
        for _ in range(2):
            inside.enter_context(Raw(one, tcp=address))
        for _ in range(RESERVED):
            assert inside.enter_context(one.connect()).administrator
        with pytest.raises(trigmon.MaxConnsLimitReached):
            one.connect()


def test_a_burst_of_as_many_as_there_are_places_comes_in_whole(crowded):
    one, address = crowded(90)
    with contextlib.ExitStack() as burst:
        os.kill(one.process.pid, signal.SIGSTOP)  # a long turn: all of them are there when it looks up
        links = [burst.enter_context(socket.create_connection(address, 20)) for _ in range(90)]
        for number, link in enumerate(links):
            link.sendall(encode_hello(Hello(protocol=PROTOCOL_VERSION, client_id=str(number))))
        os.kill(one.process.pid, signal.SIGCONT)
        assert all(b"welcome" in link.recv(100) for link in links)
        assert knock(address) == 2025
        links.pop().close()
        time.sleep(0.2)
        assert knock(address) is None


def test_a_client_behind_many_that_have_sent_no_hello_gets_the_reason_and_an_administrator_passes_it(crowded):
    one, address = crowded(1, hello_timeout_s=2)
    with contextlib.ExitStack() as crowd:
        crowd.enter_context(Raw(one, tcp=address))
        for _ in range(60):
            crowd.enter_context(socket.create_connection(address, 20))  # silent
        one.wait_for_event("no room for more connections")
        assert knock(address) == 2025
        with one.connect() as qm:
            assert qm.call(Status())
    time.sleep(0.2)
    assert knock(address) is None


def test_a_client_id_that_a_live_connection_has_is_refused_until_that_one_has_been_settled(shared_daemon):
    with shared_daemon.connect() as qm:
        define(qm, "SETTLED")
        with Raw(shared_daemon, client_id="4f0c") as first, Raw(shared_daemon, hello=False) as second:
            first.calls([Put(q_name="SETTLED", data=b"x", options=int(PutOption.SYNCPOINT), unit=1)])
            assert first.reply()[1].msg_id
            hello = encode_hello(Hello(protocol=PROTOCOL_VERSION, client_id="4f0c"))
            second.send(hello)
            refusal = decode_welcome(second.body())
            assert refusal.reason == trigmon.Reason.ALREADY_CONNECTED
            assert "'4f0c'" in refusal.about
        time.sleep(0.2)
        Raw(shared_daemon, client_id="4f0c").link.close()
        assert qm.outcome(1, "4f0c") is UnitOutcome.BACKED_OUT


def test_without_descriptors_connected_clients_are_served_and_a_new_one_waits(daemon):
    one = daemon(start=False)
    one.start()
    inside = Raw(one)
    # From here on the daemon can open nothing more (EMFILE).
    few = 3
    _, hard = resource.prlimit(one.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(one.process.pid, resource.RLIMIT_NOFILE, (few, hard))
    outside = one.plain_socket()
    outside.sendall(encode_hello(Hello(protocol=PROTOCOL_VERSION)))
    one.wait_for_event("no connection can be accepted")
    inside.calls([Ping()])
    assert inside.reply()[0] == 1
    time.sleep(1.2)
    assert len(one.events("no connection can be accepted")) <= 4
    resource.prlimit(one.process.pid, resource.RLIMIT_NOFILE, (hard, hard))
    outside.settimeout(5)
    assert outside.recv(100)
    inside.link.close()
    outside.close()
