"""One queue manager with something of everything, and web consoles of it."""

import pytest

from tests.console.web.populated import Populated
from tests.console.web.web_process import Web
from tests.daemons import queue_managers


@pytest.fixture(scope="module")
def populated(tmp_path_factory):
    """Yields a queue manager with a monitor, and something of everything; of the whole file."""
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        daemon = make(with_monitor=True)
        made = Populated(daemon, daemon.home).fill()
        yield made
        made.end()


@pytest.fixture(scope="module")
def web_of():
    """Makes web consoles; none has anything to say on its standard error when it ends."""
    made = []

    def make(daemon, *options, env=None):
        made.append(one := Web(daemon.env | (env or {}), *options))
        return one

    yield make
    try:
        errors = [one.end() for one in made]
    finally:
        for one in made:  # what did not end in order must not stay behind
            one.process.kill()
    assert errors == [""] * len(made)


@pytest.fixture(scope="module")
def reader(populated, web_of):
    """Returns a console that only shows."""
    return web_of(populated.daemon)


@pytest.fixture(scope="module")
def actor(populated, web_of):
    """Returns a console that acts, and shows data."""
    return web_of(populated.daemon, "--allow-actions", "--show-data")
