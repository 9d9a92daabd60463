"""The law as code, as document and as test are one list in one order."""

from __future__ import annotations

import inspect
import re
from importlib.resources import files

import pytest

from tests.book import BOOK, PLACES
from tests.build import a_queue, a_situation, an_initiation_queue
from trigmon.mq.enums import Inhibit, MsgDeliverySequence, TriggerControl, TriggerType
from trigmon.rules.model.situation import Happened
from trigmon.rules.triggers import conditions
from trigmon.rules.triggers.extensions import EXTENSIONS
from trigmon.rules.triggers.table import OCCASIONS, TABLE, judge
from trigmon.rules.triggers.wording import FACTS, ORDER, explanations, what_time_will_bring

FUNCTIONS = [f for name, f in inspect.getmembers(conditions, inspect.isfunction) if name.startswith("condition_")]
IN_ORDER = sorted(FUNCTIONS, key=lambda f: f.__code__.co_firstlineno)


def number_of(function) -> str:
    return re.match(r"condition_0?(\d+[abc]?)_", function.__name__).group(1)


def page() -> str:
    return files("trigmon.rules.triggers").joinpath("CONDITIONS.md").read_text()


def test_every_function_says_its_own_number():
    for function in FUNCTIONS:
        assert function(a_situation()).number == number_of(function)


def test_code_wording_and_document_have_the_same_order():
    numbers = [number_of(f) for f in IN_ORDER]
    headings = re.findall(r"^## (\d+[abc]?) (.*)$", page(), re.M)
    assert numbers == list(ORDER) == list(FACTS) == [number for number, _ in headings]
    assert [f.__name__.split("_", 2)[2].replace("_", " ") for f in IN_ORDER] == [text for _, text in headings]


def sections() -> dict[str, dict[str, str]]:
    """What the page says of each condition: its meaning, and the lines that begin with a word and a colon."""
    parts = re.split(r"^## (\d+[abc]?) .*$", page().split("\n## Ours")[0], flags=re.M)[1:]
    told = {}
    for number, text in zip(parts[::2], parts[1::2], strict=True):
        meaning, lines = text.strip().split("\n\n", 1)
        items = [" ".join(item.split()) for item in re.split(r"^- ", lines, flags=re.M)[1:]]
        told[number] = {"Meaning": meaning, **dict(item.split(": ", 1) for item in items)}
    return told


def test_the_document_tells_of_each_condition_what_it_means_looks_at_an_example_and_its_source():
    for number, told in sections().items():
        assert list(told) == ["Meaning", "Looks at", "Example", "Source", "Shown by"], number
        assert all(len(text) > 5 for text in told.values())


def test_the_documents_sources_are_all_the_places_the_seed_has_for_a_condition():
    for number, told in sections().items():
        named = told["Source"].removeprefix("seed 001: ").removesuffix(".").split(", ")
        assert named == [place for place in PLACES if place.split()[0] == number]


def test_each_condition_is_shown_by_a_scenario_of_its_page():
    for number, told in sections().items():
        titles = [s.title for page_of, s in BOOK if page_of.removeprefix("condition_").lstrip("0") == number]
        assert told["Shown by"].removesuffix(".") in titles


def test_the_table_of_the_document_is_the_table_of_the_code():
    printed = {row[0]: tuple(row[1].split()) for row in re.findall(r"^\| (\d+[abc]?) \| ([\d ]+) \|", page(), re.M)}
    assert printed == {number_of(o): tuple(number_of(r) for r in required) for o, required in TABLE.items()}


def test_the_table_of_our_rows_is_the_one_of_the_code():
    printed = {row[0]: tuple(row[1].split()) for row in re.findall(r"^\| ([A-Z]) \| ([\d ]+) \|", page(), re.M)}
    ours = {o(a_situation()).number: tuple(map(number_of, required)) for o, required in EXTENSIONS.items()}
    assert printed == ours


@pytest.mark.parametrize("requirement", [None, *["4", "5", "6", "7", "8", "9", "10"]])
@pytest.mark.parametrize(
    ("row", "happened"),
    [("B", Happened.BACKSTOP), ("M", Happened.MAX_WAIT), ("R", Happened.RESERVATION_LOST), ("S", Happened.MOMENT)],
)
def test_our_rows_ask_for_all_of_theirs(row, happened, requirement):
    breaks = BREAKS.get(requirement, {})
    queue = a_queue(waiting=1, backstop_s=1, max_wait_s=1, **breaks.get("queue", {}))
    given = {"process": None} if requirement == "6" else {}
    given["initiation"] = an_initiation_queue(**breaks.get("initiation", {}))
    verdict = judge(a_situation(happened=happened, queue=queue, oldest_ms=1, **given))
    is_asked = requirement and not (row == "S" and requirement in ("9", "10"))
    assert verdict.occasion == ("" if is_asked else row)


def test_the_table_uses_exactly_the_functions_of_the_file():
    used = {*TABLE, *(c for required in TABLE.values() for c in required)}
    assert used == set(FUNCTIONS)
    assert {o for occasions in OCCASIONS.values() for o in occasions} == set(TABLE)


@pytest.mark.parametrize("kind", [TriggerType.FIRST, TriggerType.EVERY, TriggerType.DEPTH])
@pytest.mark.parametrize("waiting", range(6))
def test_at_most_one_occasion_fires_for_one_put(kind, waiting):
    verdict = judge(a_situation(queue=a_queue(waiting=waiting, trigger_type=kind, trigger_depth=3)))
    held = [f.number for f in verdict.findings if f.number in ("1", "11") and f.holds]
    third = next(f.holds for f in verdict.findings if f.number == "3")
    assert not ("11" in held and third and kind is not TriggerType.EVERY)


# For each requirement, what breaks it and nothing else.
BREAKS = {
    "4": {"queue": {"open_input_count": 1}},
    "5": {"queue": {"inhibit_get": Inhibit.INHIBITED}},
    "6": {"process": None},
    "7": {"initiation": {"inhibit_put": Inhibit.INHIBITED}},
    "8": {"initiation": {"open_input_count": 0}},
    "9": {"queue": {"trigger_control": TriggerControl.OFF}},
    "10": {"queue": {"trigger_type": TriggerType.NONE}},
}
HAPPENINGS = {
    "1": (Happened.PUT, 0, {}),
    "11": (Happened.PUT, 1, {}),
    "12": (Happened.CLOSE, 1, {"had_readers": 1}),
    "13": (Happened.CHANGE, 1, {"was": {"trigger_msg_priority": 3}}),
    "13a": (Happened.INITIATION_PUT_ALLOWED, 1, {}),
    "13b": (Happened.GET_ALLOWED, 1, {}),
    "13c": (Happened.MONITOR_OPENED, 1, {}),
}


def broken(occasion, requirement):
    happened, waiting, given = HAPPENINGS[occasion]
    breaks = BREAKS.get(requirement, {})
    queue = a_queue(waiting=waiting, **breaks.get("queue", {}))
    initiation = an_initiation_queue(**breaks.get("initiation", {}))
    process = {"process": None} if requirement == "6" else {}
    return a_situation(happened=happened, queue=queue, initiation=initiation, **process, **given)


@pytest.mark.parametrize("occasion", HAPPENINGS)
def test_an_occasion_fires_when_all_it_asks_for_is_so(occasion):
    assert judge(broken(occasion, None)).occasion == occasion


@pytest.mark.parametrize("requirement", BREAKS)
@pytest.mark.parametrize("occasion", HAPPENINGS)
def test_an_occasion_asks_for_what_the_table_says_and_for_nothing_else(occasion, requirement):
    asked = next(required for o, required in TABLE.items() if number_of(o) == occasion)
    verdict = judge(broken(occasion, requirement))
    if requirement == "4" and occasion == "12":
        return  # a reader that is left makes it another close than the last: its own test
    if (requirement == "9" and occasion == "13") or (requirement == "10" and occasion == "12"):
        assert not verdict.fires  # part of the occasion itself as well
    elif requirement == "10" and occasion == "11":
        assert not verdict.fires
    else:
        assert verdict.fires == (requirement not in [number_of(r) for r in asked])


@pytest.mark.parametrize("requirement", BREAKS)
def test_a_verdict_names_exactly_what_fails(requirement):
    assert judge(broken("1", requirement)).fails == [requirement]


def test_fourteen_is_named_with_two_on_a_fifo_queue_below_its_threshold():
    queue = a_queue(msg_delivery_sequence=MsgDeliverySequence.FIFO, trigger_msg_priority=1)
    assert judge(a_situation(queue=queue, put_priority=9)).fails == ["2", "14"]


def test_three_is_named_only_when_eleven_does_not_help():
    quiet = a_queue(waiting=1, trigger_stamp_ms=49_999)
    assert judge(a_situation(queue=quiet)).fails == ["3"]
    assert judge(a_situation(queue=a_queue(waiting=1))).fails == []


@pytest.mark.parametrize("requirement", BREAKS)
def test_an_explanation_has_a_remedy_for_what_fails(requirement):
    situation = broken("1", requirement)
    shown = {e.number: e for e in explanations(situation, judge(situation))}
    assert [number for number, e in shown.items() if e.holds == "NO"] == [requirement]
    assert shown[requirement].remedy
    assert all(e.seen for e in shown.values())


def test_what_time_will_bring_says_how_long_it_will_take_still():
    queue = a_queue(waiting=1, backstop_s=60, max_wait_s=300, trigger_stamp_ms=40_000)
    shown = {e.number: e for e in what_time_will_bring(a_situation(queue=queue, oldest_ms=20_000))}
    assert {number: (e.holds, e.seen, e.needed) for number, e in shown.items()} == {
        "B": ("not yet", "1 waiting, 10.0 s since the last one", "60 s; 50.0 s remain"),
        "M": ("not yet", "waited 10.0 s", "300 s; 290.0 s remain"),
    }
    assert what_time_will_bring(a_situation()) == []
