"""A table of files as a sink of a drain: by Spark's writer, or by the tasks that read the messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from trigmon.spark.file_table import (
    PARQUET,
    check_form,
    refuse_batch,
    takes_task_files,
    write_batch,
    write_task_files,
)
from trigmon.spark.files.staging import check_directories, sweep
from trigmon.spark.poison_search.blame import unreadable
from trigmon.spark.sinks.place import is_url
from trigmon.spark.sinks.sink import BatchName, SinkError, column_names
from trigmon.spark.task_files import ParquetForm, parquet_form, task_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from trigmon.spark.frame_source import Source
    from trigmon.spark.queue_batches import Batch


class FileSink:
    """A directory of files (:mod:`trigmon.spark.file_table`), in Parquet or another ``form`` that Spark knows.

    ``partition_by``: below each batch is a directory for each value of these columns. ``options`` are those of Spark's
    writer. Parquet alone has a schema that is kept: ``merge_schema`` adds new columns to it, and a column of another
    type is always refused.
    """

    def __init__(
        self,
        table: str | Path,
        *,
        partition_by: str | Sequence[str] = (),
        form: str = PARQUET,
        options: Mapping[str, str] | None = None,
        merge_schema: bool = False,
    ) -> None:
        self.table = table
        self.merges = merge_schema
        self._partition_by = column_names(partition_by)
        self._form = form.lower()
        self._options = options
        if merge_schema and self._form != PARQUET:
            raise ValueError(f"merge_schema is for Parquet: of {form} no schema is kept")

    @property
    def is_plain(self) -> bool:
        """Whether tasks can write its files without Spark's writer."""
        return self._form == PARQUET and not self._partition_by and not self._options

    def check(self) -> None:
        """Raises SinkError for what is no table of such files. Removes what killed attempts have left in staging."""
        if is_url(self.table):
            raise SinkError(f"{self.table} is a URL, and files are written to a directory: see DeltaSink, ObjectSink")
        check_directories(self.table)
        check_form(self.table, self._form)
        sweep(self.table)

    def write(self, frame: DataFrame, batch: BatchName) -> bool:
        """Writes a batch. Returns False when the table has it. Raises BatchRefusedError, SinkError."""
        return write_batch(
            frame,
            self.table,
            batch.id,
            partition_by=self._partition_by,
            form=self._form,
            options=self._options,
            merge_schema=self.merges,
        )

    def refuse(self, batch: BatchName) -> bool:
        """Makes the table refuse a batch. Returns False when it has the batch."""
        return refuse_batch(self.table, batch.id)


class TaskWriter:
    """Has the tasks that read a batch write its files, until that fails for what may be no fault of a message."""

    def __init__(self, source: Source, sink: FileSink) -> None:
        self._source = source
        self._sink = sink
        self._has_failed = not sink.is_plain

    @cached_property
    def _form(self) -> ParquetForm | None:
        """How files are written. A small batch does not wait for the session's settings."""
        return parquet_form(self._source.spark)

    def write(self, batch: Batch) -> bool:
        """Returns False where Spark has to write it."""
        if self._has_failed or not batch.is_for_tasks or self._form is None:
            return False
        table, merges = self._sink.table, self._sink.merges
        files = task_files(self._source, batch.number, self._form)
        if files is None or not takes_task_files(files.schema, table, merge_schema=merges):
            return False
        try:
            write_task_files(self._source.spark, files, table, batch.id, merge_schema=merges)
        except Exception as error:
            self._has_failed = unreadable(error, self._source.secret) is None
            raise
        return True
