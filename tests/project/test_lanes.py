"""Each test is in one lane, and in the everyday lane each way that calls and starts go is gone."""

import re
from pathlib import Path
from typing import get_args

import pytest

from tests import lanes
from tests.book import BOOK, stage
from trigmon.rules.model.changes import AnyChange
from trigmon.simulate.player import play
from trigmon.store.memory.group import Membership
from trigmon.store.memory.store import MemoryStore

ROOT = Path(__file__).parents[2]
BY_WAY = [(way, start) for way, tests in lanes.REPRESENTATIVES.items() for start in tests]
# The book writes none of these: another representative does.
NOT_IN_THE_BOOK = ["DropPause", "DropRun", "Serve", "SetAside", "SetCause", "SetPause", "Unserve", "WriteRun"]


def test_each_test_that_was_collected_is_in_one_lane(request):
    found = request.config.stash[lanes.FOUND]
    assert request.node.nodeid in found
    assert set(found.values()) <= set(lanes.LANES)
    marked = {
        item.nodeid: [mark.name for mark in item.iter_markers() if mark.name in lanes.LANES]
        for item in request.session.items
    }
    assert {nodeid: set(names) for nodeid, names in marked.items()} == {nodeid: {found[nodeid]} for nodeid in marked}


@pytest.mark.parametrize("start", [*dict(BY_WAY).values(), *lanes.USED_BY_FILE])
def test_what_is_named_is_there(start):
    file, *names = start.split("::")
    found = [ROOT / file] if (ROOT / file).exists() else list(ROOT.glob(f"{file}*.py"))
    assert found
    for name in names:
        assert re.search(rf"^ *(def|class) {name.partition('[')[0]}", found[0].read_text(), re.MULTILINE)


@pytest.mark.parametrize(("way", "start"), BY_WAY)
def test_each_way_has_its_tests_in_the_everyday_lane(request, way, start):
    found = request.config.stash[lanes.FOUND]
    of_it = {lane for nodeid, lane in found.items() if nodeid.startswith(start)}
    # Where its file was not collected there is nothing to see.
    assert lanes.EVERYDAY in of_it or not any(nodeid.startswith(start.split("::")[0]) for nodeid in found)


def test_the_scenarios_on_postgresql_write_every_kind_of_change_that_the_book_writes(monkeypatch):
    chosen = _changes_of(monkeypatch, lanes.smallest_cover())
    assert chosen == _changes_of(monkeypatch, [scenario for _, scenario in BOOK])
    assert {kind.__name__ for kind in get_args(AnyChange)} - chosen == set(NOT_IN_THE_BOOK)


@pytest.mark.parametrize("over_a_socket", [False, True])
def test_the_scenarios_that_are_chosen_show_what_all_show_and_are_few(over_a_socket):
    chosen = lanes.smallest_cover(over_a_socket)
    assert 40 < len(chosen) < 120
    if not over_a_socket:
        assert set().union(*map(lanes.facts_of, chosen)) == set().union(*(lanes.facts_of(one) for _, one in BOOK))
        assert {page for page, scenario in BOOK if scenario in chosen} == {page for page, _ in BOOK}


def _changes_of(monkeypatch, scenarios):
    """Returns the names of the kinds of change that these make on the store in memory."""
    made = set()

    def noting(real):
        def apply(self, changes, *more):
            made.update(type(one).__name__ for one in (changes if isinstance(changes, list | tuple) else [changes]))
            return real(self, changes, *more)

        return apply

    with monkeypatch.context() as patches:
        for store in (MemoryStore, Membership):
            patches.setattr(store, "apply", noting(store.apply))
        for scenario in scenarios:
            play(scenario, stage(scenario.q_mgrs, "memory"))
    return made
