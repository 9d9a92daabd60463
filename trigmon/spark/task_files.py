"""Parquet files of a batch, written by the tasks that read its messages: no row passes through Java.

Spark distributes the stretches of a reservation, one a task. A task reads its messages as the data source does, and
writes them by pyarrow, where they would go to Java row by row. Where rows are to become others on the way, or columns
have types that pyarrow writes in another way than Spark, Spark writes them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from trigmon.mq.errors import MQError
from trigmon.process_memory import keep_freed_memory
from trigmon.spark import options
from trigmon.spark.arrow_rows import UnfitRowError
from trigmon.spark.classic_session import context_of
from trigmon.spark.files.parquet_file import arrow_columns, check_types, write_rows
from trigmon.spark.frame_source import Source
from trigmon.spark.reader import Stretch, planned, read_stretch
from trigmon.spark.sinks.data_files import nullable
from trigmon.spark.sinks.sink import SinkError

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_SETTINGS = "spark.sql.parquet."
_CODEC, _TIMES = f"{_SETTINGS}compression.codec", f"{_SETTINGS}outputTimestampType"
_CODECS = {"snappy": "snappy", "gzip": "gzip", "zstd": "zstd", "none": "none", "uncompressed": "none"}
"""Spark's names of those that pyarrow has, and pyarrow's."""
_INT96, _MICROS = "INT96", "TIMESTAMP_MICROS"
_OF_SPARK = ("parquet.", "spark.hadoop.parquet.", _SETTINGS, "spark.sql.files.maxRecordsPerFile")
"""Settings of Spark's writer. Of the codec and the type of times alone it is known here what they mean."""
_GIVEN = re.compile(rf"(?:^\{{|, )((?:{'|'.join(map(re.escape, _OF_SPARK))})[^=]*)=")
"""The name of such a setting in Java's text of a map."""
_ENCRYPTION = "parquet.crypto.factory.class"
_ROW_GROUP_BYTES = 32 << 20
"""Each task has as much in memory, and more tasks than one are at work."""


class ParquetForm(NamedTuple):
    """How a session writes Parquet files: pyarrow's name of the codec, and whether times are INT96."""

    codec: str
    int96: bool


def parquet_form(spark: SparkSession) -> ParquetForm | None:
    """Returns how the session writes Parquet files, None where it has settings that only Spark's writer knows."""
    codec, times = str(spark.conf.get(_CODEC)).lower(), str(spark.conf.get(_TIMES)).upper()
    is_known = codec in _CODECS and times in (_INT96, _MICROS)
    if not is_known or _given(spark) - {_CODEC, _TIMES} or _is_encrypted(spark):
        return None
    return ParquetForm(_CODECS[codec], times == _INT96)


def _given(spark: SparkSession) -> set[str]:
    """Returns the settings of Spark's writer that the session has.

    A JVM's are one text: their map costs a call for each of them, 40 ms. What looks like one in a value counts, too.
    """
    of_jvm = getattr(spark.conf, "_jconf", None)
    if of_jvm is None:
        return {name for name in spark.conf.getAll if name.startswith(_OF_SPARK)}
    return set(_GIVEN.findall(of_jvm.getAllAsJava().toString()))


def _is_encrypted(spark: SparkSession) -> bool:
    """Returns whether Hadoop's settings have Spark encrypt Parquet files. Of a Spark Connect server nobody can tell."""
    context = context_of(spark)
    return context is not None and context._jsc.hadoopConfiguration().get(_ENCRYPTION) is not None


class TaskFiles(NamedTuple):
    """A batch whose tasks can write it: how they read, its columns for Spark and for Arrow, and how files are."""

    read: options.Options
    schema: StructType
    arrow: pyarrow.Schema
    form: ParquetForm

    def write(self, spark: SparkSession, directory: Path) -> list[Path]:
        """Writes the batch into the directory and returns its files. Others there are of attempts that failed."""
        stretches = planned(self.read)
        names = _names(spark, _Task(self, stretches, str(directory), spark.version), len(stretches))
        if len(names) != len(stretches):
            raise RuntimeError(f"{len(stretches)} tasks have written {len(names)} files")
        return [directory / name for name in names]


def task_files(source: Source, reservation: int, form: ParquetForm) -> TaskFiles | None:
    """Returns the batch of a reservation, None where Spark has to write it, or to say what is wrong."""
    from pyspark.errors import PySparkException

    with suppress(SinkError, options.OptionError, UnfitRowError, MQError, PySparkException):
        check_types(source.columns)
        # Of pyarrow's INT96 are all times, of Spark's those with a zone.
        if not form.int96 or "timestamp_ntz" not in source.columns.simpleString():
            read = source.named._replace(reservation=reservation)
            return TaskFiles(read, nullable(source.columns), source.arrow, form)
    return None


class _Task:
    """What a task does: it writes a file for each stretch of which it gets the number."""

    def __init__(self, of: TaskFiles, stretches: list[Stretch], directory: str, version: str) -> None:
        self._of, self._stretches, self._directory, self._version = of, stretches, directory, version

    def file(self, number: int) -> str:
        """Writes the file of a stretch, and returns its name."""
        import pyarrow as pa

        keep_freed_memory()
        of = self._of
        name = f"part-{number:05d}-{os.urandom(8).hex()}.parquet"  # a task that is repeated has another
        columns = arrow_columns(of.schema, self._version)
        batches = read_stretch(of.read, self._stretches[number], of.arrow)
        rows = (pa.Table.from_batches([batch]).cast(columns) for batch in batches)
        codec, int96 = of.form
        path = Path(self._directory, name)
        write_rows(rows, path, columns, codec=codec, row_group_bytes=_ROW_GROUP_BYTES, int96=int96)
        return name

    def files(self, numbers: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Yields the names of the files whose numbers come, both in a column."""
        import pyarrow as pa

        for batch in numbers:
            names = [self.file(number) for number in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_arrays([pa.array(names, pa.string())], names=["file"])


def _names(spark: SparkSession, task: _Task, count: int) -> list[str]:
    """Runs so many tasks, and returns the names of their files.

    A job without a plan starts 70 ms earlier, and has to be given the tag by which ``interruptAll`` finds the session's
    jobs. A session of Spark Connect has plans alone.
    """
    context = context_of(spark)
    if context is None:
        rows = spark.range(0, count, 1, count).mapInArrow(task.files, "file string").collect()
        return [row.file for row in rows]
    tag = f"spark-session-{spark._jsparkSession.sessionUUID()}"
    context.addJobTag(tag)
    try:
        return cast("list[str]", context.parallelize(range(count), count).map(task.file).collect())
    finally:
        context.removeJobTag(tag)
