"""What a drain refuses before it takes a message: schemas, options and places by which messages would be lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.types import LongType, StructType

from tests.daemons import define
from tests.spark.conftest import depth
from trigmon.mq.calls import Alter
from trigmon.mq.errors import UnknownObjectName
from trigmon.spark import FileSink, SinkError, drain
from trigmon.spark.arrow_rows import UnfitRowError
from trigmon.spark.options import OptionError
from trigmon.spark.sinks.delta_table import DeltaSink
from trigmon.spark.sinks.object_table import ObjectSink

pytestmark = pytest.mark.spark

JSON = {"format": "json"}
PERMISSIVE = JSON | {"mode": "PERMISSIVE"}
REFUSED = {
    "json without a schema": (OptionError, JSON, None, "format json needs a schema: schema="),
    "json with a schema of nothing": (OptionError, JSON, "", "format json needs a schema"),
    "an unknown type": (UnfitRowError, JSON, "id bignt", 'BIGNT.* It is written as "id bigint, name string"'),
    "no DDL": (UnfitRowError, JSON, "id bigint name string", "Syntax error .* It is written as"),
    "a type alone": (UnfitRowError, JSON, "bigint", "bigint is a type without a column's name"),
    "a column twice": (UnfitRowError, JSON, "id bigint, id int", "column id is named 2 times"),
    "a column twice within one": (UnfitRowError, JSON, "s struct<a: int, a: int>", "column a is named 2 times"),
    "a column of nothing": (UnfitRowError, JSON, "id void", "column id has a type that format json does not read"),
    "no column for the text": (
        UnfitRowError,
        PERMISSIVE,
        "id bigint",
        "add `_corrupt_record string`, or say",
    ),
    "no column of that name for the text": (
        UnfitRowError,
        PERMISSIVE | {"columnNameOfCorruptRecord": "bad"},
        "id bigint, _corrupt_record string",
        "add `bad string`",
    ),
    "a number for the text": (UnfitRowError, PERMISSIVE, "id int, _corrupt_record int", "string, not int32"),
    "a text that must be there": (
        UnfitRowError,
        JSON,
        "id int, _corrupt_record string NOT NULL",
        "_corrupt_record is NOT NULL, and is null for each message that is JSON",
    ),
    "a field of the message for the text": (
        UnfitRowError,
        PERMISSIVE | {"columnNameOfCorruptRecord": "mq_format"},
        "id int, mq_format string",
        "mq_format is the name of a field of the message",
    ),
    "a field of the message that there is not": (UnfitRowError, JSON, "id int, mq_prioritty int", "is priority meant"),
    "columns of JSON": (OptionError, JSON | {"columns": "data"}, "id int", "columns is for format raw"),
    "columns beside a schema": (
        OptionError,
        {"columns": "data"},
        "data binary",
        "columns means nothing beside a schema",
    ),
    "a column that is named twice": (UnfitRowError, {"columns": "data,data"}, None, "column data is named 2 times"),
    "a column of a raw schema twice": (UnfitRowError, {}, "data binary, data binary", "column data is named 2 times"),
    "another queue": (OptionError, {"queue": "OTHER"}, None, "option queue: of a drain that is the argument queue"),
    "a reservation": (OptionError, {"Reservation": "9"}, None, "option Reservation: of a drain that is its own"),
    "rows of a batch": (OptionError, {"maxRows": "9"}, None, "that is the argument max_rows"),
    "a column that there is not": (UnfitRowError, {"columns": "dta"}, None, "no column 'dta': is data meant"),
}


@pytest.fixture
def aside(qm, q_name):
    """The backout queue of the test's queue, which one backout is enough for."""
    define(qm, name := f"{q_name}.ASIDE", def_persistence="persistent")
    qm.call(Alter(object_type="QLOCAL", name=q_name, attributes={"backout_requeue_q_name": name}))
    qm.call(Alter(object_type="QLOCAL", name=q_name, attributes={"backout_threshold": 1}))
    return name


@pytest.fixture
def untouched(qm, q_name, aside):
    """Puts three messages, and says whether all are there as they were put."""
    qm.put_many(q_name, [b'{"id": 1}'] * 3)

    def untouched():
        with qm.open(q_name, "browse") as queue:
            found = [message.backout_count for message in queue.browse()]
        return (found, depth(qm, aside), qm.reservations(q_name)) == ([0, 0, 0], 0, [])

    return untouched


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("by", ["table", "each", "stream"])
def test_what_no_message_is_read_by_is_refused(here, spark, tmp_path, untouched, case, by):
    raised, options, schema, why = REFUSED[case]
    ways = {
        "table": {"table": tmp_path / "t"},
        "each": {"each": lambda frame, batch: frame.collect()},
        "stream": {"stream": lambda rows: rows.writeStream.format("noop"), "checkpoint": tmp_path / "c"},
    }
    with pytest.raises(raised, match=why):
        drain(spark, options=options, schema=schema, **ways[by], **here)
    assert untouched()
    assert list(tmp_path.iterdir()) == []


def test_a_stream_of_ones_own_that_would_lose_texts_is_refused(here, spark, tmp_path, untouched):
    reader = spark.readStream.format("trigmon").options(**here, **PERMISSIVE).schema("id bigint")
    writer = reader.load().writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    with pytest.raises(StreamingQueryException, match="add `_corrupt_record string`"):
        writer.trigger(availableNow=True).start().awaitTermination(600)
    assert untouched()


@pytest.mark.parametrize("now", [{"availableNow": True}, {"processingTime": "0 seconds"}], ids=["at once", "on and on"])
def test_a_stream_of_ones_own_with_a_schema_says_which_option_there_is_not(here, spark, tmp_path, untouched, now):
    """Spark 4.3 says UnboundLocalError for what is raised while the reader is made."""
    reader = spark.readStream.format("trigmon").options(**here, **JSON, maxRow="1").schema("id bigint")
    writer = reader.load().writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    with pytest.raises(StreamingQueryException, match="is maxRows meant"):
        writer.trigger(**now).start().awaitTermination(600)
    assert untouched()


def test_a_schema_may_be_one_of_spark_s(here, spark, untouched):
    rows = []
    schema = StructType().add("id", LongType())
    drain(spark, lambda frame, batch: rows.extend(frame.collect()), options=JSON, schema=schema, **here)
    assert [row.id for row in rows] == [1, 1, 1]


PLACES = {
    "a file": ("file", r"file is no directory; name another path"),
    "below a file": ("file/t", r"file is no directory"),
    "far below a file": ("file/a/b/t", r"file is no directory"),
    "a name that is too long": ("x" * 300, "File name too long"),
    "a link to nothing": ("gone", "gone is no directory"),
    "a loop of links": ("loop/t", "[Ll]oop"),
}


@pytest.mark.parametrize("place", PLACES)
def test_a_place_that_can_be_no_table_is_refused_by_its_name(here, spark, tmp_path, untouched, place):
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "gone").symlink_to("nowhere")
    path, why = PLACES[place]
    with pytest.raises(SinkError, match=rf"table {tmp_path}/.*{why}"):
        drain(spark, table=tmp_path / path, **here)
    assert untouched()
    assert sorted(found.name for found in tmp_path.iterdir()) == ["file", "gone", "loop"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written_to_is_refused(here, spark, tmp_path, untouched):
    tmp_path.chmod(0o500)
    with pytest.raises(SinkError, match="this user may not write in"):
        drain(spark, table=tmp_path / "t", **here)
    tmp_path.chmod(0o700)
    assert untouched()


@pytest.mark.parametrize("sink", [FileSink, DeltaSink, ObjectSink])
@pytest.mark.parametrize("rows", [3, 1500], ids=["small", "large"])
def test_a_place_that_goes_meanwhile_is_the_fault_of_no_message(qm, q_name, here, aside, spark, tmp_path, sink, rows):
    """What the check before cannot see: the directory becomes a file when the first batch is there."""
    above = tmp_path / "above"
    above.mkdir()
    qm.put_many(q_name, [b"x"] * rows)
    to = sink(str(above / "t"))
    checked = to.check

    def check_then_replace():
        checked()
        above.rmdir()
        above.write_text("a file")

    to.check = check_then_replace
    for _ in range(2):
        with pytest.raises(SinkError, match=str(above)):
            drain(spark, to=to, **here)
        above.unlink()
        above.mkdir()
    assert (depth(qm, q_name), depth(qm, aside)) == (rows, 0)
    with qm.open(q_name, "browse") as queue:
        assert {message.backout_count for message in queue.browse()} == {0}


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="it is Linux's")
def test_a_file_system_that_makes_no_directory_is_the_fault_of_no_message(here, spark, untouched):
    for _ in range(2):
        with pytest.raises(SinkError, match=r"table /proc/nope/t cannot be written"):
            drain(spark, table="/proc/nope/t", **here)
    assert untouched()


def test_the_root_is_no_table(here, spark, untouched):
    with pytest.raises(SinkError, match="table / cannot be written"):
        drain(spark, table="/", **here)
    assert untouched()


PLANS = {
    "an unknown format": ({"form": "parqet"}, None, r"table .*\[DATA_SOURCE_NOT_FOUND\].*parqet"),
    "no such codec": ({"options": {"compression": "foo"}}, None, r"table .*\[CODEC_NOT_AVAILABLE"),
    "a map in CSV": ({"form": "csv"}, lambda rows: rows.selectExpr("map('a', 'b') AS m"), r"table .*CSV.*`m`"),
    "nothing beside partitions": (
        {"partition_by": ["priority"]},
        lambda rows: rows.select("priority"),
        r"table .*\[ALL_PARTITION_COLUMNS_NOT_ALLOWED\]",
    ),
}


@pytest.mark.parametrize("case", PLANS)
def test_what_spark_cannot_plan_is_the_fault_of_no_message(here, spark, tmp_path, untouched, case):
    how, transform, why = PLANS[case]
    for _ in range(2):
        with pytest.raises(SinkError, match=why):
            drain(spark, to=FileSink(tmp_path / "t", **how), transform=transform, **here)
    assert untouched()


COLUMNS = [
    "interval '1' day AS i",
    "time'10:00:00' AS i",
    "named_struct('a', 1, 'A', 2) AS i",
    "interval '1' year AS i",
]


@pytest.mark.parametrize("sink", [DeltaSink, ObjectSink])
@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_that_a_sink_does_not_have_is_the_fault_of_no_message(here, spark, tmp_path, untouched, sink, column):
    def transform(rows):
        return rows.selectExpr("cast(data AS string) AS data", column)

    for _ in range(2):
        try:
            drain(spark, to=sink(str(tmp_path / "t")), transform=transform, **here)
        except SinkError as refused:
            assert "\n" not in str(refused)
        else:
            return  # the sink has such columns
    assert untouched()


def test_a_path_with_a_nul_is_no_table(here, spark, untouched):
    with pytest.raises(SinkError, match="cannot be written: embedded null"):
        drain(spark, table="/tmp/a\0b", **here)
    assert untouched()


@pytest.mark.parametrize("sink", [FileSink, DeltaSink, ObjectSink])
def test_names_that_differ_in_case_are_the_fault_of_no_message(here, spark, tmp_path, untouched, sink):
    with pytest.raises(SinkError, match=r"(?i)\bid\b"):
        drain(spark, to=sink(str(tmp_path / "t")), options=JSON, schema="id int, ID int", **here)
    assert untouched()
    rows = []
    drain(spark, lambda frame, _: rows.extend(frame.collect()), options=JSON, schema="id int, ID int", **here)
    assert [tuple(row) for row in rows] == [(1, None)] * 3


def test_a_message_by_which_the_job_s_own_code_cannot_be_planned_goes_aside(qm, q_name, here, spark, tmp_path, aside):
    """Whatever Spark calls the error: what a frame is made of may follow from what a message says."""
    qm.put_many(q_name, [b"priority", b"no_such_column", b"expiry"])

    def transform(rows):
        for row in rows.select("data").collect():
            rows.select(bytes(row.data).decode())
        return rows.select("data")

    done = drain(spark, table=tmp_path / "t", transform=transform, **here)
    assert (done.rows, len(done.rejected), depth(qm, aside), depth(qm, q_name)) == (2, 1, 1, 0)


def test_an_error_that_quotes_java_s_words_is_not_taken_for_the_sink_s(here, spark, untouched):
    def each(frame, batch):
        raise ValueError("x\n: org.apache.spark.SparkClassNotFoundException: y")

    with pytest.raises(ValueError, match="SparkClassNotFound"):
        drain(spark, each, **here)


def test_a_field_of_the_message_is_read_in_any_case(here, spark, untouched):
    rows = []
    schema = "id int, MQ_PRIORITY int, mq_Format string"
    drain(spark, lambda frame, _: rows.extend(frame.collect()), options=JSON, schema=schema, **here)
    assert [tuple(row) for row in rows] == [(1, 0, "")] * 3


@pytest.mark.parametrize("by", ["drain", "read", "write"])
def test_a_queue_that_there_is_not_comes_with_the_command_that_makes_it(here, spark, by):
    where = {"address": here["qmgr"]}
    ways = {
        "drain": lambda: drain(spark, print, queue="no.queue", qmgr=here["qmgr"]),
        "read": lambda: spark.read.format("trigmon").options(**where).load("no.queue"),
        "write": lambda: (
            spark.range(1).selectExpr("'x' AS data").write.format("trigmon").options(**where).mode("append")
            .save("no.queue")
        ),
    }  # fmt: skip
    with pytest.raises(Exception, match=r"DEFINE QLOCAL\('no.queue'\) makes it") as refused:
        ways[by]()
    assert by != "drain" or isinstance(refused.value, UnknownObjectName)


@pytest.mark.parametrize(
    ("schema", "options"),
    [("price bigint", {}), (StructType().add("price", LongType()), {}), ("price bigint", {"format": "raw"})],
)
def test_a_schema_of_json_without_its_format_is_refused_with_the_option(
    here, spark, tmp_path, untouched, schema, options
):
    with pytest.raises(UnfitRowError, match=r"no column 'price'.*; a schema of JSON needs options={'format': 'json'}"):
        drain(spark, table=tmp_path / "t", schema=schema, options=options, **here)
    assert untouched()


@pytest.mark.parametrize("rows", [1, 1500])
def test_a_table_is_not_made_a_delta_table_nor_the_other_way_round(qm, q_name, here, spark, tmp_path, aside, rows):
    files, delta = tmp_path / "files", tmp_path / "delta"
    for where in ({"table": files}, {"to": DeltaSink(delta)}):
        qm.put_many(q_name, [b"x"] * rows)
        drain(spark, **where, **here)
    qm.put_many(q_name, [b"x"] * rows)
    with pytest.raises(SinkError, match=rf"{files} is a table of Parquet files: name another directory"):
        drain(spark, to=DeltaSink(files), **here)
    with pytest.raises(SinkError, match=rf"{delta} is a Delta table: write to it by to=DeltaSink"):
        drain(spark, table=delta, **here)
    assert (depth(qm, q_name), depth(qm, aside)) == (rows, 0)
    drain(spark, table=files, **here)
    assert spark.read.parquet(str(files)).count() == 2 * rows
    (files / "_delta_log").mkdir()
    (files / "_delta_log" / "00000000000000000000.json").touch()  # it was made a Delta table since
    qm.put_many(q_name, [b"x"])
    assert drain(spark, table=files, **here).rows == 1


@pytest.mark.parametrize("of", [lambda spark: type(spark).builder, type, lambda spark: spark.sparkContext])
@pytest.mark.parametrize("by", [{"table": "t"}, {"each": print}])
def test_what_is_no_session_is_the_fault_of_no_message(here, spark, untouched, of, by):
    with pytest.raises(TypeError, match="the first argument is a Spark session"):
        drain(of(spark), **by, **here)
    assert untouched()


def test_a_transform_that_returns_no_frame_is_the_fault_of_no_message(here, spark, tmp_path, untouched):
    with pytest.raises(SinkError, match="transform returned None: it returns the frame"):
        drain(spark, table=tmp_path / "t", transform=lambda rows: None, **here)
    assert untouched()


def test_a_stream_s_function_returns_the_writer(here, spark, tmp_path, untouched):
    def started(rows):
        return rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "own")).start()

    with pytest.raises(TypeError, match="stream returned None: it returns the writer"):
        drain(spark, stream=lambda rows: None, checkpoint=tmp_path / "c", **here)
    assert untouched()
    with pytest.raises(TypeError, match="stream returned a query that was started: it returns the writer"):
        drain(spark, stream=started, checkpoint=tmp_path / "c", **here)
    assert spark.streams.active == []
