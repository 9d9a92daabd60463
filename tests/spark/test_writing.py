"""Writes to a queue by a real Spark: all or nothing, once, and nothing of the attempts that Spark did not want."""

from __future__ import annotations

import os
import time

import msgspec
import pytest

from tests.daemons import define
from tests.spark.conftest import depth
from trigmon.mq.calls import Alter
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.spark import options, writer

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning", "default::FutureWarning"),
]


@pytest.fixture
def write(shared_daemon, tmp_path):
    def write(frame, q_name, mode="append", **options):
        reported = {"address": shared_daemon.address, "staging": str(tmp_path / "staging")} | options
        frame.write.format("trigmon").mode(mode).options(**reported).save(q_name)

    return write


def messages(qm, q_name):
    with qm.open(q_name, "browse") as q:
        return list(q.browse())


def test_rows_become_messages_in_their_order_with_the_descriptor_that_the_columns_say(qm, q_name, spark, write):
    frame = spark.createDataFrame(
        [(b"one", 7, 1, b"c1", "ANSWERS"), (b"two", None, 0, None, None)],
        "data binary, priority int, persistence int, correl_id binary, reply_to_q string",
    ).coalesce(1)
    write(frame, q_name)
    first, second = messages(qm, q_name)
    assert (first.data, first.priority, first.persistence, first.reply_to_q) == (b"one", 7, 1, "ANSWERS")
    assert first.correl_id.rstrip(b"\0") == b"c1"
    assert (second.data, second.priority, second.persistence, second.format) == (b"two", 0, 0, "")


def test_text_goes_as_text_and_json_as_an_object_a_row(qm, q_name, spark, write):
    write(spark.createDataFrame([("grün",)], "data string"), q_name)
    frame = spark.sql("select 5L as id, 'x' as name, date'2026-01-02' as day, 3 as mq_priority")
    write(frame, q_name, format="json")
    as_json, text = messages(qm, q_name)
    assert (text.text, text.format, text.coded_char_set_id) == ("grün", "MQSTR", 1208)
    assert (as_json.text, as_json.priority) == ('{"id":5,"name":"x","day":"2026-01-02"}', 3)


def test_many_partitions_and_large_tasks_are_one_unit_of_work(qm, q_name, spark, write, tmp_path):
    frame = spark.range(0, 9000, 1, 3).selectExpr("repeat(cast(id % 10 as string), 4096) as data")
    write(frame, q_name)
    assert depth(qm, q_name) == 9000
    assert list((tmp_path / "staging").iterdir()) == []


def test_more_than_a_unit_may_hold_is_put_not_at_all_and_the_limit_is_reported(qm, q_name, spark, write):
    frame = spark.range(10_001).selectExpr("cast(id as string) as data")
    with pytest.raises(Exception, match=r"10001 messages are one unit of work, .* MAXUMSGS is less"):
        write(frame, q_name)
    assert depth(qm, q_name) == 0


@pytest.mark.parametrize(
    ("row", "options", "expected"),
    [
        ("1 AS data", {}, "column data is int32, and a put takes binary or string: cast it"),
        ("'x' AS data, 'high' AS priority", {}, "column priority is string, and a put takes int"),
        ("1 AS id, parse_json('{}') AS v", {"format": "json"}, "column v has a type that format json does not write"),
        ("1 AS id, X'00' AS mq_data", {"format": "json"}, "a put takes no mq_data with format json"),
        ("1 AS id, 'high' AS mq_priority", {"format": "json"}, "column mq_priority is string, and a put takes int"),
    ],
)
def test_a_column_that_no_put_takes_is_refused_before_the_first_task(qm, q_name, spark, write, row, options, expected):
    counted = spark.sparkContext.accumulator(0)
    frame = spark.range(1).selectExpr(*row.split(", "))
    frame = frame.mapInArrow(lambda batches: (counted.add(1) or batch for batch in batches), frame.schema)
    with pytest.raises(Exception, match=expected):
        write(frame, q_name, **options)
    assert (depth(qm, q_name), counted.value) == (0, 0)


def test_varchar_is_text_where_the_session_keeps_such_types(qm, q_name, spark, write):
    spark.conf.set("spark.sql.preserveCharVarcharTypeInfo", "true")
    try:
        frame = spark.sql("SELECT cast('x' AS varchar(5)) AS data, cast('Q' AS char(1)) AS reply_to_q")
        frame = frame.selectExpr("*", "NULL AS priority")
        assert "varchar(5)" in frame.schema.simpleString()
        write(frame, q_name)
    finally:
        spark.conf.unset("spark.sql.preserveCharVarcharTypeInfo")
    (message,) = messages(qm, q_name)
    assert (message.data, message.reply_to_q) == (b"x", "Q")


def test_what_is_empty_is_written_as_json(qm, q_name, spark, write):
    write(spark.range(1).selectExpr("array() AS a", "NULL AS n", "map('k', NULL) AS mq_headers"), q_name, format="json")
    (message,) = messages(qm, q_name)
    assert message.data.endswith(b'{"a":[]}')


def test_a_type_that_spark_gives_to_no_python_is_one_line(qm, q_name, spark, write):
    with pytest.raises(Exception, match=r"UnfitRowError: .*YearMonthIntervalType.* is not supported") as refused:
        write(spark.range(1).selectExpr("id", "interval 1 year AS i"), q_name, format="json")
    assert "Traceback (most recent call last)" not in str(refused.value)
    assert depth(qm, q_name) == 0


@pytest.mark.parametrize("how", ["append", "stream"])
def test_an_error_of_the_queue_manager_behind_the_tasks_is_one_line(
    qm, q_name, spark, write, shared_daemon, tmp_path, how
):
    qm.call(Alter(object_type="QLOCAL", name=q_name, attributes={"inhibit_put": "inhibited"}))

    def by_stream():
        spark.range(1).selectExpr("cast(id AS string) AS data").write.parquet(str(tmp_path / "rows"))
        rows = spark.readStream.schema("data string").parquet(str(tmp_path / "rows"))
        writer = rows.writeStream.format("trigmon").options(queue=q_name, address=shared_daemon.address)
        writer = writer.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
        writer.start().awaitTermination(600)

    by = by_stream if how == "stream" else lambda: write(spark.range(1).selectExpr("'x' AS data"), q_name)
    with pytest.raises(Exception, match=rf"PutInhibited: .*{q_name}") as refused:
        by()
    assert "Traceback (most recent call last)" not in str(refused.value)


def test_a_job_of_which_one_task_fails_puts_nothing(qm, q_name, spark, write):
    frame = spark.range(0, 100, 1, 4).selectExpr("if(id = 99, raise_error('broken'), cast(id as string)) as data")
    with pytest.raises(Exception, match="broken"):
        write(frame, q_name)
    assert depth(qm, q_name) == 0


def test_attempts_that_were_repeated_or_not_wanted_double_nothing(qm, q_name, tmp_path, spark):
    appending = writer.QueueWriter(options_for(qm, q_name, tmp_path))
    wanted = writer.Staged(0, 1, "", frames(b"wanted"), "")
    lost = writer.stage(str(tmp_path), frames(b"speculative"))
    appending.commit([wanted, None])
    assert [message.data for message in messages(qm, q_name)] == [b"wanted"]
    assert lost.exists(), "an attempt at work elsewhere is not swept while it is young"
    os.utime(lost, (time.time() - writer.STAGED_S - 1,) * 2)
    appending.abort([None])
    assert not lost.exists()


def test_an_abort_behind_a_commit_undoes_nothing(qm, q_name, tmp_path):
    appending = writer.QueueStreamWriter(options_for(qm, q_name, tmp_path))
    batch = [writer.Staged(0, 1, "query", frames(b"one"), "")]
    appending.commit(batch, 0)
    appending.abort(batch, 0)
    assert depth(qm, q_name) == 1


def test_a_stream_s_batch_that_is_committed_again_is_put_once_and_other_queries_are_others(qm, q_name, tmp_path):
    appending = writer.QueueStreamWriter(options_for(qm, q_name, tmp_path))
    for number in (0, 0, 1, 1, 0):
        appending.commit([writer.Staged(0, 1, "query", frames(b"%d" % number), "")], number)
    assert [message.data for message in messages(qm, q_name)] == [b"0", b"1"]
    appending.commit([writer.Staged(0, 1, "another", frames(b"other"), "")], 0)
    assert depth(qm, q_name) == 3
    assert depth(qm, writer.BATCHES_Q) >= 2


def test_a_stream_that_failed_behind_its_commit_has_each_row_on_the_queue_once(
    qm, q_name, spark, shared_daemon, tmp_path
):
    source = tmp_path / "source"
    spark.range(50).selectExpr("cast(id as string) as data").write.parquet(str(source))

    def run():
        stream = spark.readStream.schema("data string").parquet(str(source)).writeStream.format("trigmon")
        stream = stream.options(address=shared_daemon.address, queue=q_name, staging=str(tmp_path / "staging"))
        started = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        started.awaitTermination()

    run()
    assert depth(qm, q_name) == 50
    # The batch is in the queue, and Spark is made to forget that it was committed.
    for file in (tmp_path / "checkpoint" / "commits").iterdir():
        file.unlink()
    run()
    assert depth(qm, q_name) == 50


@pytest.mark.parametrize(
    ("sql", "mode", "expected"),
    [
        ("select 'x' as body", "append", "need a column data"),
        ("select 'x' as data, 5 as backout_count", "append", "a put takes no backout_count"),
        ("select cast(null as string) as data", "append", "a row has no data"),
        ("select 'x' as data", "overwrite", "a queue is never overwritten"),
    ],
)
def test_what_cannot_be_put_is_reported(qm, q_name, spark, write, sql, mode, expected):
    with pytest.raises(Exception, match=expected):
        write(spark.sql(sql), q_name, mode=mode)
    assert depth(qm, q_name) == 0


def test_a_staging_directory_of_another_user_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(PermissionError, match="is another user's"):
        writer.sweep(str(tmp_path))


def frames(body):
    return msgspec.msgpack.encode([writer.Frame(MessageDescriptor(), [body])])


def options_for(qm, q_name, tmp_path):
    return options.read({"queue": q_name, "address": qm._transport.where, "staging": str(tmp_path)})


def test_what_one_stream_reads_another_writes_once_over_two_runs(qm, q_name, spark, shared_daemon, tmp_path):
    """Queue to queue, the transfer that needs no other system at all."""
    to = f"{q_name}.TO"
    define(qm, to, def_persistence="persistent")
    qm.put_many(q_name, [b"%d" % n for n in range(60)])
    here = {"address": shared_daemon.address}
    for _ in range(2):
        stream = spark.readStream.format("trigmon").options(queue=q_name, maxRows=25, columns="data", **here).load()
        written = stream.writeStream.format("trigmon").options(queue=to, staging=str(tmp_path / "staging"), **here)
        written = written.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        written.start().awaitTermination()
    assert sorted(int(message.data) for message in messages(qm, to)) == list(range(60))
    assert depth(qm, q_name) == 0
