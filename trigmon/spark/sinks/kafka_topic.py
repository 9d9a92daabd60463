"""A topic of Kafka that takes each batch once, in one transaction (:mod:`~trigmon.spark.sinks.kafka_batches`).

The driver sends the rows, in their order, since a transaction belongs to one producer; tasks only work them out.
Readers need ``isolation.level=read_committed``; others see what was aborted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from trigmon.spark.sinks.kafka_batches import KafkaBatches
from trigmon.spark.sinks.kafka_client import Record, check_options, check_topics
from trigmon.spark.sinks.sink import BatchName, SinkError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MARKS = "trigmon.batches"
_VALUE, _KEY, _HEADERS, _PARTITION, _TOPIC = "value", "key", "headers", "partition", "topic"
_BYTES = ("string", "binary")
_HEADER_TYPE = "array<struct<key:string,value:binary>>"


class KafkaSink:
    """A topic of a cluster. ``options`` are those of librdkafka: ``bootstrap.servers``, ``security.protocol``, ...

    Raises SinkError for options that the sink has itself.

    Columns are those of Spark's own sink of Kafka: ``value``, and, where they are there, ``key``, ``headers`` (an array
    of structs ``key``, ``value``, or a map) and ``partition``. Without ``value`` it is ``data``, a message's bytes.
    """

    def __init__(self, topic: str, *, marks_topic: str = MARKS, options: Mapping[str, str] | None = None) -> None:
        self._topic = topic
        self._marks_topic = marks_topic
        self._options = dict(options or {})
        check_options(self._options)
        self._batches = KafkaBatches(self._options, topic, marks_topic)

    def check(self) -> None:
        """Raises SinkError unless the cluster answers and has the topic. Makes that of the marks."""
        check_topics(self._options, self._topic, self._marks_topic)

    def write(self, frame: DataFrame, batch: BatchName) -> bool:
        """Sends a batch in one transaction. Returns False when the topic has it.

        Raises BatchRefusedError, SinkError, and UnfitMessageError for a message that Kafka does not take.
        """
        return self._batches.write(batch, _records(_as_kafka_has_it(frame)))

    def refuse(self, batch: BatchName) -> bool:
        """Makes the sink refuse the batch from now on, from any job. Returns False when the topic has it."""
        return self._batches.refuse(batch)


def _as_kafka_has_it(frame: DataFrame) -> DataFrame:
    """Returns value, key, headers and partition of each row. Raises SinkError for a column of another type."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.types import MapType

    types = {field.name: field.dataType for field in frame.schema.fields}
    value = _VALUE if _VALUE in types else "data"
    if value not in types:
        raise SinkError(
            f"a topic needs a column value; there are {', '.join(types)}: to_json(struct(*)) makes one of all"
        )
    if _TOPIC in types:
        raise SinkError("a column topic: all rows of a drain go to one topic; drop it, or drain into each by itself")
    for name in (value, _KEY):
        if name in types and types[name].simpleString() not in _BYTES:
            raise SinkError(f"column {name} is {types[name].simpleString()}: Kafka takes string or binary; cast it")

    def column(name: str, kind: str, of: Callable[[str], Column] = F.col) -> Column:
        return (of(name) if name in types else F.lit(None)).cast(kind).alias(name)

    headers = F.map_entries if isinstance(types.get(_HEADERS), MapType) else F.col
    return frame.select(
        F.col(value).cast("binary").alias(_VALUE),
        column(_KEY, "binary"),
        column(_HEADERS, _HEADER_TYPE, headers),
        column(_PARTITION, "int"),
    )


def _records(frame: DataFrame) -> Iterator[Record]:
    """Yields the rows, one partition of Spark in memory while the next is worked out."""
    for value, key, headers, partition in frame.toLocalIterator(prefetchPartitions=True):
        yield Record(
            _bytes(value),
            _bytes(key),
            None if headers is None else [(name, _bytes(of)) for name, of in headers],
            -1 if partition is None else partition,
        )


def _bytes(value: bytes | bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)
