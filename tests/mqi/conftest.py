"""Programs of MQ's: in Python on trigmon.mqi, and in C on the library, which is built once for a test run."""

from __future__ import annotations

import ctypes
import itertools

import pytest

from tests.daemons import define, queue_managers
from tests.mqi.mqi_calls import Mqi
from tests.mqi.mqi_program import Program
from tests.tls.authorities import Site
from trigmon.mq.calls import Define
from trigmon.mqi import ibmmqc, library
from trigmon.tls.accounts import Account

_numbers = itertools.count(1)
OF_MQ = (
    *("MQSERVER", "MQCCDTURL", "MQCHLLIB", "MQCHLTAB"),
    *("TRIGMON_QMGR", "TRIGMON_QMGR_NAME", "TRIGMON_CLIENT_FILE"),
)
PASSWORD = "a-password-that-is-nowhere-else"


@pytest.fixture
def here(shared_daemon, monkeypatch, tmp_path):
    """Makes QM1 the file's queue manager for a program that connects by that name."""
    monkeypatch.setenv("TRIGMON_HOME", str(shared_daemon.home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in OF_MQ:
        monkeypatch.delenv(name, raising=False)
    return shared_daemon


@pytest.fixture
def program(here):
    """Yields a connected program of MQ's."""
    one = Program()
    yield one
    ibmmqc.MQDISC(one.hconn)


@pytest.fixture
def queue(qm):
    """Makes local queues: ``queue(max_q_depth=1)`` returns a name."""

    def make(**attributes):
        name = f"Q{next(_numbers)}"
        qm.call(Define(object_type="QLOCAL", name=name, attributes=attributes))
        return name

    return make


@pytest.fixture(scope="session")
def library_directory(tmp_path_factory):
    """The directory of a library that is built from these source files."""
    if library.compiler() is None:
        pytest.skip("there is no C compiler")
    base = tmp_path_factory.getbasetemp()
    # With several workers their directories are neighbours: the first one builds for all.
    place = (base.parent if base.name.startswith("popen-") else base) / f"mqi-{library.fingerprint()}"
    is_there = all((place / name).exists() for name in library.NAMES)
    return place if is_there else library.build(place, *library.WARNINGS, "-Werror")


@pytest.fixture(scope="session")
def loaded(library_directory):
    return ctypes.CDLL(str(library_directory / "libmqm_r.so"))


@pytest.fixture
def mqi(loaded, shared_daemon, monkeypatch):
    """The calls of the MQI in this process, where the file's queue manager is the one that is meant."""
    for name, value in shared_daemon.env.items():
        if name.startswith("TRIGMON_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("TRIGMON_QMGR", "QM1")
    return Mqi(loaded)


@pytest.fixture
def q_name(qm):
    """The name of a queue of the test's own."""
    name = f"TEST.{next(_numbers)}"
    define(qm, name)
    return name


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Files of TLS: alice comes by her certificate, batch by PASSWORD."""
    made = Site(tmp_path_factory.mktemp("tls"))
    made.client("alice")
    made.let_in(Account("alice", certificates=("CN=alice",)), Account("batch", made.password(PASSWORD)))
    return made


@pytest.fixture(scope="module")
def served(tmp_path_factory, site):
    """A queue manager that clients reach by TLS, with the queue Q."""
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        one = make(settings=site.settings)
        with one.connect() as qm:
            define(qm, "Q")
        yield one
