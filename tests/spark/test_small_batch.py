"""A small batch of a drain comes in Spark's plan, with the rows and columns that the data source would give."""

from __future__ import annotations

import pytest

from tests.daemons import define
from tests.spark.conftest import depth
from trigmon.mq.calls import Alter
from trigmon.spark import batches, drain, small_batch

pytestmark = pytest.mark.spark

JSON = [
    b'{"id": 1, "name": "one", "price": 1.5, "ok": true, "at": "2013-01-02T03:04:05Z", "parts": [{"a": 1, "b": "x"}]}',
    b'{"id": 2, "name": null, "in": {"deep": [1, 2]}}',
]
SCHEMA = """id bigint, name string, price double, ok boolean, at timestamp, parts array<struct<a: int, b: string>>,
    `in` struct<deep: array<int>>, mq_put_time timestamp, mq_priority int"""
FORMS = {
    "raw": {},
    "some columns": {"options": {"columns": "priority, data,headers,put_time"}},
    "json": {"options": {"format": "json"}, "schema": SCHEMA},
    "permissive": {"options": {"format": "json", "mode": "PERMISSIVE"}, "schema": "id int, _corrupt_record string"},
}


def is_in_plan(frame):
    """Whether the rows are in the plan; else the data source reads them."""
    text = frame._jdf.queryExecution().executedPlan().toString()
    assert ("LocalTableScan" in text) != ("BatchScan" in text), text
    return "LocalTableScan" in text


@pytest.mark.parametrize("form", FORMS)
def test_the_rows_and_columns_are_those_of_the_data_source(qm, here, spark, form):
    qm.put_many(here["queue"], [*JSON, b"no JSON"] if form == "permissive" else JSON)
    with batches(spark, in_plan=True, **here, **FORMS[form]) as waiting, waiting.next() as batch:
        ours, source = batch.frame, waiting.source
        theirs = source.reader(spark.read, reservation=batch.number).load()
        assert (is_in_plan(ours), is_in_plan(theirs)) == (True, False)
        assert ours.schema == theirs.schema
        assert ours.collect() == theirs.collect()
        assert ours.rdd.getNumPartitions() == 1


def test_a_drain_has_a_small_batch_in_the_plan_and_a_large_one_from_the_data_source(qm, here, spark):
    seen = []

    def each(frame, batch):
        seen.append((batch.count, is_in_plan(frame)))

    qm.put_many(here["queue"], [b"x"] * (small_batch.MOST_ROWS + 1))
    drain(spark, each, **here)
    qm.put_many(here["queue"], [b"x"] * small_batch.MOST_ROWS)
    drain(spark, each, **here)
    qm.put_many(here["queue"], [bytes(small_batch.MOST_BYTES + 1)])
    drain(spark, each, **here)
    assert seen == [(small_batch.MOST_ROWS + 1, False), (small_batch.MOST_ROWS, True), (1, False)]


def test_what_failed_once_and_what_says_how_tasks_read_comes_from_the_data_source(qm, here, spark):
    seen = []

    def each(frame, batch):
        seen.append(is_in_plan(frame))
        if len(seen) == 1:
            raise ValueError("this once")

    qm.put_many(here["queue"], JSON)
    drain(spark, each, **here)
    qm.put_many(here["queue"], JSON)
    drain(spark, each, options={"partitions": 1}, **here)
    assert seen == [True, False, False]
    assert depth(qm, here["queue"]) == 0


def test_a_loop_over_batches_has_them_from_the_data_source_unless_it_asks(qm, here, spark):
    qm.put_many(here["queue"], JSON)
    with batches(spark, **here) as waiting, waiting.next() as batch:
        assert not is_in_plan(batch.frame)


def test_a_message_that_is_no_row_is_found_as_in_a_large_batch(qm, here, spark, tmp_path):
    aside = f"{here['queue']}.ASIDE"
    define(qm, aside)
    attributes = {"backout_requeue_q_name": aside}
    qm.call(Alter(object_type="QLOCAL", name=here["queue"], attributes=attributes))
    qm.put_many(here["queue"], [JSON[0], b"no JSON", JSON[1]])
    done = drain(spark, table=tmp_path / "table", options={"format": "json"}, schema="id int", **here)
    assert (done.rows, len(done.rejected)) == (2, 1)
    assert "no JSON object of the schema" in done.rejected[0].why
    assert {row.id for row in spark.read.parquet(str(tmp_path / "table")).collect()} == {1, 2}
