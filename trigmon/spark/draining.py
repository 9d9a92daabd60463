"""``trigmon.spark.drain``: one call for the usual job, which takes a queue's messages to a sink until it is empty."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trigmon.spark.batching import Batch, Batches, Rejected, batches
from trigmon.spark.table import write_batch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    transform: Callable[[DataFrame], DataFrame] | None = None,
    progress: Callable[[Batch], Any] | None = None,
    **of: Any,
) -> Drained:
    """Drains a queue, batch by batch: into a Parquet ``table``, or by ``each(frame, batch)``.

    Exactly once into ``table``: a batch is written once wherever the job is killed (:mod:`trigmon.spark.table`), in a
    directory of its own. With ``each`` it is exactly once where what it writes to takes a ``batch.id`` once; it must
    have written all of the batch when it returns, and nothing when it raises. ``transform`` makes of the messages what
    is to be written. ``progress`` is called behind each batch. The rest is said as to
    :func:`~trigmon.spark.batching.batches`: ``queue``, ``qmgr``, ``consumer``, ``max_rows``, ``groups``, ``attempts``,
    ``wait_interval_ms``, ``options``, ``schema``.

    Messages that make batches fail are found by halving and set aside on the backout queue. Raises what the last
    attempt raised when nothing succeeds, and MQError.
    """
    if (each is None) == (table is None):
        raise TypeError("drain takes either each, a function, or table, a directory")
    began = time.monotonic()
    done = rows = 0
    opened: AbstractContextManager[Batches] = batches(spark, **of)
    with opened as waiting:
        for batch in waiting:
            with batch:
                frame = transform(batch.frame) if transform else batch.frame
                if table is not None:
                    write_batch(frame, table, batch.id)
                elif each is not None:
                    each(frame, batch)
            if batch.settled:
                done, rows = done + 1, rows + batch.count
                if progress:
                    progress(batch)
    return Drained(done, rows, waiting.rejected, time.monotonic() - began)
