"""The book notices every requirement that the law's table has too few or too many.

Each row of the table is spoiled in each place, and some scenario must then fail. What cannot be noticed is named
below with the reason: there the spoiled law says the same as the law.
"""

from pathlib import Path

import pytest

from trigmon.rules.triggers import table
from trigmon.simulate.in_process import InProcess
from trigmon.simulate.player import play
from trigmon.simulate.reading import read_files

HERE = Path(__file__).parent
PAGES = [*sorted(HERE.glob("condition_*.yaml")), HERE / "units_of_work.yaml"]
SCENARIOS = read_files([str(page) for page in PAGES])
REQUIREMENTS = table.TABLE[table.c01]

SAME_LAW = {
    (table.c01, table.c14): "when 14 fails, 2 fails with it, and the other of 1 and 11 still reports 14",
    (table.c11, table.c14): "likewise",
    (table.c11, table.c10): "11 is of FIRST and DEPTH",
    (table.c12, table.c10): "12 is of FIRST and DEPTH",
    (table.c12, table.c04): "12 is the last reader's close, so nobody reads",
    (table.c13, table.c09): "13 holds only while control is on",
    (table.c13b, table.c05): "13b is that gets became allowed",
    (table.c13c, table.c08): "13c is that a monitor opened",
}


def plan_of(law):
    """The plan that the table module draws up of a law, as it does at import."""
    plan = {}
    for happened, occasions in table.OCCASIONS.items():
        asked = tuple(dict.fromkeys(c for occasion in occasions for c in (occasion, *law[occasion])))
        rows = tuple((asked.index(o), tuple(asked.index(c) for c in law[o])) for o in occasions)
        plan[happened] = (asked, rows)
    return plan


def spoiled(occasion, requirement):
    """The law with one requirement of one occasion taken out, or put in where it was not."""
    row = table.TABLE[occasion]
    changed = tuple(c for c in row if c is not requirement) if requirement in row else (*row, requirement)
    return {**table.TABLE, occasion: changed}


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("occasion", table.TABLE, ids=lambda c: c.__name__)
def test_a_spoiled_law_is_noticed(monkeypatch, occasion, requirement):
    assert plan_of(table.TABLE) == table._PLAN
    monkeypatch.setattr(table, "_PLAN", plan_of(spoiled(occasion, requirement)))
    noticed = any(not play(s, InProcess(s.q_mgrs[0], "memory")).passed for s in SCENARIOS)
    assert noticed is ((occasion, requirement) not in SAME_LAW)
