"""Transactions of Kafka, by the package ``confluent-kafka`` (librdkafka): a producer, and what was committed.

Its errors are raised as :class:`~trigmon.spark.sinks.sink.SinkError`, with one kind of their own where another producer
has taken the ``transactional.id`` over; and as UnfitMessageError where one message is at fault.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, NamedTuple

from trigmon.spark.sinks.sink import SinkError

PREFIX = "trigmon"
"""What each ``transactional.id`` begins with, and the name of the consumer group; for the rights of a cluster."""
_ANSWER_S, _TRANSACTION_S = 60, 900
"""Seconds for an answer, and until a cluster aborts the transaction of a producer that is gone (its own maximum)."""
_CONFIGURATION_S, _POLL_S = 5, 0.5
_TRANSACTION_MS = "transaction.timeout.ms"
# Java's clients, Spark's among them, choose the partition of a key by this hash, and wait for so long.
_PRODUCER = {
    "partitioner": "murmur2_random",
    "batch.size": "131072",  # a topic may take less than a MiB at once, and the limit is for what is sent at once
    "message.timeout.ms": "120000",
    _TRANSACTION_MS: str(_TRANSACTION_S * 1000),
}
_CONSUMER = {
    "group.id": PREFIX,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",  # what cannot be read must not be passed over
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 10,  # at the end there is nothing to wait for
}
_OWN = ("transactional.id", *_CONSUMER)
_POLICY = "cleanup.policy"
_MARKS = {_POLICY: "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "3600000"}
_log = logging.getLogger(__name__)


class FencedError(SinkError):
    """Another producer has the same ``transactional.id`` now, or the cluster has ended the transaction for its age."""


class UnfitMessageError(ValueError):
    """A message that Kafka does not take, whatever becomes of the others: one that is too large, say."""


class Record(NamedTuple):
    """A message to be sent. ``partition`` -1: by the key, or any."""

    value: bytes | None
    key: bytes | None = None
    headers: list[tuple[str, bytes | None]] | None = None
    partition: int = -1


class Producer:
    """A producer with a ``transactional.id``. Where it has begun, no earlier one of that id has a transaction open.

    After an error it is of no more use.
    """

    def __init__(self, options: Mapping[str, str], transactional_id: str) -> None:
        self._unfit: Any = None
        with kafka_errors(f"beginning the transactions of {transactional_id}"):
            given = {**_PRODUCER, **options, "transactional.id": transactional_id}
            self._producer = library().Producer(given, logger=_log)
            self._producer.init_transactions(_ANSWER_S)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits what the block sends, or aborts it where the block raises. Raises SinkError, UnfitMessageError.

        After an error of the commit itself it is not known what became of the transaction.
        """
        with kafka_errors("beginning a transaction"):
            self._producer.begin_transaction()
        try:
            yield
            with self._errors("committing"):
                self._producer.commit_transaction(_ANSWER_S)
        except BaseException as error:
            with suppress(Exception):
                self._producer.abort_transaction(_ANSWER_S)
            if self._unfit is not None and not isinstance(error, FencedError):
                # Without a cause: an error of the sink among the causes would have it blamed on the sink.
                raise UnfitMessageError(f"Kafka does not take a message: {self._unfit.str()}") from None
            raise

    def send(self, topic: str, record: Record) -> None:
        """Sends a message of a batch, without waiting for it to be written. Raises SinkError, UnfitMessageError."""
        self._produce(topic, record, self._note)

    def send_mark(self, topic: str, record: Record) -> None:
        """Sends a message of ours likewise. Raises SinkError."""
        self._produce(topic, record, None)

    def _produce(self, topic: str, record: Record, note: Callable[[Any, Any], None] | None) -> None:
        errors = (library().KafkaException, SystemError)
        while True:
            try:
                self._producer.produce(topic, **record._asdict(), on_delivery=note)
                return
            except BufferError:  # as much as the client holds is on its way
                self._wait(topic)
            except errors as raised:
                if note is not None:
                    note(raised.args[0], None)
                raise self._reason(raised, f"writing to {topic}") from raised

    def _wait(self, topic: str) -> None:
        with self._errors(f"writing to {topic}"):
            self._producer.poll(_POLL_S)

    def _note(self, error: Any, _: Any) -> None:
        """Keeps the error of a message that is at fault itself."""
        if error is None:
            return
        of = library().KafkaError
        unfit = (of.MSG_SIZE_TOO_LARGE, of.INVALID_MSG_SIZE, of._UNKNOWN_PARTITION)
        if isinstance(error, of) and error.code() in unfit:
            self._unfit = error

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        """Raises an error of the client in the block as SinkError or FencedError, by its reason."""
        try:
            yield
        except (library().KafkaException, SystemError) as raised:
            raise self._reason(raised, doing) from raised

    def _reason(self, raised: Exception, doing: str) -> SinkError:
        """Returns the error of a call by its reason, which librdkafka does not give to every call.

        A producer that was fenced raises SystemError where messages are reported; a call to begin has the reason. A
        transaction that has failed takes no messages and cannot be committed; a call to commit has the reason.
        """
        client = library()
        try:
            if isinstance(raised, SystemError):
                self._producer.begin_transaction()
            elif raised.args[0].code() in (client.KafkaError._STATE, client.KafkaError._FATAL):
                self._producer.commit_transaction(_ANSWER_S)
        except client.KafkaException as reason:
            return _sink_error(reason, doing)
        return _sink_error(raised, doing)


def check_options(options: Mapping[str, str]) -> None:
    """Raises SinkError for options that are the sink's own, and for a user whom no protocol presents."""
    if own := [name for name in options if name in _OWN]:
        raise SinkError(f"{own[0]} is set by the sink itself: leave it out")
    is_sasl = options.get("security.protocol", "").lower().startswith("sasl_")
    if not is_sasl and (given := [name for name in options if name.startswith("sasl.")]):
        raise SinkError(f"{given[0]} is not sent without security.protocol=SASL_SSL, or SASL_PLAINTEXT")


def check_topics(options: Mapping[str, str], topic: str, marks: str) -> None:
    """Raises SinkError unless the cluster answers and has the topic. Makes the topic of the marks where there is none.

    That topic is compacted: one whose messages are deleted with time would forget batches.
    """
    of = library().admin
    with kafka_errors("asking for its topics"):
        admin = of.AdminClient(dict(options), logger=_log)
        there = admin.list_topics(timeout=_ANSWER_S).topics
    if topic not in there:
        raise SinkError(
            f"Kafka has no topic {topic}, or hides it from this user: make it, as with kafka-topics --create"
        )
    if marks not in there:
        with kafka_errors(f"making the topic {marks}"):
            new = [of.NewTopic(marks, 1, -1, config=_MARKS)]
            (made,) = admin.create_topics(new, request_timeout=_ANSWER_S).values()
            if (error := made.exception()) and error.args[0].code() != library().KafkaError.TOPIC_ALREADY_EXISTS:
                raise error
        return
    policy = _cleanup_policy(admin, marks)
    if policy not in (None, _MARKS[_POLICY]):
        raise SinkError(f"the topic {marks} has {_POLICY}={policy}, by which it forgets batches: make it compact")


def _cleanup_policy(admin: Any, topic: str) -> str | None:
    """Returns what becomes of old messages of a topic, None where the cluster does not say so to this user."""
    with suppress(SinkError), kafka_errors(f"asking for the configuration of {topic}"):
        asking = [library().admin.ConfigResource("topic", topic)]
        (asked,) = admin.describe_configs(asking, request_timeout=_CONFIGURATION_S).values()
        return str(asked.result()[_POLICY].value)
    return None


def read_marks(options: Mapping[str, str], topic: str) -> dict[str, int]:
    """Returns the last number of each key of the topic, all that was committed. Raises SinkError.

    Messages behind an open transaction cannot be read: it waits for the end of all that have begun.
    """
    client = library()
    marks: dict[str, int] = {}
    with kafka_errors(f"reading {topic}"):
        end = _end(options, topic)
        consumer = client.Consumer({**options, **_CONSUMER}, logger=_log)
        try:
            consumer.assign([client.TopicPartition(topic, 0, client.OFFSET_BEGINNING)])
            until = monotonic() + _seconds(options)
            while end > 0:
                message = consumer.poll(_POLL_S)
                if message is not None and message.error() is None:
                    _read(message, marks)
                elif message is not None and message.error().code() != client.KafkaError._PARTITION_EOF:
                    raise client.KafkaException(message.error())
                elif message is not None and message.offset() >= end:
                    break
                elif monotonic() > until:
                    raise SinkError(
                        f"{topic} has a transaction that does not end. Is a job of another consumer stuck? "
                        "kafka-transactions.sh find-hanging shows it"
                    )
        finally:
            consumer.close()
    return marks


def _read(message: Any, marks: dict[str, int]) -> None:
    """Takes a message into the marks; one without a value, by which an operator forgets a key, out of them."""
    try:
        key, value = message.key().decode(), message.value()
        if value is None:
            marks.pop(key, None)
        else:
            marks[key] = int(value)
    except (AttributeError, ValueError):
        where = f"{message.topic()}, offset {message.offset()}"
        raise SinkError(f"{where}: this is no mark of a batch. Name a topic that nobody else writes to") from None


def _end(options: Mapping[str, str], topic: str) -> int:
    """Returns the offset behind the last message, be its transaction open or not."""
    client = library()
    admin = client.admin.AdminClient(dict(options), logger=_log)
    partition, latest = client.TopicPartition(topic, 0), client.admin.OffsetSpec.latest()
    level = client.IsolationLevel.READ_UNCOMMITTED
    asked = admin.list_offsets({partition: latest}, isolation_level=level, request_timeout=_ANSWER_S)
    return int(asked[partition].result().offset)


def _seconds(options: Mapping[str, str]) -> float:
    """Returns for how long a transaction can be open, of this consumer or of another."""
    return max(int({**_PRODUCER, **options}[_TRANSACTION_MS]) / 1000, _TRANSACTION_S) + _ANSWER_S


# -- the library and its errors -----------------------------------------------------------------------------


def library() -> Any:
    """Returns the package. Raises SinkError with the extra that brings it."""
    try:
        import confluent_kafka.admin
    except ImportError:
        raise SinkError("Kafka is written to by confluent-kafka: pip install 'trigmon[kafka]'") from None
    return confluent_kafka


@contextmanager
def kafka_errors(doing: str) -> Iterator[None]:
    """Raises an error of Kafka in the block as SinkError or FencedError, in one line."""
    try:
        yield
    except library().KafkaException as raised:
        raise _sink_error(raised, doing) from raised


def _sink_error(raised: Exception, doing: str) -> SinkError:
    of = library().KafkaError
    error = raised.args[0]
    if not isinstance(error, of):
        return SinkError(f"Kafka, {doing}: {raised}")
    text = f"Kafka, {doing}: {error.str()}".splitlines()[0]
    if error.code() in (of._FENCED, of.PRODUCER_FENCED, of.INVALID_PRODUCER_EPOCH):
        return FencedError(f"{text}. Another job of the same consumer writes, or the transaction was too old")
    return SinkError(text)
