"""The picture of Spark's figures, and what pandas says of the flights."""

from __future__ import annotations

from xml.etree import ElementTree

import pandas as pd

from tests.acceptance import flights_figures
from tests.benchmarks import full_year
from tests.benchmarks.measuring import Figures
from tests.benchmarks.spark_picture import Panel, drawn, table

RATES = {"a loop": Figures("rows/s", [4000.0, 5000.0]), "a <drain>": Figures("rows/s", [40_000.0, 50_000.0])}
TIMES = {"plain": Figures("s", [9.0, 10.0, 12.0]), "warm": Figures("s", [0.2, 0.25, 0.5])}
PANELS = [Panel("rates", RATES, "a loop", ["a <drain>"]), Panel("times", TIMES, "plain", ["warm"])]


def test_a_picture_has_a_bar_for_each_way_as_long_as_its_median_and_the_ratio_beside_it():
    root = ElementTree.fromstring(drawn(PANELS, "2 cores"))
    bars = [float(it.get("width")) for it in root.iterfind(".//{*}rect")][1:]
    assert [round(bars[0] / bars[1], 2), round(bars[3] / bars[2], 3)] == [0.1, 0.025]
    texts = ["".join(it.itertext()).strip() for it in root.iterfind(".//{*}text")]
    assert texts == [
        *("rates", "a loop", "4,500 rows/s", "a <drain>", "45,000 rows/s 10.00 x"),
        *("times", "plain", "10.00 s", "warm", "0.25 s 40.0 times faster", "2 cores"),
    ]


def test_a_table_has_the_same_figures():
    assert table(PANELS).splitlines()[3:5] == [
        "| rates | a <drain> | 45,000 rows/s | 40,000 to 50,000 | 10 |",
        "| times | plain | 10.00 s | 9 to 12 | 1 |",
    ]


def test_pandas_finds_what_plain_python_finds_in_the_flights():
    until = "2013-01-03"
    plain = flights_figures.flights(until)
    found = full_year.flights(until)
    full_year.same(found, pd.DataFrame(plain))
    full_year.same(full_year.delays(found), pd.DataFrame(flights_figures.delays(plain)))
