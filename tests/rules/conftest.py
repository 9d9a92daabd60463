"""Fixtures of the tests of the rules."""

import pytest

from tests.rules.launching_ledger import Ledger
from tests.rules.told_events import Told
from tests.worlds import STORES


@pytest.fixture(params=STORES)
def ledger(request, tmp_path):
    """Yields a queue manager whose monitor records runs, on each store."""
    made = Ledger(request.param, tmp_path)
    yield made
    made.end()


@pytest.fixture(params=["memory", "sqlite"])
def told(request, tmp_path):
    """Yields a queue manager whose events are on, on two stores."""
    made = Told(request.param, tmp_path)
    yield made
    made.end()
