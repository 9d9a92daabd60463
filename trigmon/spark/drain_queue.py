"""``trigmon.spark.drain``: one call that moves the messages of a queue to a sink until the queue is empty."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trigmon.spark.file_table import refuse_batch, takes_task_files, write_batch, write_task_files
from trigmon.spark.files.staging import sweep
from trigmon.spark.frame_source import Source
from trigmon.spark.poison_search.blame import unreadable
from trigmon.spark.poison_search.failed_batches import Rejected
from trigmon.spark.queue_batches import Batch, Batches, batches
from trigmon.spark.sinks.sink import Sink
from trigmon.spark.task_files import ParquetForm, parquet_form, task_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_REMEMBERED = "spark.sql.streaming.numRecentProgressUpdates"
_LOOK_S = 1
"""Seconds between two updates of a stream's progress on a terminal."""


class Drained(NamedTuple):
    """What a drain did: batches and messages that were settled, messages set aside, and the seconds it took."""

    batches: int
    rows: int
    rejected: list[Rejected]
    seconds: float


def drain(
    spark: SparkSession,
    each: Callable[[DataFrame, Batch], Any] | None = None,
    *,
    table: str | Path | None = None,
    to: Sink | None = None,
    stream: Callable[[DataFrame], DataStreamWriter] | None = None,
    checkpoint: str | Path | None = None,
    transform: Callable[[DataFrame], DataFrame] | None = None,
    progress: Callable[[Batch], Any] | None = None,
    merge_schema: bool = False,
    **of: Any,
) -> Drained:
    """Drains a queue into a Parquet ``table``, ``to`` a sink, by ``each(frame, batch)``, by a ``stream``.

    Into ``table`` it is exactly once: a batch is written once wherever the job is killed
    (:mod:`trigmon.spark.file_table`), in a directory of its own; ``merge_schema`` adds new columns to the table.
    So it is with ``to``, a sink of :mod:`trigmon.spark.sinks`: Delta, Iceberg, ... With ``each`` it is exactly
    once if the sink takes a ``batch.id`` once; ``each`` must have written all of the batch when it returns, and nothing
    when it raises. ``stream`` returns the writer of a streaming frame, as
    ``lambda rows: rows.writeStream.format("delta")``. It needs a ``checkpoint`` of this query alone, and is exactly
    once if Spark's sink is, as files, Delta and queues are.
    ``transform`` turns the messages into the frame to write. ``progress`` is called after each batch, in place of the
    progress line on a terminal. The other arguments are those of :func:`~trigmon.spark.queue_batches.batches`:
    ``queue``, ``qmgr``, ``consumer``, ``max_rows``, ``groups``, ``attempts``, ``refuse``, ``wait_interval_ms``,
    ``options``, ``schema``.

    Messages that make batches fail are found by halving and set aside on the backout queue. So are messages that kill
    the job, with ``table`` and ``to``, and with ``each`` where ``refuse`` is given
    (:mod:`trigmon.spark.queue_batches`). Raises the error of the last attempt when nothing succeeds, and MQError.
    """
    if sum(way is not None for way in (each, table, to, stream)) != 1:
        raise TypeError("drain takes either each, a function, or table, a directory, to, a sink, or stream, a function")
    _check(each, table, stream, checkpoint, merge_schema, of.get("refuse"))
    if table is not None:
        sweep(table)
        of["refuse"] = partial(refuse_batch, table)
        each = partial(_into, table, merge_schema)
    if to is not None:
        to.check()
        of["sink"] = to
        each = partial(_to, to)
    began = time.monotonic()
    opened: AbstractContextManager[Batches] = batches(
        spark, **{"shows_progress": progress is None, "in_plan": True, **of}
    )
    with opened as waiting:
        if stream is not None:
            with _all_progress(spark):
                _by_stream(waiting, stream, transform, str(checkpoint))
        else:
            by_tasks = None
            if table is not None and transform is None:
                by_tasks = _ByTasks(waiting.source, table, merge_schema=merge_schema)
            for batch in waiting:
                with batch:
                    if by_tasks is None or not by_tasks.write(batch):
                        frame = transform(batch.frame) if transform else batch.frame
                        if each is not None:
                            each(frame, batch)
                if batch.settled and progress:
                    progress(batch)
    return Drained(waiting.settled, waiting.rows, waiting.rejected, time.monotonic() - began)


def _check(each: Any, table: Any, stream: Any, checkpoint: Any, merge_schema: bool, refuse: Any) -> None:
    """Raises TypeError for arguments that do not go together."""
    if (stream is None) != (checkpoint is None):
        raise TypeError("a stream has a checkpoint, a directory of this query alone, and nothing else has one")
    if refuse is not None and each is None:
        raise TypeError("refuse goes with each: tables do not need it, and a stream's batches cannot be divided")
    if merge_schema and table is None:
        raise TypeError("merge_schema goes with table: a sink has its own")


class _ByTasks:
    """Has the tasks that read a batch write it, until that fails for what may be no fault of a message."""

    def __init__(self, source: Source, table: str | Path, *, merge_schema: bool) -> None:
        self._source = source
        self._table = table
        self._merges = merge_schema
        self._has_failed = False

    @cached_property
    def _form(self) -> ParquetForm | None:
        """How files are written. A small batch does not wait for the session's settings."""
        return parquet_form(self._source.spark)

    def write(self, batch: Batch) -> bool:
        """Returns False where Spark has to write it."""
        if self._has_failed or not batch.is_for_tasks or self._form is None:
            return False
        files = task_files(self._source, batch.number, self._form)
        if files is None or not takes_task_files(files.schema, self._table, merge_schema=self._merges):
            return False
        try:
            write_task_files(self._source.spark, files, self._table, batch.id, merge_schema=self._merges)
        except Exception as error:
            self._has_failed = unreadable(error, self._source.secret) is None
            raise
        return True


def _into(table: str | Path, merge_schema: bool, frame: DataFrame, batch: Batch) -> None:
    write_batch(frame, table, batch.id, merge_schema=merge_schema)


def _to(sink: Sink, frame: DataFrame, batch: Batch) -> None:
    sink.write(frame, batch.name)


@contextmanager
def _all_progress(spark: SparkSession) -> Iterator[None]:
    """Yields with a setting by which queries remember more than their last hundred batches, so that all are counted."""
    before = spark.conf.get(_REMEMBERED)
    spark.conf.set(_REMEMBERED, "100000")
    try:
        yield
    finally:
        spark.conf.set(_REMEMBERED, before)


def _by_stream(
    waiting: Batches,
    stream: Callable[[DataFrame], DataStreamWriter],
    transform: Callable[[DataFrame], DataFrame] | None,
    checkpoint: str,
) -> None:
    """Runs the query to the end of the queue, and again after each failure that can be handled.

    The query's own process holds the reservation. It is gone when the query has failed, and the same offset then means
    what is left of the reservation. The queue stays open for input here.
    """
    from pyspark.errors import StreamingQueryException

    while True:
        frame = waiting.stream()
        writer = stream(transform(frame) if transform else frame)
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        try:
            _follow(query, waiting)
        except StreamingQueryException as failure:
            left = waiting.unheld()
            if left is None or not waiting.failed(left, failure):
                raise
        else:
            return


def _follow(query: StreamingQuery, waiting: Batches) -> None:
    """Waits for the query's end, and counts its batches. Raises StreamingQueryException."""
    seen = 0

    def count() -> int:
        progresses = query.recentProgress
        for progress in progresses[seen:]:
            if progress["numInputRows"]:
                waiting.done(progress["numInputRows"])
        return len(progresses)

    try:
        while not query.awaitTermination(_LOOK_S):
            if waiting.line.is_shown:
                seen = count()
                held = waiting.reservations() or [{"reservation": 0, "left": 0}]
                waiting.tell(held[0]["reservation"], held[0]["left"])
    finally:
        count()
    waiting.tell()
