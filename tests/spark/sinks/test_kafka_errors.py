"""What the client makes of a broker's errors: whose fault they are, and whether a job that was replaced knows it."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import KafkaError, Producer

from tests.spark.sinks.simulated_broker import ADD_PARTITIONS, END_TRANSACTION, PRODUCE, SimulatedBroker, librdkafka
from trigmon.spark.poison_search.blame import is_of_sink
from trigmon.spark.sinks import kafka_batches, kafka_client
from trigmon.spark.sinks.kafka_batches import KafkaBatches
from trigmon.spark.sinks.kafka_client import FencedError, Record, UnfitMessageError, check_options, read_marks
from trigmon.spark.sinks.sink import BatchName, SinkError

TOPIC, MARKS = "orders", "trigmon.batches"
pytestmark = pytest.mark.skipif(librdkafka() is None, reason="confluent-kafka was not installed from a wheel of Linux")


@pytest.fixture(scope="module")
def broker():
    return SimulatedBroker(TOPIC, MARKS)


@pytest.fixture(autouse=True)
def nothing_is_committed(monkeypatch):
    """Has no batch found: the simulated broker would show the marks of transactions that it has refused."""
    monkeypatch.setattr(kafka_batches, "read_marks", lambda options, topic: {})


@pytest.fixture
def begun(monkeypatch):
    """The producers that were made."""
    begun = []

    class Counted(kafka_client.Producer):
        def __init__(self, *arguments):
            begun.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(kafka_batches, "Producer", Counted)
    return begun


@pytest.fixture
def batch(request):
    """A batch of a consumer of the test's own."""
    return BatchName(f"QM/Q/{request.node.name}", 1, "b1")


def quick():
    yield from (Record(b"a"), Record(b"b"))


def slow():
    """Yields more messages until the client has heard of what became of the first."""
    yield Record(b"first")
    for number in range(100):
        time.sleep(0.05)
        yield Record(b"%d" % number)


@pytest.mark.parametrize("code", [KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED])
@pytest.mark.parametrize(
    ("request_of", "records"),
    [
        (ADD_PARTITIONS, quick),
        (ADD_PARTITIONS, slow),
        (PRODUCE, quick),
        (PRODUCE, slow),
        (END_TRANSACTION, quick),
    ],
)
def test_a_job_that_was_replaced_knows_it_and_replaces_nobody(broker, begun, batch, request_of, code, records):
    writer = KafkaBatches(broker.options, TOPIC, MARKS)
    assert writer.refuse(batch)
    following = batch._replace(number=2, id="b2")
    broker.answer_next(request_of, code)
    with pytest.raises(FencedError, match="Another job of the same consumer writes"):
        writer.write(following, records())
    assert len(begun) == 1


def test_a_message_that_the_broker_finds_too_large_is_its_own_fault(broker, batch):
    broker.answer_next(PRODUCE, KafkaError.MSG_SIZE_TOO_LARGE)
    with pytest.raises(UnfitMessageError, match=r"Kafka does not take a message: .*too large") as raised:
        KafkaBatches(broker.options, TOPIC, MARKS).write(batch, slow())  # the mark is not on its way yet
    assert not is_of_sink(raised.value)


@pytest.mark.parametrize("partition", [-2, 99])
def test_a_message_for_a_partition_that_is_not_there_is_its_own_fault(broker, batch, partition):
    with pytest.raises(UnfitMessageError) as raised:
        KafkaBatches(broker.options, TOPIC, MARKS).write(batch, [Record(b"z", partition=partition)])
    assert not is_of_sink(raised.value)


@pytest.mark.parametrize("records", [quick, slow])
@pytest.mark.parametrize("code", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.INVALID_RECORD])
def test_every_other_error_is_the_sink_s_fault(broker, batch, code, records):
    broker.answer_next(PRODUCE, code)
    with pytest.raises(SinkError) as raised:
        KafkaBatches(broker.options, TOPIC, MARKS).write(batch, records())
    assert is_of_sink(raised.value)


def test_an_operator_forgets_a_consumer_by_a_message_without_a_value_and_other_messages_are_an_error(broker):
    broker.make("marks")
    operator = Producer(broker.options)
    for key, value in ((b"one", b"2"), (b"two", b"4"), (b"one", None)):
        operator.produce("marks", key=key, value=value, partition=0)
    operator.flush(30)
    assert read_marks(broker.options, "marks") == {"two": 4}
    operator.produce("marks", key=b"three", value=b"not a number", partition=0)
    operator.flush(30)
    with pytest.raises(SinkError, match="marks, offset 3: this is no mark of a batch"):
        read_marks(broker.options, "marks")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"transactional.id": "x"}, "transactional.id is set by the sink itself"),
        ({"auto.offset.reset": "latest"}, "auto.offset.reset is set by the sink itself"),
        ({"sasl.username": "u"}, "sasl.username is not sent without security.protocol=SASL_SSL"),
    ],
)
def test_options_that_would_do_harm_or_nothing_are_refused(options, said):
    with pytest.raises(SinkError, match=said):
        check_options(options)
    check_options({"sasl.username": "u", "security.protocol": "SASL_SSL"})
