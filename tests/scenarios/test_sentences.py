"""The seed's sentences and the scenario book are held together: SENTENCES.md lists the one, sources name its places."""

from __future__ import annotations

import pytest

from tests.book import BOOK, PLACES, places_of
from trigmon.rules.triggers.wording import ORDER
from trigmon.simulate.reading import read_scenarios
from trigmon.yaml12 import YamlError

OTHERS = ("seed 000", "seed 003", "the manual on ", "DESIGN: ", "SCENARIOS", "mq-facts ", "issue ")


def groups_are_refused():
    try:
        read_scenarios("scenario: s\nqmgrs: [A, B]\nsteps:\n- commit: {}\n", "two.yaml")
    except YamlError:
        return True
    return False


# What a place may be owed with, and how it shows that it is still to come.
STILL_TO_COME = {"queue-sharing groups": groups_are_refused()}
NAMED = {place for _, scenario in BOOK for place in places_of(scenario.source)}


def test_the_list_is_in_the_seeds_order_and_names_every_condition():
    order = [*(number for number in ORDER if number[0].isdigit()), "note"]
    numbers = [place.split()[0] for place in PLACES]
    assert list(dict.fromkeys(numbers)) == order
    assert numbers == sorted(numbers, key=order.index)


@pytest.mark.parametrize("place", [place for place, owed in PLACES.items() if not owed])
def test_each_sentence_has_a_scenario(place):
    assert place in NAMED


@pytest.mark.parametrize("owed", STILL_TO_COME)
def test_a_sentence_is_owed_only_while_what_it_needs_is_still_to_come(owed):
    assert STILL_TO_COME[owed] or owed not in PLACES.values()


def test_what_is_owed_is_known():
    assert {owed for owed in PLACES.values() if owed} <= set(STILL_TO_COME)


def test_each_source_names_known_places_and_known_texts():
    unknown = [
        (page, scenario.title, part)
        for page, scenario in BOOK
        for part in scenario.source.split("; ")
        if not part.startswith(OTHERS) and not (part.startswith("seed 001: ") and set(places_of(part)) <= set(PLACES))
    ]
    assert unknown == []


@pytest.mark.parametrize("page", sorted({page for page, _ in BOOK if page.startswith(("condition_", "note_"))}))
def test_each_scenario_of_a_page_names_a_place_that_the_page_is_about(page):
    number = page.removeprefix("condition_").lstrip("0").replace("_", " ")
    beside = [
        scenario.title
        for stem, scenario in BOOK
        if stem == page and not any(p == number or p.startswith(number + " ") for p in places_of(scenario.source))
    ]
    assert beside == []
