"""Clients that are malformed, too long, or too slow harm only themselves."""

import contextlib
import random
import time
from pathlib import Path

import pytest

import trigmon
from tests.daemons import Raw, define, queue_managers
from trigmon.mq.calls import Display, Get, Open, Ping, PutMany, Status
from trigmon.mq.enums import GetOption, OpenOption
from trigmon.wire.codec import encode_request
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


@pytest.mark.parametrize("numbers", [(0,), (-1,), (1, 1), (1, 2, 3, 2), (2,), (1, 2, 4)])
def test_a_call_number_that_was_not_due_ends_the_connection(strict, numbers):
    with Raw(strict) as client:
        client.send(*(encode_request(number, Ping()) for number in (*numbers, 100)))
        collected = []
        with contextlib.suppress(EOFError):
            while True:
                collected.append(client.reply())
    assert [number for number, _ in collected][-1] == 0
    assert collected[-1][1].reason == trigmon.Reason.CONNECTION_BROKEN
    assert f"call number {numbers[-1]}" in collected[-1][1].about
    assert 100 not in [number for number, _ in collected]


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


def test_a_client_that_never_says_hello_is_cut(strict):
    with Raw(strict, hello=False) as client:
        assert client.is_cut(4)


def test_a_client_that_drips_a_frame_is_cut_while_others_are_served(strict):
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


def test_a_client_that_is_silent_between_frames_may_stay(strict):
    with Raw(strict) as client:
        time.sleep(2.5)
        client.calls([Ping()])
        assert client.reply()[0] == 1


def test_a_client_that_never_reads_is_cut_and_kept_from_filling_the_memory(strict):
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


def test_half_frames_of_many_connections_do_not_fill_the_memory_and_a_whole_one_still_comes_through(daemon):
    one = daemon(settings={"server.frame_timeout_s": 1})
    before = memory_kib(one)
    half = (4_000_000).to_bytes(4, "big") + b"\x92" * 3_000_000
    with contextlib.ExitStack() as ends, one.connect() as qm:
        clients = [ends.enter_context(Raw(one)) for _ in range(150)]
        for client in clients:
            client.link.setblocking(False)
        sent = [0] * len(clients)
        until = time.monotonic() + 2
        worst = 0
        while time.monotonic() < until:
            for number, client in enumerate(clients):
                with contextlib.suppress(OSError):
                    sent[number] += client.link.send(half[sent[number] : sent[number] + 262_144])
            worst = max(worst, memory_kib(one))
        assert sum(sent) > 64 * 1024 * 1024
        assert worst - before < 200_000
        define(qm, "WHOLE")
        qm.put("WHOLE", b"y" * 3_500_000)


def test_one_put_many_holds_no_more_than_4096_bodies(strict):
    with strict.connect() as qm:
        define(qm, "MANY")
        with pytest.raises(trigmon.BufferLengthError, match="4097"):
            qm.call(PutMany(q_name="MANY", bodies=[b""] * 4097))
        assert len(qm.call(PutMany(q_name="MANY", bodies=[b""] * 4096)).msg_ids) == 4096


def test_a_client_that_sends_long_calls_ahead_does_not_keep_others_from_their_turn(strict):
    with strict.connect() as qm, Raw(strict) as greedy:
        define(qm, "GREEDY", max_q_depth=999_999)
        greedy.calls([PutMany(q_name="GREEDY", bodies=[b"x"] * 4096)] * 20)
        assert greedy.reply()[0] == 1
        for _ in range(3):
            assert qm.call(Ping())
        (row,) = qm.call(Display(object_type="QLOCAL", name="GREEDY")).rows
        assert row["current_q_depth"] < 20 * 4096
        assert [greedy.reply()[0] for _ in range(19)] == list(range(2, 21))


def test_hundreds_of_bad_clients_write_few_lines(strict):
    before = len(strict.events())
    began = time.monotonic()
    for _ in range(500):
        with Raw(strict, hello=False) as client:
            client.send(frame(b"\xc1"))
    seconds = time.monotonic() - began
    assert len(strict.events()) - before <= 3 * (seconds + 2)
