"""What more than one part of the tests needs: real queue managers, and slices of what is too long for every day."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.daemons import queue_managers
from tests.postgres import Server

# How long an example takes is the machine's affair: a busy one is no reason to fail.
settings.register_profile("trigmon", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("trigmon")
_BEGAN_S = time.monotonic()


def pytest_configure():
    # A shell has its background jobs ignore SIGINT, and so would every program that a test starts and interrupts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption("--slice", metavar="K/N", help="of the chosen tests, every Nth from the Kth on")
    parser.addoption("--minutes", type=float, help="begin no test after so many minutes: it is skipped, and said so")


def pytest_collection_modifyitems(config, items):
    if given := config.getoption("--slice"):
        which, parts = map(int, given.split("/"))
        kept = [item for number, item in enumerate(items) if number % parts == which % parts]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


def pytest_runtest_setup(item):
    minutes = item.config.getoption("--minutes")
    if minutes is not None and time.monotonic() - _BEGAN_S > 60 * minutes:
        pytest.skip(f"{minutes:g} minutes are over")


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


@pytest.fixture
def server():
    """A PostgreSQL of its own, with fsync on, that a test may cut down."""
    one = Server()
    yield one
    one.end()


@pytest.fixture
def passable():
    """Makes daemons in homes that another user may pass through."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    homes = []

    def make_home():
        homes.append(tempfile.mkdtemp(prefix="trigmon-"))
        Path(homes[-1]).chmod(0o755)
        return homes[-1]

    with queue_managers(make_home) as make:
        yield make
    for home in homes:
        shutil.rmtree(home)
