"""The seeds' sentences and the scenario book are held together: SENTENCES_*.md list them, sources name their places.

A list of another seed is found by its name.
"""

from __future__ import annotations

import pytest

from tests.book import BOOK, PLACES, SEEDS, places_of
from trigmon.rules.triggers.wording import ORDER

OTHERS = ("the manual on ", "DESIGN: ", "SCENARIOS", "mq-facts ", "issue ")


# What a place may speak of that trigmon has not, and is not to have.
ELSEWHERE = {"z/OS", "Db2", "CICS"}
NAMED = {(seed, place) for _, scenario in BOOK for seed in SEEDS for place in places_of(scenario.source, seed)}
OWED = {(seed, place): owed for seed, places in SEEDS.items() for place, owed in places.items()}


def test_the_list_is_in_the_seeds_order_and_names_every_condition():
    order = [*(number for number in ORDER if number[0].isdigit()), "note"]
    numbers = [place.split()[0] for place in PLACES]
    assert list(dict.fromkeys(numbers)) == order
    assert numbers == sorted(numbers, key=order.index)


@pytest.mark.parametrize(("seed", "place"), [place for place, owed in OWED.items() if not owed])
def test_each_sentence_has_a_scenario(seed, place):
    assert (seed, place) in NAMED


def test_no_scenario_shows_what_does_not_exist_here():
    assert {place for place, owed in OWED.items() if owed in ELSEWHERE} & NAMED == set()


def test_what_is_owed_is_known():
    assert {owed for owed in OWED.values() if owed} <= ELSEWHERE


def test_each_source_names_known_places_and_known_texts():
    unknown = [
        (page, scenario.title, part)
        for page, scenario in BOOK
        for part in scenario.source.split("; ")
        if not part.startswith(OTHERS) and not is_known(part)
    ]
    assert unknown == []


def is_known(part):
    seed = part[: len("seed 000")]
    return part.startswith(f"{seed}: ") and seed in SEEDS and set(places_of(part, seed)) <= set(SEEDS[seed])


@pytest.mark.parametrize("page", sorted({page for page, _ in BOOK if page.startswith(("condition_", "note_"))}))
def test_each_scenario_of_a_page_names_a_place_that_the_page_is_about(page):
    number = page.removeprefix("condition_").lstrip("0").replace("_", " ")
    beside = [
        scenario.title
        for stem, scenario in BOOK
        if stem == page and not any(p == number or p.startswith(number + " ") for p in places_of(scenario.source))
    ]
    assert beside == []
