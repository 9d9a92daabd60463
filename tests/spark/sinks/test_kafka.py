"""A topic of Kafka: each batch once. The broker is librdkafka's simulated one, or the model of Kafka's transactions."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from tests.daemons import define
from tests.spark.conftest import depth
from tests.spark.sinks.kafka_model import Cluster
from tests.spark.sinks.plays import Plays, name
from tests.spark.sinks.simulated_broker import SimulatedBroker
from trigmon.mq.calls import Alter
from trigmon.spark import drain
from trigmon.spark.load import load
from trigmon.spark.load_options import parsed
from trigmon.spark.sinks import kafka_client
from trigmon.spark.sinks.kafka_topic import MARKS, KafkaSink
from trigmon.spark.sinks.sink import SinkError

pytestmark = [pytest.mark.spark]
TOPIC = "orders"


class AsJson:
    """The sink, to which each row goes as a JSON object; data as it is."""

    def __init__(self, **options):
        self._sink = KafkaSink(TOPIC, **options)
        self.check, self.refuse = self._sink.check, self._sink.refuse

    def write(self, frame, batch):
        value = "data" if "data" in frame.columns else "to_json(struct(*))"
        return self._sink.write(frame.selectExpr(f"{value} AS value"), batch)


class TestByTheSpecification(Plays):
    """Here a job that was replaced is refused, and what was aborted is not seen."""

    @pytest.fixture
    def cluster(self, monkeypatch):
        cluster = Cluster(TOPIC, MARKS)
        monkeypatch.setattr(kafka_client, "library", lambda: cluster.library)
        return cluster

    @pytest.fixture
    def made(self, cluster):
        return AsJson

    @pytest.fixture
    def rows(self, cluster):
        def row(value):
            found = json.loads(value)
            return found if isinstance(found, dict) else {"data": value}

        return lambda: [row(sent.value) for sent in cluster.committed(TOPIC)]

    @pytest.fixture
    def files(self, cluster):
        """Returns what is left open; a topic has no files."""
        return lambda: [one for one in cluster.ids.values() if one.transaction.state == "open"]

    def test_a_message_that_kafka_does_not_take_is_searched_for_and_set_aside(
        self, qm, q_name, here, spark, made, rows
    ):
        define(qm, f"{q_name}.ASIDE")
        aside = {"backout_requeue_q_name": f"{q_name}.ASIDE"}
        qm.call(Alter(object_type="QLOCAL", name=q_name, attributes=aside))
        qm.put_many(q_name, [b"1", b"2", b"3" * 1001, b"4"])
        done = drain(spark, to=made(), max_rows=4, **here)
        (message,) = done.rejected
        assert "Kafka does not take a message: message too large" in message.why
        assert sorted(int(row["data"]) for row in rows()) == [1, 2, 4]


@pytest.fixture(scope="module")
def simulated():
    return SimulatedBroker(MARKS)


@pytest.fixture
def broker(simulated):
    """The options of a broker that has the topic of the marks."""
    return simulated.options


@pytest.fixture
def topic(simulated, request, monkeypatch):
    """A topic of the test's own. The simulated broker says nothing of its configuration."""
    monkeypatch.setattr(kafka_client, "_CONFIGURATION_S", 0.1)
    simulated.make(request.node.name[:200])
    return request.node.name[:200]


def read(broker, topic):
    """Returns the messages of a topic by their values: partition, key and headers."""
    reader = Consumer({**broker, "group.id": "reader", "enable.partition.eof": True})
    found = {}
    try:
        for partition in reader.list_topics(topic, 10).topics[topic].partitions:
            reader.assign([TopicPartition(topic, partition, 0)])
            while (message := reader.poll(30)).error() is None:
                assert message.value() not in found
                found[message.value()] = (partition, message.key(), message.headers())
            assert message.error().code() == KafkaError._PARTITION_EOF
    finally:
        reader.close()
    return found


class TestOnASocket:
    def test_a_batch_is_written_once_and_a_refused_one_never_by_jobs_that_read_each_other_s_marks(
        self, spark, broker, topic
    ):
        def job():
            return KafkaSink(topic, options=broker)

        frame = spark.range(100).selectExpr("cast(id as string) value")
        assert job().write(frame, name(1))
        assert not job().write(frame, name(1))
        assert not job().refuse(name(1))
        assert job().refuse(name(2))
        parts = [name(2, f"b2-{at}", (at, at + 1)) for at in (1, 0)]
        assert [job().write(spark.sql(f"select 'part {part.id}' value"), part) for part in parts] == [True, True]
        assert [job().write(frame, part) for part in parts] == [False, False]
        assert len(read(broker, topic)) == 102

    def test_key_headers_and_partition_are_columns_as_in_spark_s_own_sink(self, spark, broker, topic):
        rows = spark.sql(
            "select 'a' value, 'foobar' key, array(named_struct('key', 'h', 'value', unhex('00FF'))) headers, "
            "cast(null as int) partition union all "
            "select 'b', null, null, 3"
        )
        assert KafkaSink(topic, options=broker).write(rows, name(1))
        maps = spark.sql("select 'c' value, map('color', 'red') headers, 2 partition")
        assert KafkaSink(topic, options=broker).write(maps, name(2))
        # 2 of 4 by murmur2, as Java's clients choose it: (-790332482 & 0x7fffffff) % 4
        assert read(broker, topic) == {
            b"a": (2, b"foobar", [("h", b"\x00\xff")]),
            b"b": (3, None, None),
            b"c": (2, None, [("color", b"red")]),
        }

    def test_a_queue_s_bytes_are_the_values_where_no_column_is_named_so(self, qm, q_name, here, spark, broker, topic):
        qm.put_many(q_name, [b"%d" % n for n in range(50)])
        drain(spark, to=KafkaSink(topic, options=broker), max_rows=20, **here)
        assert sorted(map(int, read(broker, topic))) == list(range(50))
        assert depth(qm, q_name) == 0

    def test_what_a_topic_cannot_take_is_refused_before_anything_is_sent(self, spark, broker, topic):
        sink = KafkaSink(topic, options=broker)
        for text, said in [
            ("select 1 id", r"a topic needs a column value; there are id: to_json\(struct\(\*\)\)"),
            ("select 1 value", "column value is int: Kafka takes string or binary; cast it"),
            ("select 'a' value, 'b' topic", "all rows of a drain go to one topic"),
        ]:
            with pytest.raises(SinkError, match=said):
                sink.write(spark.sql(text), name(1))
        with pytest.raises(kafka_client.UnfitMessageError):
            KafkaSink(topic, options=broker | {"message.max.bytes": "1000"}).write(
                spark.sql("select repeat('x', 2000) value"), name(1)
            )

    def test_a_broker_that_does_not_answer_and_an_unknown_option_are_the_sink_s_fault(self, monkeypatch, broker):
        monkeypatch.setattr(kafka_client, "_ANSWER_S", 1)
        with pytest.raises(SinkError, match="Kafka, asking for its topics: "):
            KafkaSink(TOPIC, options={"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}).check()
        with pytest.raises(SinkError, match='No such configuration property: "bootstrap"'):
            KafkaSink(TOPIC, options={"bootstrap": "x"}).check()
        with pytest.raises(SinkError, match="Kafka has no topic nowhere"):
            KafkaSink("nowhere", options=broker).check()


class TestLoad:
    def test_messages_go_to_a_topic_by_options_alone_with_a_key_and_headers(
        self, qm, q_name, here, spark, broker, topic
    ):
        qm.put_many(q_name, [b"one", b"two"], correl_id=b"K" * 24)
        words = ["--queue", q_name, "--qmgr", here["qmgr"], "--to", "kafka", "--topic", topic]
        server = ["--bootstrap-server", broker["bootstrap.servers"]]
        load(spark, parsed([*words, *server, "--key", "correl_id", "--columns", "priority,format"]))
        found = read(broker, topic)
        assert set(found) == {b"one", b"two"}
        assert {key for _, key, _ in found.values()} == {b"K" * 24}
        assert {tuple(headers) for _, _, headers in found.values()} == {(("priority", b"0"), ("format", b""))}

    def test_json_is_the_value_and_a_column_of_it_the_key(self, qm, q_name, here, spark, broker, topic):
        qm.put_many(q_name, [b'{"id": 7, "name": "x"}'])
        words = ["--queue", q_name, "--qmgr", here["qmgr"], "--to", "kafka", "--topic", topic, "--key", "name"]
        server = ["--bootstrap-server", broker["bootstrap.servers"]]
        load(spark, parsed([*words, *server, "--format", "json", "--schema", "id int, name string"]))
        ((value, (_, key, headers)),) = read(broker, topic).items()
        assert (json.loads(value), key, headers) == ({"id": 7, "name": "x"}, b"x", None)
