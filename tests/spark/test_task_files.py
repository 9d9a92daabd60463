"""A batch that its tasks write without Java is in the table as Spark would have written it."""

from __future__ import annotations

import time
from datetime import UTC
from threading import Thread

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.conftest import depth, writers
from tests.waiting import until
from trigmon.spark import drain, file_sink
from trigmon.spark.file_table import batch_of, write_task_files
from trigmon.spark.task_files import TaskFiles, _names, parquet_form

pytestmark = [pytest.mark.spark]
COUNT = 1500
"""More than may come in Spark's plan."""
SCHEMA = (
    "id int, price decimal(10,2), at timestamp, tags array<string>, of struct<name: string, n: bigint>, "
    "ok boolean, mq_msg_id binary, mq_put_time timestamp"
)


def as_it_is(frame):
    """Has Spark write the rows."""
    return frame


def files_of(table):
    return sorted(table.glob("batch=*/*.parquet"))


def rows_of(spark, table, by):
    frame = spark.read.parquet(str(table)).drop("batch")
    return frame.schema, [row.asDict(recursive=True) for row in frame.orderBy(by).collect()]


@pytest.mark.parametrize("form", ["raw", "json"])
def test_rows_and_columns_are_those_that_spark_writes(qm, q_name, here, spark, tmp_path, form):
    how = {} if form == "raw" else {"options": {"format": "json"}, "schema": SCHEMA}
    bodies = [
        b'{"id": %d, "price": 12.34, "at": "2024-02-03T04:05:06.000007Z", "tags": ["a", null], '
        b'"of": {"name": "x", "n": %d}, "ok": true}' % (n, n)
        for n in range(COUNT)
    ]
    qm.put_many(q_name, bodies)
    messages = [(message.msg_id, message.put_ms) for message in browsed(qm, q_name)]
    assert drain(spark, table=tmp_path / "tasks", **how, **here).rows == COUNT
    qm.put_many(q_name, bodies)
    assert drain(spark, table=tmp_path / "spark", transform=as_it_is, **how, **here).rows == COUNT
    assert (writers(tmp_path / "tasks"), writers(tmp_path / "spark")) == ({"parquet-cpp-arrow"}, {"parquet-mr"})
    by = "ordinal" if form == "raw" else "id"
    schema, rows = rows_of(spark, tmp_path / "tasks", by)
    of_spark, expected = rows_of(spark, tmp_path / "spark", by)
    assert schema == of_spark
    own = [name for name in rows[0] if name.removeprefix("mq_") in ("msg_id", "put_time")]
    assert len(own) == 2
    for row, other, (msg_id, put_ms) in zip(rows, expected, messages, strict=True):
        assert (bytes(row[own[0]]), row[own[1]].timestamp() * 1000) == (msg_id, pytest.approx(put_ms, abs=1))
        assert {name: row[name] for name in row if name not in own} == {
            name: other[name] for name in other if name not in own
        }


def browsed(qm, q_name):
    with qm.open(q_name, "browse") as queue:
        return list(queue.browse())


def test_a_table_of_both_kinds_of_files_is_read_as_one_and_gets_new_columns(qm, q_name, here, spark, tmp_path):
    table = tmp_path / "table"
    for columns, transform in (("data", None), ("data", as_it_is), ("data,priority", None)):
        qm.put_many(q_name, [b"x"] * COUNT)
        drain(spark, table=table, transform=transform, merge_schema=True, options={"columns": columns}, **here)
    assert writers(table) == {"parquet-cpp-arrow", "parquet-mr"}
    frame = spark.read.parquet(str(table))
    assert frame.groupBy("priority").count().orderBy("priority").collect() == [(None, 2 * COUNT), (0, COUNT)]


def test_readers_other_than_spark_see_one_type_of_times_in_files_of_both_kinds(qm, q_name, here, spark, tmp_path):
    """A zone of the session that is not UTC: tests have Tokyo's."""
    for transform in (None, as_it_is):
        qm.put_many(q_name, [b"x"] * COUNT)
        put_ms = {message.msg_id: message.put_ms for message in browsed(qm, q_name)}
        drain(spark, table=tmp_path / "table", transform=transform, options={"columns": "msg_id,put_time"}, **here)
        for row in pq.read_table(tmp_path / "table").to_pylist():
            if row["msg_id"] in put_ms:
                assert row["put_time"].replace(tzinfo=UTC).timestamp() * 1000 == put_ms[row["msg_id"]]
    assert len({str(pq.read_schema(file).field("put_time").type) for file in files_of(tmp_path / "table")}) == 1


def test_spark_writes_where_the_table_has_columns_of_other_case(qm, q_name, here, spark, tmp_path):
    for transform in (lambda frame: frame.withColumnRenamed("data", "DATA"), None):
        qm.put_many(q_name, [b"x"] * COUNT)
        drain(spark, table=tmp_path / "table", transform=transform, **here)
    assert writers(tmp_path / "table") == {"parquet-mr"}


@pytest.mark.parametrize(
    ("name", "value", "writer", "expected"),
    [
        ("spark.sql.parquet.compression.codec", "zstd", "parquet-cpp-arrow", ("ZSTD", "INT96")),
        ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS", "parquet-cpp-arrow", ("SNAPPY", "INT64")),
        ("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MILLIS", "parquet-mr", ("SNAPPY", "INT64")),
        ("spark.sql.parquet.compression.codec", "lz4_raw", "parquet-mr", ("LZ4", "INT96")),
        ("spark.sql.files.maxRecordsPerFile", "500", "parquet-mr", ("SNAPPY", "INT96")),
        ("parquet.block.size", "1000000", "parquet-mr", ("SNAPPY", "INT96")),
    ],
)
def test_settings_of_spark_s_writer_hold(qm, q_name, here, spark, tmp_path, name, value, writer, expected):
    qm.put_many(q_name, [b"x"] * COUNT)
    spark.conf.set(name, value)
    try:
        drain(spark, table=tmp_path / "table", options={"columns": "put_time"}, **here)
    finally:
        spark.conf.unset(name)
    assert writers(tmp_path / "table") == {writer}
    column = pq.read_metadata(files_of(tmp_path / "table")[0]).row_group(0).column(0)
    assert (column.compression, column.physical_type) == expected


def test_spark_writes_a_table_that_hadoop_s_settings_encrypt(spark):
    settings = spark._sc._jsc.hadoopConfiguration()
    assert parquet_form(spark) is not None
    settings.set("parquet.crypto.factory.class", "a.Factory")
    try:
        assert parquet_form(spark) is None
    finally:
        settings.unset("parquet.crypto.factory.class")


def test_the_value_of_a_setting_hides_no_other_setting(spark):
    for value, takes in (("a, b", True), ("a=b, c=d", True), ("", True), ("x, parquet.block.size=1", False)):
        spark.conf.set("trigmon.test.before", value)
        try:
            assert (parquet_form(spark) is not None) is takes
            for other in ("spark.sql.parquet.writer.any", "parquet.bloom.filter.enabled#a,b"):
                spark.conf.set(other, "true")
                assert parquet_form(spark) is None
                spark.conf.unset(other)
        finally:
            spark.conf.unset("trigmon.test.before")


def test_a_small_batch_does_not_wait_for_the_settings(qm, q_name, here, spark, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(file_sink, "parquet_form", asked.append)
    for count, times in ((10, 0), (COUNT, 1), (2 * COUNT, 2)):
        qm.put_many(q_name, [b"x"] * count)
        drain(spark, table=tmp_path / "table", max_rows=COUNT, **here)
        assert len(asked) == times


def test_when_tasks_could_not_write_spark_writes_that_batch_and_all_that_follow(
    qm, q_name, here, spark, tmp_path, monkeypatch
):
    calls = []

    def fails(self, spark, directory):
        calls.append(directory)
        raise RuntimeError("no way")

    monkeypatch.setattr(TaskFiles, "write", fails)
    qm.put_many(q_name, [b"x"] * 2 * COUNT)
    done = drain(spark, table=tmp_path / "table", max_rows=COUNT, **here)
    assert (done.rows, done.rejected, depth(qm, q_name)) == (2 * COUNT, [], 0)
    assert writers(tmp_path / "table") == {"parquet-mr"}
    assert len(calls) == 1


def test_tasks_end_when_all_work_of_the_session_is_interrupted(spark):
    class Waits:
        def file(self, number):
            time.sleep(600)

    ends = []

    def write():
        with pytest.raises(Exception, match="cancelled") as caught:
            _names(spark, Waits(), 2)
        ends.append(caught.value)

    thread = Thread(target=write, daemon=True)
    thread.start()
    until(lambda: spark.sparkContext.statusTracker().getActiveJobsIds())
    spark.interruptAll()
    thread.join(60)
    assert len(ends) == 1


class TestAttempts:
    """A task that is repeated, or still writes when the batch is there, adds nothing to it."""

    def test_files_that_no_task_has_named_are_not_of_the_batch(self, spark, tmp_path):
        table = tmp_path / "table"

        class Files:
            schema = spark.range(0).schema

            @staticmethod
            def write(spark, directory):
                for name in ("first.parquet", "again.parquet"):
                    pq.write_table(pa.table({"id": pa.array([1], pa.int64())}), directory / name)
                return [directory / "again.parquet"]

        assert write_task_files(spark, Files, table, "b1")
        assert [file.name for file in batch_of(table, "b1").iterdir()] == ["again.parquet"]
        assert write_task_files(spark, Files, table, "b1") is False
        assert list((tmp_path / "table.staging").iterdir()) == []
