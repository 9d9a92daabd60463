"""Every fault planted in the law of triggering is noticed by a scenario of the book."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.mutations.every import FAULTS, PAGES
from tests.mutations.faults_of_the_table import IMPLIED, cells, spoiled
from tests.mutations.planting import number_of, plan_of, put_in_force
from tests.mutations.playing import failing, who_notices
from trigmon.rules.triggers import table
from trigmon.rules.triggers.table import TABLE


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught(name):
    assert who_notices(FAULTS[name]) is not None


@pytest.mark.parametrize("name", dict.fromkeys([*(fault.name for fault in cells()), *list(FAULTS)[::12]]))
def test_a_fault_of_the_table_or_of_the_sample_is_caught(name):
    assert who_notices(FAULTS[name]) is not None


def test_without_a_fault_the_book_holds():
    assert list(failing(None)) == []


def test_the_plan_drawn_up_here_is_the_table_modules_own():
    assert plan_of(TABLE) == table._PLAN


@pytest.mark.parametrize(("occasion", "requirement"), IMPLIED, ids=lambda c: number_of(c))
def test_what_an_occasion_implies_changes_nothing_when_asked_for_as_well(monkeypatch, occasion, requirement):
    put_in_force(monkeypatch, spoiled(occasion, requirement))
    assert list(failing(None)) == []


def test_every_cell_of_the_table_and_every_condition_has_its_faults():
    requirements = TABLE[table.c01]
    assert len(list(cells())) + len(IMPLIED) == len(TABLE) * len(requirements)
    for condition in {*TABLE, *requirements}:
        number = number_of(condition)
        assert any(name.startswith(f"{number}: always true") for name in FAULTS)
        assert f"{number}: always false" in FAULTS


def test_no_two_faults_have_one_name():
    assert len(FAULTS) == sum(len(page.FAULTS) for page in PAGES)


def test_the_script_prints_who_caught_what_and_knows_no_other_name():
    def run(only):
        argv = [sys.executable, "-m", "tests.mutations", "--only", only]
        return subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)

    done = run("14: always")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("  caught  14: always ") == 2
    assert "condition_" in done.stdout
    assert re.search(r"\n2 caught, 0 missed, \d+ s\n$", done.stdout)
    assert run("no such fault").returncode == 2
