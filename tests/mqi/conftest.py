from __future__ import annotations

import itertools

import pytest

from tests.mqi.mqi_program import Program
from trigmon.mq.calls import Define
from trigmon.mqi import ibmmqc

_numbers = itertools.count(1)
_OF_MQ = ("MQSERVER", "MQCCDTURL", "MQCHLLIB", "MQCHLTAB", "TRIGMON_QMGR", "TRIGMON_QMGR_NAME")


@pytest.fixture
def here(shared_daemon, monkeypatch):
    """Makes QM1 the file's queue manager for a program that connects by that name."""
    monkeypatch.setenv("TRIGMON_HOME", str(shared_daemon.home))
    for name in _OF_MQ:
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
