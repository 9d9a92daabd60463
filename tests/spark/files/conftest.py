"""What says to drain which queue."""

from __future__ import annotations

import pytest


@pytest.fixture
def here(shared_daemon, q_name, spark):
    return {"queue": q_name, "qmgr": shared_daemon.address}
