"""The scenario book: every scenario beside this file holds, on every store."""

import pytest

from tests.book import BOOK, stage
from trigmon.simulate.player import play
from trigmon.simulate.scenario_stores import STORES

CONDITIONS = [*(f"{number:02}" for number in range(1, 15)), "13a", "13b", "13c"]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("scenario", [scenario for _, scenario in BOOK], ids=[f"{page}: {s.title}" for page, s in BOOK])
def test_it_holds(scenario, store):
    result = play(scenario, stage(scenario.q_mgrs, store))
    assert [f"line {step.line}: {step.failure}" for step in result.steps if step.failure] == []


@pytest.mark.parametrize("number", CONDITIONS)
def test_each_condition_has_its_page(number):
    assert len([1 for page, _ in BOOK if page == f"condition_{number}"]) >= 3


def test_every_scenario_names_its_source():
    assert [scenario.title for _, scenario in BOOK if not scenario.source] == []


def test_no_title_stands_twice_on_a_page():
    titles = [(page, scenario.title) for page, scenario in BOOK]
    assert len(set(titles)) == len(titles)
