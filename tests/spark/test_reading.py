"""Batch reads of a queue by a real Spark: columns, types, formats, and that nothing is taken."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from tests.spark.conftest import depth
from trigmon.mq.enums import MsgFlag
from trigmon.spark import options
from trigmon.spark.arrow_rows import COLUMNS
from trigmon.spark.reader import QueueReader

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("default::ResourceWarning", "default::DeprecationWarning", "default::FutureWarning"),
]


@pytest.fixture
def read(spark, shared_daemon):
    def read(q_name, schema=None, **options):
        reader = spark.read.format("trigmon").options(address=shared_daemon.address, **options)
        return (reader.schema(schema) if schema else reader).load(q_name)

    return read


def test_spark_finds_the_source_by_itself_and_shows_every_column_in_its_type(qm, q_name, read):
    frame = read(q_name)
    assert [(field.name, field.dataType.simpleString()) for field in frame.schema] == [
        (name, kind) for name, (_, kind) in COLUMNS.items()
    ]
    assert frame.collect() == []


def test_a_row_is_the_message_with_its_descriptor(qm, q_name, read):
    receipt = qm.put(
        q_name,
        b"\x00\xffbody",
        priority=7,
        correl_id=b"c",
        expiry_tenths=36_000,
        format="MQSTR",
        reply_to_q="ANSWERS",
        feedback=65_600,
    )
    (row,) = read(q_name).collect()
    assert (bytes(row.data), row.priority, row.format, row.reply_to_q, row.feedback) == (
        b"\x00\xffbody",
        7,
        "MQSTR",
        "ANSWERS",
        65_600,
    )
    assert (bytes(row.msg_id), bytes(row.correl_id), bytes(row.group_id)) == (
        receipt.msg_id,
        receipt.correl_id,
        bytes(24),
    )
    assert (row.persistence, row.backout_count, row.msg_seq_number, row.offset, row.ordinal) == (1, 0, 1, 0, 0)
    assert 35_000 < row.expiry <= 36_000
    put_at = row.put_time.replace(tzinfo=None).astimezone(datetime.UTC)
    assert round(put_at.timestamp() * 1000) == receipt.put_ms
    assert None not in row


def test_an_instant_is_shown_in_the_session_s_time_zone(qm, q_name, read):
    receipt = qm.put(q_name, b"now")
    (row,) = read(q_name).selectExpr("date_format(put_time, 'yyyy-MM-dd HH:mm:ss.SSS') as shown").collect()
    in_tokyo = datetime.datetime.fromtimestamp(receipt.put_ms / 1000, datetime.timezone(datetime.timedelta(hours=9)))
    assert row.shown == in_tokyo.strftime("%Y-%m-%d %H:%M:%S.") + f"{receipt.put_ms % 1000:03}"


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_read_takes_nothing_and_each_action_reads_anew(qm, q_name, read, partitions):
    qm.put_many(q_name, [b"%d" % n for n in range(50)])
    frame = read(q_name, columns="data", partitions=partitions)
    assert (frame.count(), depth(qm, q_name)) == (50, 50)
    qm.put(q_name, b"later")
    assert (frame.count(), depth(qm, q_name)) == (51, 51)


def test_several_partitions_divide_the_queue_in_its_order(qm, q_name, read):
    for priority in (3, 7):
        qm.put_many(q_name, [b"%d %d" % (priority, n) for n in range(200)], priority=priority)
    rows = read(q_name, partitions=4).selectExpr("data", "ordinal", "spark_partition_id() as part").collect()
    assert [bytes(row.data) for row in rows] == [b"%d %d" % (priority, n) for priority in (7, 3) for n in range(200)]
    assert [row.part for row in rows] == [part for part in range(4) for _ in range(100)]
    assert [row.ordinal for row in rows] == [(part << 33) + n for part in range(4) for n in range(100)]


def test_the_number_of_parts_is_at_least_what_min_partitions_says(qm, q_name, read):
    qm.put_many(q_name, [b"x"] * 60)
    assert read(q_name, minPartitions=3).rdd.getNumPartitions() == 3
    assert read(q_name).rdd.getNumPartitions() == 1


def test_a_message_put_or_got_between_the_plan_and_its_read_is_in_one_part_or_in_none(qm, q_name, shared_daemon):
    qm.put_many(q_name, [b"%d" % n for n in range(90)])
    given = options.read({"queue": q_name, "address": shared_daemon.address, "partitions": "3"})
    reader = QueueReader(given, pa.schema([("data", COLUMNS["data"][0])]))
    parts = reader.partitions()
    qm.put(q_name, b"later", priority=9)
    with qm.open(q_name, "input_shared") as queue:
        gone = {message.data for message in queue.get_many(31)}
    qm.put(q_name, b"latest", priority=0)
    rows = [body for part in parts for batch in reader.read(part) for body in batch.column("data").to_pylist()]
    assert len(parts) == 3
    assert len(rows) == 90 + 2 - 31
    assert {*rows} == {b"latest", b"later", *(b"%d" % n for n in range(90))} - gone


def test_a_queue_with_groups_is_one_partition(qm, q_name, read):
    with qm.open(q_name, "output") as q:
        for group in (b"g1", b"g2", b"g3"):
            for number in range(1, 5):
                flag = MsgFlag.LAST_MSG_IN_GROUP if number == 4 else MsgFlag.MSG_IN_GROUP
                q.put(b"in a group", group_id=group, msg_seq_number=number, msg_flags=flag)
    qm.put_many(q_name, [b"%d" % n for n in range(200)])
    rows = read(q_name, partitions=3).selectExpr("msg_id", "spark_partition_id() as part").collect()
    assert (len(rows), len({bytes(row.msg_id) for row in rows})) == (212, 212)
    assert {row.part for row in rows} == {0}


def test_no_more_rows_are_read_than_were_asked_for_and_only_the_columns(qm, q_name, read):
    qm.put_many(q_name, [b"%d" % n for n in range(2000)])
    frame = read(q_name, maxRows=1500, columns="ordinal, data")
    assert frame.columns == ["ordinal", "data"]
    assert [bytes(row.data) for row in frame.orderBy("ordinal").collect()] == [b"%d" % n for n in range(1500)]


def test_json_becomes_the_columns_of_the_schema_beside_those_of_the_message(qm, q_name, read):
    bodies = [
        '{"id": 1, "name": "one", "at": "2026-01-02T03:04:05Z", "more": 5}',
        '{"id":2,\n "name": null}',
        "{}",
    ]
    qm.put_many(q_name, bodies, priority=4)
    rows = read(q_name, "id bigint, name string, mq_priority int, mq_msg_id binary", format="json").collect()
    assert [(row.id, row.name, row.mq_priority) for row in rows] == [(1, "one", 4), (2, None, 4), (None, None, 4)]
    assert len({bytes(row.mq_msg_id) for row in rows}) == 3


@pytest.mark.parametrize("body", ["no json", '{"id": "x"}', "[1]", '{"id":1}{"id":2}', ""])
def test_what_is_no_row_of_the_json_schema_fails_and_names_the_message(qm, q_name, read, body):
    qm.put(q_name, '{"id": 1}')
    receipt = qm.put(q_name, body)
    with pytest.raises(Exception, match=f"message {receipt.msg_id.hex()} .ordinal 1. is no JSON object of the schema"):
        read(q_name, "id bigint", format="json").collect()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"ordinals": "7", "reservation": "1"}, "option ordinals is two whole numbers with - between them, not '7'"),
        ({"maxRows": "many"}, "option maxrows is a whole number from 1, not 'many'"),
        ({"format": "csv"}, "option format is raw or json"),
        ({"format": "json"}, "format json needs a schema"),
        ({"columns": "data,colour"}, "messages have no column 'colour'"),
        ({"groups": "perhaps"}, "option groups is true or false"),
        ({"groups": "true", "maxRows": "5"}, "maxRows could cut a group"),
        ({"reservation": "4711"}, "RESERVATION.4711.: nothing of it is left"),
    ],
)
def test_an_option_that_cannot_be_meant_is_reported(q_name, read, options, expected):
    with pytest.raises(Exception, match=expected):
        read(q_name, **options).collect()


def test_a_queue_that_is_not_there_is_mq_s_reason(read):
    with pytest.raises(Exception, match="2085"):
        read("NO.SUCH.QUEUE").collect()
