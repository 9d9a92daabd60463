"""What more than one part of the tests needs: real queue managers, and slices of what is too long for every day."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests import lanes
from tests.daemons import queue_managers
from tests.postgres import PACKAGE as POSTGRES
from tests.postgres import Server

# How long an example takes is the machine's affair: a busy one is no reason to fail.
settings.register_profile("trigmon", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("trigmon")
_BEGAN_S = time.monotonic()
_USES = {"subprocess.Popen", "os.posix_spawn", "os.fork", f"{POSTGRES}.used"}
_used: list[str] = []
# Its values are its own: the hook is called until the end of Python, when the names of this module are gone.
sys.addaudithook(lambda event, _, uses=_USES, used=_used: used.append(event) if event in uses else None)


def pytest_configure(config):
    # Named files and folders are run whole, but for what is slow; without a name, what a change must pass at once is.
    if config.option.lane is None:
        named = config.args_source is pytest.Config.ArgsSource.ARGS
        config.option.lane = f"{lanes.EVERYDAY},{lanes.FULL}" if named else lanes.EVERYDAY
    if config.option.durations is None and config.option.lane == lanes.EVERYDAY:
        config.option.durations = 10
    # A shell has its background jobs ignore SIGINT, and so would every program that a test starts and interrupts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser):
    parser.addoption(
        "--lane",
        type=lanes.chosen,
        metavar="LANE[,LANE]|all",
        help="of everyday, full and slow; unsaid: everyday, for named files and folders everyday,full",
    )
    parser.addoption("--slice", metavar="K/N", help="of the chosen tests, every Nth from the Kth on")
    parser.addoption("--files", metavar="K/N", help="of the files of the chosen tests, every Nth from the Kth on")
    parser.addoption("--minutes", type=float, help="begin no test after so many minutes: it is skipped and reported")


@pytest.hookimpl(tryfirst=True)  # so that -m knows the marks
def pytest_collection_modifyitems(config, items):
    found = config.stash[lanes.FOUND] = {item.nodeid: lanes.lane_of(item) for item in items}
    for item in items:
        for mark in {found[item.nodeid], *lanes.used_by(item)}:
            item.add_marker(mark)
    wanted = config.option.lane.split(",")
    kept = [item for item in items if found[item.nodeid] in wanted]
    if given := config.getoption("--slice"):
        kept = _slice(given, kept)
    if given := config.getoption("--files"):
        files = set(_slice(given, list(dict.fromkeys(item.path for item in kept))))
        kept = [item for item in kept if item.path in files]
    if wanted == [lanes.EVERYDAY]:
        # With --dist worksteal one worker has the first half: what takes its time to start, so that it starts once.
        kept.sort(key=lambda item: not lanes.used_by(item))
    config.hook.pytest_deselected(items=list(set(items).difference(kept)))
    items[:] = kept


def _slice(given, all_of_them):
    which, parts = map(int, given.split("/"))
    return all_of_them[which % parts :: parts]


def pytest_collection_finish(session):
    # Twenty thousand tests are hundreds of thousands of objects. To look through them took the collector a second and
    # more, in which a server ends the session of a member that it waits for.
    gc.freeze()


@pytest.hookimpl(trylast=True)  # behind the slowest tests
def pytest_terminal_summary(terminalreporter, config):
    if not hasattr(config, "workerinput") and config.option.lane == lanes.EVERYDAY:
        seconds = time.monotonic() - _BEGAN_S
        terminalreporter.line(f"The everyday lane took {seconds // 60:.0f} min {seconds % 60:.0f} s.")
        terminalreporter.line("The rest: pytest -n 2 --dist loadfile --lane full; the long proofs: pytest --lane slow")


def pytest_runtest_setup(item):
    minutes = item.config.getoption("--minutes")
    if minutes is not None and time.monotonic() - _BEGAN_S > 60 * minutes:
        pytest.skip(f"{minutes:g} minutes are over")


@pytest.fixture(autouse=True)
def uses_what_is_known(request):
    """Fails a test that starts a process or uses PostgreSQL though its lane was chosen as if it did not."""
    began = len(_used)
    yield
    if not lanes.used_by(request.node) and _used[began:]:
        pytest.fail(
            f"{_used[began]}: name the test in USED_BY_FILE of tests/lanes.py, or its fixture in USED_BY_FIXTURE"
        )


@pytest.fixture
def daemon(tmp_path_factory):
    """Makes queue managers that run as processes: ``daemon(name, settings={...}, start=True)``; see tests.daemons."""
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        yield make


@pytest.fixture(scope="module")
def shared_daemon(tmp_path_factory):
    """Yields one running queue manager for all tests of a file; they use queues of their own."""
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        yield make()


@pytest.fixture
def qm(shared_daemon):
    """Yields a connection to the file's shared queue manager."""
    with shared_daemon.connect() as connection:
        yield connection


@pytest.fixture
def server():
    """Yields a PostgreSQL of the test's own, with fsync on, that the test may kill."""
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
