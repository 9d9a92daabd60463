"""The training workload for the archive of classes: a little of everything that a job on a queue does.

The maker of archives (:mod:`trigmon.launch.spark.cold.make_archive`) runs it by its path, as any job. A part that fails
does not stop the next one.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition


class Numbers(DataSource):
    """A data source in Python, as the queue's is."""

    @classmethod
    def name(cls) -> str:
        """Returns the name of the format."""
        return "numbers"

    def schema(self) -> str:
        """Returns the schema of one column."""
        return "n int"

    def reader(self, schema: Any) -> DataSourceReader:
        """Returns the reader of a batch."""
        return _Batch()

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Returns the reader of a stream."""
        return _Stream()


class _Batch(DataSourceReader):
    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield from ((number,) for number in range(10))


class _Stream(DataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"n": 0}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802
        return {"n": 10}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield from ((number,) for number in range(10))


def queries(spark: SparkSession) -> None:
    """Runs queries with rows from Python, a shuffle, and SQL."""
    rows = spark.createDataFrame([(n % 7, n, str(n)) for n in range(100)], ["k", "n", "s"])
    rows.groupBy("k").sum("n").orderBy("k").collect()
    rows.createOrReplaceTempView("rows")
    spark.sql("select a.k, count(*) as c, max(b.s) as m from rows a join rows b on a.n = b.n group by a.k").collect()
    spark.range(10).count()


def files(spark: SparkSession, directory: Path) -> None:
    """Writes and reads Parquet, JSON and CSV."""
    rows = spark.createDataFrame([(n, str(n)) for n in range(100)], ["n", "s"])
    for kind in ("parquet", "json", "csv"):
        rows.write.format(kind).save(str(directory / kind))
        spark.read.format(kind).load(str(directory / kind)).count()


def batch(spark: SparkSession) -> None:
    """Reads the Python source in a batch."""
    spark.read.format("numbers").load().collect()


def stream(spark: SparkSession, directory: Path) -> None:
    """Reads the Python source as a stream into a table, to its end."""

    def keep(rows: Any, number: int) -> None:
        rows.write.mode("overwrite").parquet(str(directory / "table" / str(number)))

    written = spark.readStream.format("numbers").load().writeStream.foreachBatch(keep)
    written.option("checkpointLocation", str(directory / "checkpoint")).trigger(availableNow=True).start()
    for query in spark.streams.active:
        query.awaitTermination(60)


def main() -> None:
    """Runs every part once."""
    with tempfile.TemporaryDirectory(prefix="trigmon-training-") as directory:
        builder = SparkSession.builder.config("spark.sql.warehouse.dir", f"{directory}/warehouse")
        spark = builder.getOrCreate()
        spark.dataSource.register(Numbers)
        here = Path(directory)
        parts: list[Callable[[], None]] = [
            lambda: queries(spark),
            lambda: files(spark, here),
            lambda: batch(spark),
            lambda: stream(spark, here),
        ]
        for part in parts:
            with suppress(Exception):
                part()
        spark.stop()


if __name__ == "__main__":
    main()
