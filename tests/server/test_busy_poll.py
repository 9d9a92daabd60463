"""Before it sleeps the loop polls its sockets for a moment where one client calls, and seldom where that is in vain."""

import asyncio
import selectors
import socket

import pytest

from trigmon.server.event_loop import MOST_IN_VAIN, EventLoop, _Selector

SPAN_S = 30.0
"""Longer than anything here takes: what a poll finds, it finds without a sleep."""
SHORT_S = 0.001


@pytest.fixture
def waits(monkeypatch):
    """The timeouts of all looks at the sockets; 0 does not sleep."""
    waits, select = [], selectors.DefaultSelector.select

    def look(self, timeout=None):
        waits.append(timeout)
        return select(self, timeout)

    monkeypatch.setattr(selectors.DefaultSelector, "select", look)
    return waits


@pytest.fixture
def pairs():
    pairs = [socket.socketpair() for _ in range(2)]
    yield pairs
    for pair in pairs:
        for end in pair:
            end.close()


@pytest.fixture
def selector(pairs):
    with _Selector() as selector:
        for ours, _ in pairs:
            selector.register(ours, selectors.EVENT_READ)
        selector.last = pairs[0][0].fileno()
        yield selector


def is_ready(pairs, many):
    """Makes so many sockets ready, and no other."""
    for number, (ours, theirs) in enumerate(pairs):
        ours.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                ours.recv(10)
        if number < many:
            theirs.send(b"x")


def poll_in_vain(selector, pairs, waits):
    """Returns whether the wait behind a pass of one descriptor begins with a poll; nothing becomes ready."""
    is_ready(pairs, 1)
    selector._was_one = False  # the look that finds the descriptor is not the one in question
    assert len(selector.select(SPAN_S)) == 2
    is_ready(pairs, 0)
    waits.clear()
    assert selector.select(SHORT_S * 2) == []
    return 0 in waits


def test_behind_one_ready_socket_the_next_is_found_without_a_sleep(selector, pairs, waits):
    selector.busy_poll_s = SPAN_S
    is_ready(pairs, 1)
    selector.select(SPAN_S)
    waits.clear()
    is_ready(pairs, 1)
    assert len(selector.select(None)) == 2
    assert set(waits) == {0}


@pytest.mark.parametrize("many", [0, 2])
def test_behind_none_and_behind_several_it_sleeps_at_once(selector, pairs, waits, many):
    selector.busy_poll_s = SHORT_S
    is_ready(pairs, many)
    selector.select(SHORT_S)
    waits.clear()
    is_ready(pairs, 0)
    selector.select(SHORT_S * 2)
    assert waits == [SHORT_S * 2]


def test_without_a_span_it_never_polls(selector, pairs, waits):
    assert not poll_in_vain(selector, pairs, waits)


def test_a_wait_shorter_than_the_span_is_no_poll(selector, pairs, waits):
    selector.busy_poll_s = SHORT_S * 3
    assert not poll_in_vain(selector, pairs, waits)


def test_each_poll_in_vain_doubles_the_waits_without_one_and_each_other_halves_them(selector, pairs, waits):
    selector.busy_poll_s = SHORT_S
    polled = [poll_in_vain(selector, pairs, waits) for _ in range(12)]
    assert [number for number, did in enumerate(polled) if did] == [0, 2, 6]
    for _ in range(2):
        assert not poll_in_vain(selector, pairs, waits)
    assert selector._skipped == 0
    selector.busy_poll_s = SPAN_S
    is_ready(pairs, 1)
    selector.select(SPAN_S)
    selector.select(SPAN_S)  # found by a poll
    assert (selector._in_vain, selector._skipped) == (2, 3)


def test_polls_in_vain_never_end_for_good(selector, pairs, waits):
    selector.busy_poll_s = SHORT_S
    for _ in range(MOST_IN_VAIN + 5):
        selector._skipped = 0
        assert poll_in_vain(selector, pairs, waits)
    assert selector._skipped == (1 << MOST_IN_VAIN) - 1


def test_the_loop_answers_a_socket_that_it_polls():
    loop = EventLoop()
    loop.poll_busily(0.05)
    ours, theirs = socket.socketpair()
    got = []

    def read():
        got.append(ours.recv(10))
        if len(got) == 3:
            loop.stop()
        else:
            theirs.send(b"more")

    loop.add_reader(ours, read)
    theirs.send(b"first")
    loop.call_later(60, loop.stop)
    loop.run_forever()
    loop.run_until_complete(asyncio.sleep(0))
    assert got == [b"first", b"more", b"more"]
    loop.close()
    ours.close()
    theirs.close()
