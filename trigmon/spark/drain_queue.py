"""``trigmon.spark.drain``: one call that moves the messages of a queue to a sink until the queue is empty."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from trigmon.spark.drain_arguments import check_functions, check_names, check_places, check_together
from trigmon.spark.file_sink import FileSink, TaskWriter
from trigmon.spark.poison_search.failed_batches import Rejected
from trigmon.spark.queue_batches import Batch, Batches, batches
from trigmon.spark.sinks.sink import Sink, SinkError

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
    So it is with ``to``, a sink of :mod:`trigmon.spark.sinks`, as Delta and Iceberg, or a
    :class:`~trigmon.spark.file_sink.FileSink` for other files and for directories of values. With ``each`` it is
    exactly once if the sink takes a ``batch.id`` once; ``each`` must have written all of the batch when it returns, and
    nothing when it raises. ``stream`` returns the writer of a streaming frame, as
    ``lambda rows: rows.writeStream.format("delta")``. It needs a ``checkpoint`` of this query alone, and is exactly
    once if Spark's sink is, as files, Delta and queues are.
    ``transform`` turns the messages into the frame to write. ``progress`` is called after each batch, in place of the
    progress line on a terminal. The other arguments are those of :func:`~trigmon.spark.queue_batches.batches`:
    ``queue``, ``qmgr``, ``consumer``, ``max_rows``, ``max_bytes``, ``groups``, ``attempts``, ``refuse``,
    ``wait_interval_ms``, ``options``, ``schema``, ``shows_progress``.

    Messages that make batches fail are found by halving and set aside on the backout queue. So are messages that kill
    the job, with ``table`` and ``to``, and with ``each`` where ``refuse`` is given
    (:mod:`trigmon.spark.queue_batches`). Raises the error of the last attempt when nothing succeeds, MQError, and
    TypeError for arguments that are none (:mod:`trigmon.spark.drain_arguments`).
    """
    refuse = of.get("refuse")
    check_names(of)
    check_places(each, table, to, stream)
    check_functions({"each": each, "stream": stream, "transform": transform, "progress": progress, "refuse": refuse})
    check_together(each, table, stream, checkpoint, merge_schema, refuse)
    if table is not None:
        to = FileSink(table, merge_schema=merge_schema)
    if to is not None:
        to.check()
        of["sink"] = to
    began = time.monotonic()
    opened: AbstractContextManager[Batches] = batches(
        spark, **{"shows_progress": progress is None, "in_plan": True, **of}
    )
    with opened as waiting:
        if stream is not None:
            with _all_progress(spark):
                _by_stream(waiting, stream, transform, str(checkpoint))
        else:
            by_tasks = TaskWriter(waiting.source, to) if type(to) is FileSink and transform is None else None
            for batch in waiting:
                with batch:
                    if by_tasks is None or not by_tasks.write(batch):
                        frame = transform(batch.frame) if transform else batch.frame
                        if to is not None:
                            to.write(_checked(frame), batch.name)
                        elif each is not None:
                            each(frame, batch)
                if batch.settled and progress:
                    progress(batch)
    return Drained(waiting.settled, waiting.rows, waiting.rejected, time.monotonic() - began)


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
        writer = _writer(stream(transform(frame) if transform else frame))
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        try:
            _follow(query, waiting)
        except StreamingQueryException as failure:
            left = waiting.unheld()
            if left is None or not waiting.failed(left, failure):
                raise
        else:
            return


def _checked(frame: Any) -> DataFrame:
    """Returns the frame of a transform. Raises SinkError for what is none, for which no message is to blame."""
    if frame is None:
        raise SinkError("transform returned None: it returns the frame that is to be written")
    return cast("DataFrame", frame)


def _writer(made: Any) -> DataStreamWriter:
    """Returns what a stream's function has made. Raises TypeError for what is no writer; a query is stopped."""
    if hasattr(made, "trigger"):
        return cast("DataStreamWriter", made)
    if hasattr(made, "awaitTermination"):
        made.stop()
        raise TypeError("stream returned a query that was started: it returns the writer, and the drain starts it")
    raise TypeError(f"stream returned {made!r}: it returns the writer, as frame.writeStream.format('delta')")


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
