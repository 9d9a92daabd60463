"""Fixtures that more than one part of the tests needs: real queue managers."""

from __future__ import annotations

import pytest

from tests.daemons import queue_managers


@pytest.fixture
def daemon(tmp_path_factory):
    """Makes queue managers that run as processes: ``daemon(name, settings={...}, start=True)``; see tests.daemons."""
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        yield make


@pytest.fixture(scope="module")
def shared_daemon(tmp_path_factory):
    """One running queue manager for all tests of a file; they use queues of their own."""
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        yield make()


@pytest.fixture
def qm(shared_daemon):
    """A connection to the file's shared queue manager."""
    with shared_daemon.connect() as connection:
        yield connection
