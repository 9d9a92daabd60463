"""What several parts of the tests of daemons need."""

import pytest

from tests.postgres import Server


@pytest.fixture
def server():
    """A database of its own, with fsync on, that a test may cut down."""
    one = Server()
    yield one
    one.end()
