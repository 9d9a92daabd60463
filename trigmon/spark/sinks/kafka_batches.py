"""Batches of records in a topic of Kafka, each once: one transaction has the records and what is remembered of them.

The last message of each transaction goes to a compacted topic beside it: the batch's mark
(:mod:`~trigmon.spark.sinks.high_water`) under the topic's and the consumer's name.

All jobs of a consumer have one ``transactional.id``. A job that begins ends the open transaction of every job before
it (KIP-98), and then reads the marks, all that was committed: what it does not find there is not in the topic either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from trigmon.spark.sinks.high_water import Known, check_not_refused, key_of, known, refused_mark, written_mark
from trigmon.spark.sinks.kafka_client import PREFIX, FencedError, Producer, Record, read_marks
from trigmon.spark.sinks.sink import BatchName, BatchRefusedError, SinkError


class _Writer(NamedTuple):
    """A consumer's producer, and the marks: those that were committed when it began, and its own."""

    producer: Producer
    marks: dict[str, int]


class KafkaBatches:
    """The batches of any consumers in one topic."""

    def __init__(self, options: Mapping[str, str], topic: str, marks_topic: str) -> None:
        self._options = options
        self._topic = topic
        self._marks_topic = marks_topic
        self._writers: dict[str, _Writer] = {}

    def write(self, batch: BatchName, records: Iterable[Record]) -> bool:
        """Commits a batch. Returns False when the topic has it.

        Raises BatchRefusedError, SinkError, and UnfitMessageError for a message that Kafka does not take.
        """
        return self._commit(batch, written_mark(batch), records)

    def refuse(self, batch: BatchName) -> bool:
        """Makes the topic refuse the batch from now on, from any job. Returns False when it has it."""
        with suppress(BatchRefusedError):
            return self._commit(batch, refused_mark(batch), ())
        return True

    def _commit(self, batch: BatchName, mark: int, records: Iterable[Record]) -> bool:
        """Commits the mark with these records. Returns False when the topic has the batch. Raises as :meth:`write`."""
        producer, marks = self._writer(batch)
        if self._is_written(batch, marks):
            return False
        key = self._key(batch)
        try:
            with producer.transaction():
                for record in records:
                    producer.send(self._topic, record)
                producer.send_mark(self._marks_topic, Record(b"%d" % mark, key.encode(), partition=0))
        except BaseException as error:
            del self._writers[batch.application]
            if isinstance(error, FencedError):
                if not self._is_written(batch, read_marks(self._options, self._marks_topic)):
                    raise
                return False
            # The answer to the commit may be lost: a new producer finds the transaction committed, or aborts it.
            if not isinstance(error, SinkError) or not self._is_written(batch, self._writer(batch).marks):
                raise
        else:
            marks[key] = mark
        return True

    def _writer(self, batch: BatchName) -> _Writer:
        """Returns the consumer's producer. The first one of a job ends the transactions of all jobs before."""
        if batch.application not in self._writers:
            producer = Producer(self._options, f"{PREFIX}/{self._topic}/{batch.application}")
            self._writers[batch.application] = _Writer(producer, read_marks(self._options, self._marks_topic))
        return self._writers[batch.application]

    def _is_written(self, batch: BatchName, marks: Mapping[str, int]) -> bool:
        """Returns whether the batch is in the topic. Raises BatchRefusedError."""
        state = known(marks.get(self._key(batch)), batch)
        check_not_refused(state, self._topic, batch)
        return state is Known.WRITTEN

    def _key(self, batch: BatchName) -> str:
        return f"{self._topic}/{key_of(batch)}"
