"""One suite, every store."""

from __future__ import annotations

import pytest

from tests import postgres
from tests.worlds import STORES, World


@pytest.fixture(params=STORES)
def world(request, tmp_path):
    made = World(request.param, tmp_path)
    yield made
    made.end()


@pytest.fixture
def group():
    with postgres.group() as made:
        yield made


@pytest.fixture
def q(world):
    """The name of a queue of the world that is large and persistent."""
    world.define("Q", def_persistence="persistent", max_q_depth=999_999)
    return "Q"
