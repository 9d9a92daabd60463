"""The rows of a small batch in Spark's plan: the job's process reads them, and Spark starts no Python for them.

By the data source, Spark starts Python to find it, to plan it, and to read its partition. For some hundred rows that
takes longer than all else. The rows are the same, since the data source's own code makes them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from trigmon.client.reservation import Reservation
from trigmon.spark.frame_source import Source
from trigmon.spark.reader import ROWS_A_PARTITION, Stretch, read_stretch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

MOST_ROWS = ROWS_A_PARTITION
"""A larger batch is read by several tasks at a time."""
MOST_BYTES = 1 << 20
"""The plan is sent with each question to a server of Spark Connect."""


def is_small(made: Reservation) -> bool:
    """Returns whether a reservation is small enough."""
    return made.count <= MOST_ROWS and made.size <= MOST_BYTES


def frame(source: Source, reservation: int, count: int) -> DataFrame | None:
    """Returns what is left of a reservation as a frame of one partition, None where the data source has to read it.

    That is so where the options say how tasks read, and for whatever fails here: then the data source tells what is
    wrong, when the rows are asked for, as with a large batch.
    """
    with suppress(Exception):
        named = source.named
        if named.partitions or named.min_partitions or named.task_address:
            return None
        read = read_stretch(named, Stretch(reservation, [(0, count)]), source.arrow)
        return in_plan(source.spark, pa.Table.from_batches(read, source.arrow), source.columns)
    return None


def in_plan(spark: SparkSession, rows: pa.Table, schema: StructType) -> DataFrame:
    """Returns a frame of these rows that is written by one task into one file."""
    return spark.createDataFrame(rows, schema).coalesce(1)
