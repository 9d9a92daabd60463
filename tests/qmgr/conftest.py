"""One suite, every store."""

from __future__ import annotations

import pytest

from tests.worlds import STORES, World


@pytest.fixture(params=STORES)
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    yield made
    made.end()
