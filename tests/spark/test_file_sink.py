"""A table of files as a sink: any format that Spark writes, a directory for each value, each batch once."""

from __future__ import annotations

import pytest

from tests.spark.conftest import depth
from trigmon.spark import FileSink, SinkError, drain
from trigmon.spark.sinks.sink import BatchName, BatchRefusedError

pytestmark = pytest.mark.spark
BATCH = BatchName("QM/Q/JOB", 7, "b7")


def as_text(rows):
    return rows.selectExpr("cast(data as string) as data", "priority")


def test_rows_are_written_in_the_form_and_by_the_options_below_a_directory_for_each_value(
    qm, q_name, here, spark, tmp_path
):
    for priority in (3, 3, 5):
        qm.put(q_name, f"of {priority}", priority=priority)
    sink = FileSink(tmp_path / "t", form="CSV", partition_by="priority", options={"header": "true", "sep": ";"})
    assert drain(spark, to=sink, transform=as_text, **here).rows == 3
    (batch,) = (tmp_path / "t").glob("batch=*")
    found = {file.parent.name: file.read_text().splitlines() for file in batch.glob("*/*.csv")}
    assert found == {"priority=3": ["data", "of 3", "of 3"], "priority=5": ["data", "of 5"]}


def test_a_batch_is_there_once_and_one_that_was_refused_never(spark, tmp_path):
    sink = FileSink(tmp_path / "t", form="json")
    assert [sink.write(spark.range(3), BATCH) for _ in range(2)] == [True, False]
    assert not sink.refuse(BATCH)
    other = BATCH._replace(id="b8")
    assert sink.refuse(other)
    with pytest.raises(BatchRefusedError):
        sink.write(spark.range(3), other)
    assert sorted(row.id for row in spark.read.json(str(tmp_path / "t")).collect()) == [0, 1, 2]


@pytest.mark.parametrize(
    ("table", "form", "expected"),
    [
        ("s3://bucket/orders", "parquet", "s3://bucket/orders is a URL, .*: see DeltaSink, ObjectSink"),
        ("my_s3://bucket/orders", "parquet", "my_s3://bucket/orders is a URL"),
        ("file:/data/orders", "json", "file:/data/orders is a URL"),
        ("t", "json", "is a table of Parquet files: write json to another table"),
    ],
)
def test_what_is_no_place_for_such_files_is_refused_before_anything_is_taken(
    qm, q_name, here, spark, tmp_path, monkeypatch, table, form, expected
):
    monkeypatch.chdir(tmp_path)
    FileSink("t").write(spark.range(1), BATCH)
    qm.put(q_name, "{}")
    with pytest.raises(SinkError, match=expected):
        drain(spark, to=FileSink(table, form=form), **here)
    assert (depth(qm, q_name), qm.reservations(q_name)) == (1, [])
    assert {path.name for path in tmp_path.iterdir()} == {"t", "t.staging"}


def test_a_column_to_partition_by_that_is_not_there_is_an_error_of_the_sink(spark, tmp_path):
    with pytest.raises(SinkError, match="is partitioned by day: there is no such column; there are id"):
        FileSink(tmp_path / "t", form="json", partition_by="day").write(spark.range(1), BATCH)


def test_only_parquet_has_a_schema_to_merge_into(tmp_path):
    with pytest.raises(ValueError, match="merge_schema is for Parquet: of json no schema is kept"):
        FileSink(tmp_path / "t", form="json", merge_schema=True)


def test_a_write_of_ones_own_has_every_batch_however_large(qm, q_name, here, spark, tmp_path):
    class Counted(FileSink):
        rows = 0

        def write(self, frame, batch):
            self.rows += frame.count()
            return super().write(frame, batch)

    qm.put_many(q_name, [b"x"] * 1500)
    sink = Counted(tmp_path / "t")
    assert drain(spark, to=sink, **here).rows == sink.rows == 1500
