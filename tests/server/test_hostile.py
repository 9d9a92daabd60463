"""Clients that are malformed, too long, too slow or too many harm only themselves."""

import contextlib
import os
import random
import resource
import signal
import socket
import time
from pathlib import Path

import pytest

import trigmon
from tests.daemons import Raw, define, queue_managers
from trigmon.mq.calls import Get, Open, Ping, Put, Status
from trigmon.mq.enums import GetOption, OpenOption, PutOption, UnitOutcome
from trigmon.server.guests import KEPT
from trigmon.wire.codec import PROTOCOL_VERSION, Hello, decode_welcome, encode_hello, encode_request
from trigmon.wire.frames import frame

SHORT = {"server.hello_timeout_s": 0.6, "server.frame_timeout_s": 0.6, "server.reply_timeout_s": 1}


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """A daemon with little patience, shared by this file."""
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        yield make(settings=SHORT)


def serves(one, within_s=1.0):
    """Whether somebody else is served as if nothing happened."""
    began = time.monotonic()
    with one.connect() as qm:
        assert qm.call(Status())
    return time.monotonic() - began < within_s


def memory_kib(one):
    """The daemon's resident memory, in KiB (proc(5))."""
    with Path(f"/proc/{one.process.pid}/status").open() as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def test_random_bytes_end_only_the_connection_they_came_on(strict):
    noise = random.Random(7)
    before = memory_kib(strict)
    for _ in range(300):
        with Raw(strict, hello=noise.random() < 0.5) as client:
            try:
                client.send(noise.randbytes(noise.randrange(1, 2000)))
                if noise.random() < 0.1:
                    client.send(noise.randbytes(100_000))
            except OSError:
                continue  # it was cut while it was still talking
    assert serves(strict)
    assert memory_kib(strict) - before < 20_000


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x91" * 5000,
        b"\x92\x01\x92\xa4ping\xc1",
        b"\x92\x01\x92\xa3put\xa1x",
        b"\x92\xffx",
        b"\xdd\xff\xff\xff\xff",
        encode_request(1, Ping())[4:-1],
    ],
)
def test_a_malformed_frame_is_answered_with_what_is_wrong_and_cut(strict, body):
    with Raw(strict) as client:
        client.send(frame(body))
        _, reply = client.reply()
        assert reply.reason == trigmon.Reason.CONNECTION_BROKEN
        assert reply.about
        assert client.is_cut(3)
    assert serves(strict)


@pytest.mark.parametrize("numbers", [(0,), (-1,), (1, 1), (1, 2, 3, 2), (7, 6)])
def test_a_call_number_that_does_not_ascend_ends_the_connection(strict, numbers):
    with Raw(strict) as client:
        client.send(*(encode_request(number, Ping()) for number in (*numbers, 100)))
        said = []
        with contextlib.suppress(EOFError):
            while True:
                said.append(client.reply())
    assert [number for number, _ in said][-1] == 0
    assert said[-1][1].reason == trigmon.Reason.CONNECTION_BROKEN
    assert f"call number {numbers[-1]}" in said[-1][1].about
    assert 100 not in [number for number, _ in said]


def test_a_number_given_twice_lets_no_call_pass_a_waiting_get_nor_leaves_a_waiter_behind(strict):
    with strict.connect() as qm, Raw(strict) as client:
        define(qm, "TWICE")
        client.calls([Open(object_name="TWICE", options=int(OpenOption.INPUT_SHARED))])
        get = Get(handle=client.reply()[1].handle, options=int(GetOption.WAIT), wait_interval_ms=100_000)
        client.send(*(encode_request(number, call) for number, call in [(2, Ping()), (2, get), (3, get)]))
        assert client.is_cut(3)
        assert qm.call(Status()).values["waiting_gets"] == 0


def test_a_length_of_4_gib_is_refused_on_its_four_bytes(strict):
    with Raw(strict) as client:
        client.send(b"\xff\xff\xff\xff")
        assert "4294967295" in client.reply()[1].about
        assert client.is_cut(3)


def test_a_stranger_may_not_even_begin_a_long_frame(strict):
    with Raw(strict, hello=False) as client:
        client.send((1_000_000).to_bytes(4, "big"))
        assert client.is_cut(0.5)


def test_who_never_says_hello_is_cut(strict):
    with Raw(strict, hello=False) as client:
        assert client.is_cut(4)


def test_who_drips_a_frame_is_cut_while_others_are_served(strict):
    with Raw(strict) as client:
        client.send((1000).to_bytes(4, "big"))
        began = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() - began < 8:
                client.send(b"x")
                assert serves(strict)
                time.sleep(0.1)
        number, reply = client.reply()
        assert (number, reply.reason) == (0, trigmon.Reason.CONNECTION_BROKEN)
    assert 0.5 < time.monotonic() - began < 5


def test_who_is_silent_between_frames_may_stay(strict):
    with Raw(strict) as client:
        time.sleep(2.5)
        client.calls([Ping()])
        assert client.reply()[0] == 1


def test_who_never_reads_is_cut_and_kept_from_filling_the_memory(strict):
    with strict.connect() as qm:
        define(qm, "BIG")
        qm.put("BIG", b"x" * 1_000_000)
    before = memory_kib(strict)
    with Raw(strict) as client:
        client.calls([Open(object_name="BIG", options=int(OpenOption.BROWSE))])
        browse = Get(handle=client.reply()[1].handle, options=int(GetOption.BROWSE_FIRST))
        client.link.settimeout(0.5)
        with contextlib.suppress(OSError):  # nobody takes any more from it
            client.calls([browse] * 20_000, first=2)
        deadline = time.monotonic() + 8
        worst = 0
        while not any("does not read" in line["why"] for line in strict.events("connection cut")):
            assert time.monotonic() < deadline
            worst = max(worst, memory_kib(strict))
            assert serves(strict)
    assert worst - before < 100_000


def test_hundreds_of_bad_clients_write_few_lines(strict):
    before = len(strict.events())
    began = time.monotonic()
    for _ in range(500):
        with Raw(strict, hello=False) as client:
            client.send(frame(b"\xc1"))
    seconds = time.monotonic() - began
    assert len(strict.events()) - before <= 3 * (seconds + 2)


@pytest.fixture
def crowded(daemon):
    """Makes a daemon with few places, whose TCP peers are nobody in particular; the daemon, and where it listens."""

    def make(places, **settings):
        with socket.create_server(("127.0.0.1", 0)) as free:
            address = free.getsockname()
        where = f"{address[0]}:{address[1]}"
        more = {f"server.{name}": value for name, value in settings.items()}
        return daemon(settings={"server.max_connections": places, "server.tcp": where} | more), address

    return make


def knock(address):
    """What an ordinary client is told at the door: nothing (it is in, and leaves again), or a reason."""
    try:
        trigmon.connect(f"tcp://{address[0]}:{address[1]}").disconnect()
    except trigmon.MQError as error:
        return error.reason
    return None


def test_one_connection_too_many_is_told_so_and_comes_in_when_one_has_ended(crowded):
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
        for _ in range(KEPT):
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


def test_who_stands_behind_a_crowd_on_the_step_is_told_so_and_an_administrator_passes_it(crowded):
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


def test_a_client_id_that_a_live_connection_has_is_refused_until_that_one_has_been_settled(strict):
    with strict.connect() as qm:
        define(qm, "SETTLED")
        with Raw(strict, client_id="4f0c") as first, Raw(strict, hello=False) as second:
            first.calls([Put(q_name="SETTLED", data=b"x", options=int(PutOption.SYNCPOINT), unit=1)])
            assert first.reply()[1].msg_id
            hello = encode_hello(Hello(protocol=PROTOCOL_VERSION, client_id="4f0c"))
            second.send(hello)
            refusal = decode_welcome(second.body())
            assert refusal.reason == trigmon.Reason.ALREADY_CONNECTED
            assert "'4f0c'" in refusal.about
        time.sleep(0.2)
        Raw(strict, client_id="4f0c").link.close()
        assert qm.outcome(1, "4f0c") is UnitOutcome.BACKED_OUT


def test_without_descriptors_who_is_in_is_served_and_who_knocks_waits(daemon):
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
