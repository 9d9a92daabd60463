"""Looks at sockets, recorded, and sockets to be looked at."""

import selectors
import socket

import pytest


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
    """Sockets that are connected in pairs."""
    pairs = [socket.socketpair() for _ in range(3)]
    yield pairs
    for pair in pairs:
        for end in pair:
            end.close()
