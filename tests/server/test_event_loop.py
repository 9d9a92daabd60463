"""The end of a pass of the loop: behind all sockets that were ready, before the next look at them."""

import asyncio
from pathlib import Path

import pytest

from trigmon.server.event_loop import EventLoop


@pytest.fixture
def loop():
    one = EventLoop()
    yield one
    one.close()


def test_it_comes_behind_all_that_was_ready_and_without_another_look(loop, pairs, waits):
    happened = []

    def read(number, end):
        happened.append((f"read {number}", len(waits)))
        end.recv(10)
        if number == 0:
            loop.call_at_end_of_pass(lambda: happened.append(("end", len(waits))))

    for number, (ours, theirs) in enumerate(pairs):
        loop.add_reader(ours, read, number, ours)
        theirs.send(b"x")
    while len(happened) < 4:
        loop.run_until_complete(asyncio.sleep(0))
    *reads, end = happened
    assert sorted(name for name, _ in reads) == ["read 0", "read 1", "read 2"]
    assert end == ("end", reads[0][1])


def test_where_no_socket_was_ready_it_comes_soon(loop):
    happened = []
    loop.call_soon(lambda: loop.call_at_end_of_pass(lambda: happened.append("end")))
    loop.call_later(0.01, loop.stop)
    loop.run_forever()
    assert happened == ["end"]


def test_a_callback_that_fails_keeps_no_other_back(loop, pairs):
    ours, theirs = pairs[0]
    happened, reported = [], []
    loop.set_exception_handler(lambda _, context: reported.append(str(context["exception"])))

    def fail():
        raise ValueError("it failed")

    def read():
        ours.recv(10)
        loop.call_at_end_of_pass(fail)
        loop.call_at_end_of_pass(lambda: happened.append("other") or loop.stop())

    loop.add_reader(ours, read)
    theirs.send(b"x")
    loop.call_later(10, loop.stop)
    loop.run_forever()
    assert (happened, reported) == (["other"], ["it failed"])


def test_a_closed_loop_keeps_no_descriptor():
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir()))
    for _ in range(3):
        EventLoop().close()
    assert len(list(descriptors.iterdir())) == before
