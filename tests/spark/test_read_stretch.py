"""A task reads its part of a reservation, a request for each reply; without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest

import trigmon
from tests.daemons import define
from trigmon.spark import options
from trigmon.spark.arrow_rows import COLUMNS
from trigmon.spark.reader import Stretch, read_stretch

SCHEMA = pa.schema([(name, COLUMNS[name][0]) for name in ("data", "ordinal")])
COUNT = 9_000
"""More than one reply holds."""


@pytest.fixture
def one(daemon, monkeypatch):
    monkeypatch.setenv("TRIGMON_RECONNECT", "300")
    made = daemon()
    with made.connect(reconnect_s=0) as qm:
        define(qm, "Q", def_persistence="persistent", max_q_depth=COUNT)
        qm.put_many("Q", [b"%d" % number for number in range(COUNT)])
    return made


def reserve(qm):
    return qm.open("Q", "input_shared").reserve("JOB", max_messages=COUNT).number


def read(one, number, *parts):
    return read_stretch(options.read({"queue": "Q", "qmgr": one.address}), Stretch(number, list(parts)), SCHEMA)


def test_all_of_several_parts_comes_once_and_in_order(one):
    with one.connect(reconnect_s=0) as qm:
        number = reserve(qm)
        rows = [
            row for batch in read(one, number, (10, 5_000), (5_001, 5_002), (6_000, COUNT)) for row in batch.to_pylist()
        ]
        wanted = [*range(10, 5_000), 5_001, *range(6_000, COUNT)]
        assert [row["ordinal"] for row in rows] == wanted
        assert [int(row["data"]) for row in rows] == wanted
        assert list(read(one, number)) == []


def test_what_was_settled_meanwhile_does_not_come(one):
    with one.connect(reconnect_s=0) as qm:
        number = reserve(qm)
        qm.settle(number, 0, 100)
        rows = [row["ordinal"] for batch in read(one, number, (50, 200), (300, 310)) for row in batch.to_pylist()]
        assert rows == [*range(100, 200), *range(300, 310)]


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_queue_manager_that_starts_again_under_a_reader_costs_it_no_row(one, how):
    qm = one.connect(reconnect_s=0)
    number = reserve(qm)
    reading = read(one, number, (0, COUNT))
    rows = next(reading).num_rows
    assert 0 < rows < COUNT
    getattr(one, how)()
    one.start()
    qm.drop()
    assert rows + sum(batch.num_rows for batch in reading) == COUNT


def test_nothing_is_asked_for_while_a_task_works_on_a_reply(one):
    with one.connect(reconnect_s=0) as qm:
        number = reserve(qm)
        reading = read(one, number, (0, COUNT))
        rows = next(reading).num_rows
        qm.settle(number, rows, COUNT - rows - 10)
        assert [row["ordinal"] for batch in reading for row in batch.to_pylist()] == list(range(COUNT - 10, COUNT))


def test_a_refusal_is_the_error_of_the_reader(one):
    with one.connect(reconnect_s=0) as qm:
        reading = read(one, number := reserve(qm), (0, COUNT))
        next(reading)
        qm.settle(number)
        with pytest.raises(trigmon.UnitOfWorkNotStarted):
            list(reading)
