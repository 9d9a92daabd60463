"""Two queue managers, and a monitor between them."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.bridge.bench import Bench, Road
from tests.mqi.conftest import library_directory

__all__ = ["library_directory"]
NEEDS_IBMMQ = pytest.mark.skipif(find_spec("ibmmq") is None, reason="ibmmq has no wheel for this machine")


@pytest.fixture
def bench(tmp_path_factory, library_directory):
    """Makes a bench; ``bench(applicid_of_message="true")`` is one with more settings of its bridge."""
    if find_spec("ibmmq") is None:
        pytest.skip("ibmmq has no wheel for this machine")
    made = []

    def make(**bridge):
        made.append(Bench(tmp_path_factory.mktemp("qm"), library_directory, **bridge))
        return made[-1]

    yield make
    for one in made:
        one.end()


@pytest.fixture
def road(tmp_path_factory):
    """Makes the road between a bench's monitors and both queue managers."""
    made = []

    def make(bench):
        made.append(Road(bench, tmp_path_factory.mktemp("r")))
        return made[-1]

    yield make
    for one in made:
        one.end()
