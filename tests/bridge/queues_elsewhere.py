"""A queue manager that plays the real MQ: reached only through IBM's package ibmmq, over trigmon's own C library."""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path

import pytest

from tests.daemons import define, queue_managers
from tests.mqi.conftest import library_directory
from trigmon.bridge.connection import ibmmq
from trigmon.mq.calls import Alter, Define

__all__ = ["library_directory"]
QUEUE, PROCESS, INITIATION = "PAY", "PAY.LOAD", "PAY.INIT"
THERE = "MQREAL"
SETTINGS = """\
bridges:
  REAL:
    queue_manager: MQREAL
    initiation_queues: [PAY.INIT]
"""


def load_library(directory: Path) -> None:
    """Loads trigmon's C library into this process: IBM's package finds it by its name then."""
    ctypes.CDLL(str(directory / "libmqm_r.so"), mode=ctypes.RTLD_GLOBAL)


@pytest.fixture(scope="module")
def pair(tmp_path_factory, library_directory):
    """Yields two queue managers of one home: QM1 is this side, MQREAL plays the real MQ."""
    load_library(library_directory)
    home = tmp_path_factory.mktemp("pair")
    with queue_managers(lambda: home) as make:
        here = make("QM1", home=home)
        yield here, make(THERE, home=home)


@pytest.fixture
def by_name(pair, monkeypatch):
    """Lets programs of the MQI in this process find both queue managers by their names."""
    monkeypatch.setenv("TRIGMON_HOME", str(pair[0].home))
    for name in ("MQSERVER", "MQCCDTURL", "MQCHLLIB", "MQCHLTAB", "TRIGMON_QMGR"):
        monkeypatch.delenv(name, raising=False)
    return pair


class Elsewhere:
    """The objects of one test there: a queue that fires, its process, its initiation queue, a monitor that listens."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.stack = contextlib.ExitStack()
        self.qm = self.stack.enter_context(daemon.connect())

    def begin(self, **attributes):
        """Makes the objects, with these attributes of the queue; what was there before is replaced."""
        define(self.qm, INITIATION)
        define(self.qm, PROCESS, "PROCESS", appl_id="/bin/true")
        wanted = {"trigger_control": "on", "process_name": PROCESS, "initiation_q_name": INITIATION} | attributes
        define(self.qm, QUEUE, **wanted)
        self.monitor = self.qm.open(INITIATION, "input_shared")
        return self

    def alter(self, name, object_type="QLOCAL", **attributes):
        """Alters an object."""
        self.qm.call(Alter(object_type=object_type, name=name, attributes=attributes))

    def redefine(self, name, object_type="QLOCAL", **attributes):
        """Defines an object anew."""
        self.qm.call(Define(object_type=object_type, name=name, attributes=attributes, replace=True))

    def close(self):
        """Ends what has objects open."""
        self.stack.close()


@contextlib.contextmanager
def for_other_users(passable, directory, monkeypatch, **attributes):
    """Yields the objects, the queue with these attributes, at a queue manager that other users of this machine reach.

    ``directory`` has the C library.
    """
    load_library(directory)
    ibmmq()
    daemon = passable(name=THERE, settings={"server.socket_mode": "0666"})
    monkeypatch.setenv("TRIGMON_HOME", str(daemon.home))
    monkeypatch.delenv("TRIGMON_QMGR", raising=False)
    one = Elsewhere(daemon).begin(**attributes)
    yield one
    one.close()
