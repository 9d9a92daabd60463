"""Before it sleeps the loop polls its sockets for a moment where one client calls, and seldom where that is in vain."""

import asyncio
import selectors
import threading
from types import SimpleNamespace

import pytest

from trigmon.server.daemon import Daemon
from trigmon.server.event_loop import MOST_IN_VAIN, EventLoop, _Selector
from trigmon.settings import load

SPAN_S = 30.0
"""Longer than anything here takes: what a poll finds, it finds without a sleep."""
SHORT_S = 0.001


@pytest.fixture
def selector(pairs):
    with _Selector() as selector:
        for ours, _ in pairs:
            selector.register(ours, selectors.EVENT_READ)
        selector.last = pairs[0][0].fileno()
        yield selector


def make_ready(pairs, *which):
    """Makes these sockets ready, and no other."""
    for number, (ours, theirs) in enumerate(pairs):
        ours.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                ours.recv(10)
        if number in which:
            theirs.send(b"x")


def be_alone(selector, pairs, waits):
    """Lets the first socket alone be ready twice; that is still ready."""
    selector._is_alone, selector._alone = False, -1  # these looks are no polls
    make_ready(pairs, 0)
    for _ in range(2):
        assert len(selector.select(SPAN_S)) == 2
    waits.clear()


def poll_in_vain(selector, pairs, waits):
    """Returns whether the wait behind a socket that was ready alone begins with a poll; nothing becomes ready."""
    be_alone(selector, pairs, waits)
    make_ready(pairs)
    assert selector.select(SHORT_S * 2) == []
    return 0 in waits


def test_behind_a_socket_that_was_ready_alone_the_next_is_found_without_a_sleep(selector, pairs, waits):
    selector.busy_poll_s = SPAN_S
    be_alone(selector, pairs, waits)
    assert len(selector.select(None)) == 2
    assert set(waits) == {0}


@pytest.mark.parametrize("looks", [[(0,)], [(), ()], [(0, 1), (0, 1)], [(0,), (1,)], [(0,), (), (0,)], [(0,), (0, 1)]])
def test_behind_none_behind_several_and_behind_others_it_sleeps_at_once(selector, pairs, waits, looks):
    selector.busy_poll_s = SHORT_S
    for ready in looks:
        make_ready(pairs, *ready)
        selector.select(SHORT_S)
    waits.clear()
    make_ready(pairs)
    selector.select(SHORT_S * 2)
    assert waits == [SHORT_S * 2]


def test_without_a_span_it_never_polls(selector, pairs, waits):
    assert not poll_in_vain(selector, pairs, waits)


def test_a_wait_shorter_than_the_span_is_no_poll(selector, pairs, waits):
    selector.busy_poll_s = SHORT_S * 3
    assert not poll_in_vain(selector, pairs, waits)


def test_each_poll_in_vain_doubles_the_waits_without_one_and_a_find_halves_them(selector, pairs, waits):
    selector.busy_poll_s = SHORT_S
    polled = [poll_in_vain(selector, pairs, waits) for _ in range(12)]
    assert [number for number, did in enumerate(polled) if did] == [0, 2, 6]
    for _ in range(2):
        assert not poll_in_vain(selector, pairs, waits)
    assert selector._skipped == 0
    selector.busy_poll_s = SPAN_S
    be_alone(selector, pairs, waits)
    selector.select(SPAN_S)  # found by a poll
    assert (selector._in_vain, selector._skipped) == (2, 3)


def test_polls_in_vain_never_end_for_good(selector, pairs, waits):
    selector.busy_poll_s = SHORT_S
    for _ in range(MOST_IN_VAIN + 5):
        selector._skipped = 0
        assert poll_in_vain(selector, pairs, waits)
    assert selector._skipped == (1 << MOST_IN_VAIN) - 1


def test_what_becomes_ready_during_a_poll_is_found_by_it(selector, pairs, waits):
    selector.busy_poll_s = SPAN_S
    be_alone(selector, pairs, waits)
    make_ready(pairs)
    selector.is_pass = False
    writer = threading.Timer(0.02, pairs[0][1].send, [b"x"])
    writer.start()
    found = selector.select(SPAN_S)
    writer.join()
    assert len(found) == 2
    assert set(waits) == {0}
    assert len(waits) > 1
    assert selector.is_pass


def test_a_wait_behind_a_poll_in_vain_is_shorter_by_it(selector, pairs, waits):
    selector.busy_poll_s = SHORT_S
    assert poll_in_vain(selector, pairs, waits)
    assert waits[-1] == pytest.approx(SHORT_S)


def test_the_loop_polls_for_its_span(waits, pairs):
    loop = EventLoop()
    loop.poll_busily(SPAN_S)
    ours, theirs = pairs[0]
    got = []

    def read():
        got.append((ours.recv(10), [wait for wait in waits if wait != 0]))
        waits.clear()
        if len(got) == 4:
            loop.stop()
        else:
            loop.call_at_end_of_pass(lambda: theirs.send(b"more"))

    loop.add_reader(ours, read)
    theirs.send(b"first")
    loop.run_forever()
    assert got[2:] == [(b"more", [])] * 2
    loop.close()


@pytest.mark.parametrize(("remote", "span_s"), [(None, 0.000_15), ("PostgreSQL", 0.0)])
def test_a_daemon_polls_where_no_turn_waits_for_a_database(tmp_path, remote, span_s):
    settings = load({"qmgr.data": str(tmp_path)})

    async def span():
        loop = asyncio.get_running_loop()
        parts = SimpleNamespace(_setup=SimpleNamespace(half=None, remote=remote), _loop=loop, _settings=settings)
        Daemon._make_worker(parts).end()
        return loop._ordered.busy_poll_s

    with asyncio.Runner(loop_factory=EventLoop) as runner:
        assert runner.run(span()) == pytest.approx(span_s)
