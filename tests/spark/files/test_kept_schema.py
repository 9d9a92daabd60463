"""The schema of a table of Parquet files: kept beside them, and each batch held to it."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet
import pytest
from pyspark.sql.types import StructType

from tests.spark.conftest import depth
from trigmon.spark import drain, write_batch
from trigmon.spark.file_table import staging_of
from trigmon.spark.files.kept_schema import FILE, Kept, fit, kept, write
from trigmon.spark.sinks.sink import SinkError

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning", "default::FutureWarning"),
]


def schema(ddl):
    return StructType.fromDDL(ddl)


def merged(there, given, *, merges=False, by=(), of=()):
    return fit(schema(given), by, Kept(schema(there), tuple(of)), "orders", merges=merges)


@pytest.mark.usefixtures("spark")  # it parses the DDL
class TestRules:
    @pytest.mark.parametrize(
        ("there", "given", "expected"),
        [
            ("id bigint", "id string", "column id of orders is bigint, and the batch has string: cast it"),
            ("id bigint", "id int", "column id of orders is bigint, and the batch has int: cast it"),
            ("id int", "id bigint", "column id of orders is int, and the batch has bigint: cast it"),
            ("id bigint", "ID string", "column id of orders is bigint, and the batch has string: cast it"),
            ("p decimal(10,2)", "p decimal(12,2)", r"column p of orders is decimal\(10,2\), and .* decimal\(12,2\)"),
            ("at timestamp", "at timestamp_ntz", "column at of orders is timestamp, and the batch has timestamp_ntz"),
            ("a struct<b: struct<c: int>>", "a struct<b: struct<c: string>>", r"column a\.b\.c of orders is int"),
            ("a array<struct<c: int>>", "a array<struct<c: date>>", r"column a\.element\.c of orders is int"),
            ("a map<string, int>", "a map<string, date>", r"column a\.value of orders is int, and the batch has date"),
            ("a map<string, int>", "a map<int, int>", r"column a\.key of orders is string, and the batch has int"),
            ("a int", "a struct<b: int>", r"column a of orders is int, and the batch has struct<b:int>"),
            ("a array<int>", "a int", r"column a of orders is array<int>, and the batch has int"),
        ],
    )
    def test_a_change_of_type_is_refused_with_both_types_even_where_columns_are_merged(self, there, given, expected):
        with pytest.raises(SinkError, match=expected):
            merged(there, given, merges=True)

    @pytest.mark.parametrize(
        ("there", "given"),
        [
            ("a int, b string", "b string, a int"),
            ("a int not null", "a int"),
            ("a int", "a int not null"),
            ("a array<int>, m map<string, int>", "m map<string, int>, a array<int>"),
            ("a int, b string", "a int"),
            ("a struct<b: int, c: int>", "a struct<c: int>"),
            ("a struct<b: int, c: int>", "a struct<c: int, b: int>"),
            ("a int COMMENT 'x'", "a int COMMENT 'y'"),
        ],
    )
    def test_order_nulls_comments_and_missing_columns_do_not_count(self, there, given):
        assert merged(there, given).kept.schema.fieldNames() == schema(there).fieldNames()

    def test_new_columns_are_added_behind_the_others_where_that_is_wanted(self):
        given = "new date, a struct<c: int, b: int>"
        with pytest.raises(SinkError, match=r"^orders has no column new, a\.c: merge_schema adds it, or drop it$"):
            merged("a struct<b: int>", given)
        found = merged("a struct<b: int>", given, merges=True).kept.schema
        assert found.simpleString() == "struct<a:struct<b:int,c:int>,new:date>"

    def test_a_column_is_written_by_the_table_s_name_whatever_its_case(self):
        assert merged("orderId bigint, day date", "orderid bigint, DAY date", by=["DAY"], of=["day"]).renamed == {
            "orderid": "orderId",
            "DAY": "day",
        }

    def test_names_that_no_reader_could_tell_apart_are_refused(self):
        with pytest.raises(SinkError, match="two columns are named id, apart from their case"):
            fit(schema("id int, ID int"), (), None, "orders", merges=True)
        with pytest.raises(SinkError, match="column batch: the directories of orders are a column of that name"):
            fit(schema("batch int, a int"), (), None, "orders", merges=True)

    def test_a_table_is_partitioned_by_the_same_columns_for_ever(self):
        with pytest.raises(SinkError, match="orders is partitioned by day, not by hour: name the same"):
            merged("day date, hour int", "day date, hour int", by=["hour"], of=["day"])
        with pytest.raises(SinkError, match="orders is partitioned by nothing, not by hour"):
            merged("day date, hour int", "day date, hour int", by=["hour"])
        assert merged("day date, a int", "day date, a int", of=["day"]).kept.partition_by == ("day",)

    def test_what_is_kept_is_read_as_it_was_written(self, tmp_path):
        known = Kept(
            schema("a bigint, p decimal(10,2), s struct<x: array<timestamp>>, m map<string, date>, i interval month"),
            ("p",),
        )
        write(known, tmp_path / FILE)
        assert kept(tmp_path) == known
        assert pyarrow.parquet.read_schema(tmp_path / FILE).names == ["a", "p", "s", "m"]


def rows_of(spark, table):
    return sorted(map(tuple, spark.read.parquet(str(table)).drop("batch").collect()), key=str)


class TestTable:
    def test_a_drain_whose_batch_changes_a_type_ends_with_the_error_and_loses_nothing(
        self, qm, q_name, here, spark, tmp_path
    ):
        table = tmp_path / "orders"
        qm.put_many(q_name, [b"%d" % n for n in range(5)])
        drain(
            spark,
            table=table,
            transform=lambda rows: rows.selectExpr("cast(cast(data as string) as bigint) id"),
            **here,
        )
        qm.put_many(q_name, [b"%d" % n for n in range(5, 9)])
        expected = rf"column id of {table} is bigint, and the batch has string: cast it"
        with pytest.raises(SinkError, match=expected):
            drain(spark, table=table, transform=lambda rows: rows.selectExpr("cast(data as string) id"), **here)
        assert (depth(qm, q_name), qm.reservations(q_name), list(staging_of(table).iterdir())) == (4, [], [])
        with qm.open(q_name, "browse") as queue:
            assert queue.get(browse_first=True).backout_count == 0
        assert rows_of(spark, table) == [(n,) for n in range(5)]
        drain(
            spark,
            table=table,
            transform=lambda rows: rows.selectExpr("cast(cast(data as string) as bigint) id"),
            **here,
        )
        assert rows_of(spark, table) == [(n,) for n in range(9)]

    def test_a_new_column_comes_by_merge_schema_and_plain_readers_have_it(self, qm, q_name, here, spark, tmp_path):
        table = tmp_path / "orders"
        qm.put(q_name, "1")
        drain(spark, table=table, transform=lambda rows: rows.selectExpr("cast(data as string) id"), **here)
        qm.put(q_name, "2")
        wider = {"transform": lambda rows: rows.selectExpr("'x' as new", "cast(data as string) ID"), **here}
        with pytest.raises(SinkError, match=f"{table} has no column new: merge_schema adds it, or drop it"):
            drain(spark, table=table, **wider)
        drain(spark, table=table, merge_schema=True, **wider)
        assert spark.read.parquet(str(table)).columns == ["id", "new", "batch"]
        assert rows_of(spark, table) == [("1", None), ("2", "x")]
        assert sorted(pyarrow.parquet.read_table(table, columns=["id"])["id"].to_pylist()) == ["1", "2"]

    def test_a_table_without_the_file_gets_it_with_the_next_batch(self, spark, tmp_path):
        table = tmp_path / "orders"
        write_batch(spark.range(2).selectExpr("id", "id % 2 as day"), table, "b1", partition_by=["day"])
        write_batch(spark.range(2).selectExpr("id", "id day", "'x' n"), table, "b2", merge_schema=True)
        (table / FILE).unlink()
        with pytest.raises(SinkError, match=r"column id of .* is bigint, and the batch has string"):
            write_batch(spark.range(2).selectExpr("string(id) id", "id day"), table, "b3")
        with pytest.raises(SinkError, match="is partitioned by day, not by n"):
            write_batch(spark.range(2).selectExpr("id", "id day", "'x' n"), table, "b3", partition_by=["n"])
        assert not (table / FILE).exists()
        assert write_batch(spark.range(1).selectExpr("id", "id day"), table, "b3")
        assert kept(table) == Kept(schema("id bigint, n string, day bigint"), ("day",))
        assert len(list(table.glob("batch=*/day=0/*.parquet"))) == 3
        assert spark.read.parquet(str(table)).count() == 5

    def test_a_table_that_cannot_be_read_any_more_is_reported_with_the_batches_that_disagree(self, spark, tmp_path):
        table = tmp_path / "orders"
        write_batch(spark.range(2), table, "b1")
        write_batch(spark.range(2).selectExpr("string(id) id"), tmp_path / "other", "b2")
        shutil.move(tmp_path / "other" / "batch=b2", table)
        (table / FILE).unlink()
        with pytest.raises(SinkError, match=r"column id of .*orders, by batch=b2, is bigint, and the batch has string"):
            write_batch(spark.range(2), table, "b3")

    def test_of_two_drains_that_add_one_column_with_two_types_the_second_is_refused(self, spark, tmp_path):
        table = tmp_path / "orders"
        write_batch(spark.range(2), table, "b1")
        frames = {"b2": spark.range(2).selectExpr("id", "'x' n"), "b3": spark.range(2).selectExpr("id", "1 n")}

        def written(name):
            try:
                return write_batch(frames[name], table, name, merge_schema=True)
            except SinkError as error:
                return str(error)

        with ThreadPoolExecutor(2) as threads:
            found = list(threads.map(written, frames))
        assert found.count(True) == 1
        assert any("column n of" in str(one) for one in found)
        assert spark.read.parquet(str(table)).count() == 4
        assert list(staging_of(table).iterdir()) == []

    def test_a_kill_between_the_schema_and_the_batch_leaves_a_table_that_reads_right(
        self, spark, tmp_path, monkeypatch
    ):
        table = tmp_path / "orders"
        write_batch(spark.range(2), table, "b1")

        def killed(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr("trigmon.spark.file_table._move", killed)
            write_batch(spark.range(2).selectExpr("id", "'x' n"), table, "b2", merge_schema=True)
        assert rows_of(spark, table) == [(0, None), (1, None)]
        assert write_batch(spark.range(2).selectExpr("id", "'x' n"), table, "b2", merge_schema=True)
        assert spark.read.parquet(str(table)).count() == 4
