"""A table of files that takes each batch once: a directory a batch, moved into its place by one rename.

    flights/batch=ID/       the files of a batch, or a directory for each month, if it is partitioned so
    flights/batch=ID/_refused   marks a batch that the table never takes: its messages come in other batches
    flights/_common_metadata    the schema of a table of Parquet files (:mod:`~trigmon.spark.files.kept_schema`)
    flights/batch=compacted-X/  several batches (:mod:`~trigmon.spark.files.compaction`)
    flights.staging/ID.X/   one attempt, until its files are moved into the table (:mod:`~trigmon.spark.files.staging`)

A batch that comes again is found by its name and not written a second time. A batch that was not written to its end is
not in the table. A job that was given up and still writes cannot add to its successor's batch: the first of them that
finishes has written it. So with this sink a drain is exactly once, wherever the job is killed. The table is on one file
system of this machine, which all tasks write to.

A table of Parquet files stays readable: a batch whose columns do not fit is refused before a file is written, by an
error of the sink that blames no message.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from trigmon.spark.files import kept_schema
from trigmon.spark.files.compaction import has_member
from trigmon.spark.files.staging import attempt, changing, file_errors, staging_of
from trigmon.spark.plan_errors import plan_errors
from trigmon.spark.sinks.place import DELTA_LOG, force
from trigmon.spark.sinks.sink import BatchRefusedError, SinkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from trigmon.spark.task_files import TaskFiles

__all__ = ["PARQUET", "BatchRefusedError", "batch_of", "check_form", "refuse_batch", "staging_of", "write_batch"]
_REFUSED = "_refused"
"""The name of the mark. Spark ignores files whose name begins with an underscore."""
PARQUET = "parquet"


def batch_of(table: str | Path, name: str) -> Path:
    """Returns the directory of a batch in its table, a partition as Spark reads them."""
    return Path(table) / f"{kept_schema.BATCH}={name}"


def refuse_batch(table: str | Path, name: str) -> bool:
    """Makes the table refuse the batch from now on, from any job. Returns False when the table has it already."""
    with file_errors(table), attempt(table, name) as staged:
        staged.mkdir()
        (staged / _REFUSED).touch()
        _sync_tree(staged)
        with changing(table):
            try:
                if _has(table, name):
                    return False
            except BatchRefusedError:
                return True
            _move(staged, batch_of(table, name))
    return True


def write_batch(
    frame: DataFrame,
    table: str | Path,
    name: str,
    *,
    partition_by: Sequence[str] = (),
    form: str = PARQUET,
    options: Mapping[str, str] | None = None,
    merge_schema: bool = False,
) -> bool:
    """Writes a batch durably (fsync). Returns False when the table has it already.

    Raises BatchRefusedError for one that :func:`refuse_batch` has refused, and SinkError for columns of other types
    than the table's, and for new ones without ``merge_schema``.

    Below the batch's directory Spark makes one for each value of the columns ``partition_by``. ``form`` is Spark's name
    of a file format, ``options`` are its options. Of the formats Parquet alone has a schema that is kept.
    """
    with file_errors(table), attempt(table, name) as staged:
        if _has(table, name):
            return False
        fit = _fit(frame.schema, Path(table), partition_by, form, merges=merge_schema)
        if fit is not None:
            frame = frame.withColumnsRenamed(fit.renamed) if fit.renamed else frame
            partition_by = fit.kept.partition_by
        kept_schema.check_partitions(frame.schema.fieldNames(), partition_by, table)
        where = f"file:{staged.absolute()}"  # not as_uri: Spark decodes nothing in a path
        with plan_errors(f"table {table}"):
            frame.write.format(form).partitionBy(*partition_by).options(**(options or {})).save(where)
        # Fitted once more: another drain may have added a column meanwhile.
        refit = partial(_fit, frame.schema, Path(table), partition_by, form, merges=merge_schema)
        return _commit(staged, table, name, refit)


def check_form(table: str | Path, form: str) -> None:
    """Raises SinkError for a table of Parquet files that is to have others, too, and for a Delta table.

    One that was made a Delta table later, with the batches that are in it, is written to still.
    """
    if not Path(table, kept_schema.FILE).exists() and any(Path(table, DELTA_LOG).glob("*.json")):
        raise SinkError(f"{table} is a Delta table: write to it by to=DeltaSink(...), or to another directory")
    if form.lower() != PARQUET and Path(table, kept_schema.FILE).exists():
        raise SinkError(f"{table} is a table of Parquet files: write {form} to another table")


def takes_task_files(schema: StructType, table: str | Path, *, merge_schema: bool = False) -> bool:
    """Returns whether tasks can write rows of these columns as the table has them, without Spark's writer.

    They cannot where the table has directories of values, or column names of other case, and where it refuses them.
    """
    with suppress(SinkError):
        fit = _fit(schema, Path(table), (), PARQUET, merges=merge_schema)
        return fit is not None and not fit.renamed and not fit.kept.partition_by
    return False


def write_task_files(
    spark: SparkSession, files: TaskFiles, table: str | Path, name: str, *, merge_schema: bool = False
) -> bool:
    """Writes a batch as :func:`write_batch` does, by the tasks that read it; the table takes such files."""
    with file_errors(table), attempt(table, name) as staged:
        if _has(table, name):
            return False
        staged.mkdir()
        work = staged.with_name("tasks")
        work.mkdir()
        for file in files.write(spark, work):
            file.rename(staged / file.name)
        refit = partial(_fit, files.schema, Path(table), (), PARQUET, merges=merge_schema)
        return _commit(staged, table, name, refit)


def _commit(staged: Path, table: str | Path, name: str, refit: Callable[[], kept_schema.Fit | None]) -> bool:
    """Makes a written directory the batch, durably. Returns False when the table has it."""
    _sync_tree(staged)
    with changing(table):
        if _has(table, name):
            return False
        _keep(refit(), Path(table), staged.parent)
        _move(staged, batch_of(table, name))
    return True


def _has(table: str | Path, name: str) -> bool:
    """Returns whether the table has the batch, durably then. Raises BatchRefusedError for one that it never takes."""
    final = batch_of(table, name)
    if (final / _REFUSED).exists():
        raise BatchRefusedError(f"{final}: its messages come, or came, in other batches")
    if final.exists() or has_member(Path(table), name):
        force(final.parent)
        return True
    return False


def _fit(schema: StructType, table: Path, by: Sequence[str], form: str, *, merges: bool) -> kept_schema.Fit | None:
    """Returns how a batch fits the table's schema, None for a format without one. Raises SinkError."""
    check_form(table, form)
    if form.lower() != PARQUET:
        return None
    return kept_schema.fit(schema, by, kept_schema.kept(table), table, merges=merges)


def _keep(fit: kept_schema.Fit | None, table: Path, own: Path) -> None:
    """Puts the schema that follows from the batch in its place, atomically, before the batch.

    A kill between the two leaves a column of which no file has values yet.
    """
    if fit is None or ((table / kept_schema.FILE).exists() and fit.kept == kept_schema.kept(table)):
        return
    kept_schema.write(fit.kept, own / "schema")
    table.mkdir(parents=True, exist_ok=True)
    (own / "schema").replace(table / kept_schema.FILE)
    force(table)


def _move(staged: Path, final: Path) -> None:
    """Moves a directory that is on the disk to its place, durably (fsync). The table's lock is held."""
    final.parent.mkdir(parents=True, exist_ok=True)
    staged.rename(final)
    for directory in (final.parent, staged.parent, final.parent.parent):
        force(directory)


def _sync_tree(directory: Path) -> None:
    """Forces a written directory to the disk. Raises FileNotFoundError for one that is not there."""
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory} was not written")
    for folder, _, files in os.walk(directory):
        for file in files:
            force(Path(folder, file))
        force(Path(folder))
