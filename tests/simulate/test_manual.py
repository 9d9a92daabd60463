"""The manual of scenario files names every verb, every expectation and every key there is, and its example plays."""

from __future__ import annotations

import re
from importlib.resources import files

from trigmon.simulate.expectations import EXPECTATIONS
from trigmon.simulate.reservation_verbs import RETURNED
from trigmon.simulate.run_files import play_files
from trigmon.simulate.scenario_files import _SCENARIO
from trigmon.simulate.step_verbs import ACTS

MANUAL = files("trigmon.simulate").joinpath("SCENARIOS.md").read_text()


def rows(head: str) -> dict[str, str]:
    """The rows of a table by the words of their first column."""
    table = MANUAL.partition(f"| {head} |")[2].split("\n\n")[0]
    found = re.findall(r"^\| ([^|]+) \| (.+) \|$", table, re.M)
    return {word: said for words, said in found if "`" in words for word in re.findall(r"`(\w+)`", words)}


def test_it_names_the_keys_of_a_scenario_the_verbs_and_the_expectations_in_their_order():
    assert tuple(rows("key | is")) == _SCENARIO
    assert list(rows("verb | arguments")) == list(ACTS)
    assert tuple(rows("key | holds when")) == EXPECTATIONS


def test_it_names_what_returns_may_name_of_a_reservation():
    told = rows("`returns` of | may name")
    for verb, readers in RETURNED.items():
        assert re.findall(r"`(\w+)`", told[verb]) == list(readers)


def test_its_example_holds(tmp_path):
    (example,) = re.findall(r"```yaml\n(.*?)```", MANUAL, re.S)
    file = tmp_path / "example.yaml"
    file.write_text(example)
    assert play_files([str(file)], "sqlite", "table", print, print) == 0
