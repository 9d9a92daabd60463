"""The book holds on a real daemon too, as far as a real clock can play it."""

import pytest

from tests.book import BOOK
from tests.daemons import queue_managers
from tests.scenarios.over_socket import OverSocket, is_playable
from trigmon.simulate.player import play

SCENARIOS = [(page, scenario) for page, scenario in BOOK if is_playable(scenario)]


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    """The daemon that all scenarios share; one that a scenario has ended is started again by that scenario."""
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        yield make()


@pytest.mark.parametrize(
    "scenario", [scenario for _, scenario in SCENARIOS], ids=[f"{page}: {s.title}" for page, s in SCENARIOS]
)
def test_it_holds_on_a_daemon(scenario, running):
    result = play(scenario, OverSocket(running))
    assert [f"line {step.line}: {step.failure}" for step in result.steps if step.failure] == []


def test_most_of_the_book_can_be_played_so():
    assert len(SCENARIOS) > 190
