"""A table of files that takes each batch once: a directory a batch, moved into its place by one rename.

    flights/batch=ID/       the files of a batch, or a directory for each month, if it is partitioned so
    flights/batch=ID/_refused   marks a batch that the table never takes: its messages come in other batches
    flights.staging/ID.X/   the files of one attempt, until they are moved into the table
    flights.staging/_refused.ID.X/   a refusal, until it is moved into the table

A batch that comes again is found by its name and not written a second time. A batch that was not written to its end is
not in the table. A job that was given up and still writes cannot add to its successor's batch: the first of them that
finishes has written it. So with this sink a drain is exactly once, wherever the job is killed. The table is on one file
system of this machine, which all tasks write to.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trigmon.spark.sinks.sink import BatchRefusedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["BatchRefusedError", "batch_of", "publish", "refuse_batch", "staging_of", "write_batch"]
_REFUSED = "_refused"
"""The name of the mark. Spark ignores files whose name begins with an underscore."""


def staging_of(table: str | Path) -> Path:
    """Returns the directory of uncommitted batches of a table: beside it, on the same file system."""
    table = Path(table)
    return table.with_name(f"{table.name}.staging")


def batch_of(table: str | Path, name: str) -> Path:
    """Returns the directory of a batch in its table, a partition as Spark reads them."""
    return Path(table) / f"batch={name}"


def refuse_batch(table: str | Path, name: str) -> bool:
    """Makes the table refuse the batch from now on, from any job. Returns False when the table has it already."""
    final = batch_of(table, name)
    # Not under the name of an attempt: a job that begins to write the batch removes those.
    staged = staging_of(table) / f"{_REFUSED}.{name}.{os.urandom(4).hex()}"
    staged.mkdir(parents=True)
    (staged / _REFUSED).touch()
    try:
        publish(staged, final)
    except FileExistsError:
        shutil.rmtree(staged)
        return (final / _REFUSED).exists()
    return True


def write_batch(
    frame: DataFrame,
    table: str | Path,
    name: str,
    *,
    partition_by: Sequence[str] = (),
    form: str = "parquet",
    options: Mapping[str, str] | None = None,
) -> bool:
    """Writes a batch durably (fsync). Returns False when the table has it already.

    Raises BatchRefusedError for one that :func:`refuse_batch` has refused.

    Below the batch's directory Spark makes one for each value of the columns ``partition_by``. ``form`` is Spark's name
    of a file format, ``options`` are its options.
    """
    final, staging = batch_of(table, name), staging_of(table)
    for left in staging.iterdir() if staging.exists() else ():
        if left.name.rpartition(".")[0] == name:
            shutil.rmtree(left, ignore_errors=True)
    if final.exists():
        return _is_there(final)
    staged = staging / f"{name}.{os.urandom(4).hex()}"
    where = f"file:{staged.absolute()}"  # not as_uri: Spark decodes nothing in a path
    frame.write.format(form).partitionBy(*partition_by).options(**(options or {})).save(where)
    try:
        publish(staged, final)
    except FileExistsError:
        shutil.rmtree(staged, ignore_errors=True)
        return _is_there(final)
    return True


def _is_there(final: Path) -> bool:
    if (final / _REFUSED).exists():
        raise BatchRefusedError(f"{final}: its messages come, or came, in other batches")
    return False


def publish(staged: str | Path, final: str | Path) -> None:
    """Moves a written directory to its place, atomically and durably (fsync).

    Both lie on one local file system. Raises FileExistsError for a ``final`` that is there, else FileNotFoundError for
    a ``staged`` that is not; nothing is ever replaced.
    """
    staged, final = Path(staged), Path(final)
    try:
        _sync_tree(staged)
        _move(staged, final)
    except OSError as error:
        if not final.exists():
            raise
        raise FileExistsError(f"{final} is there already, and {staged} would take its place") from error
    for directory in (final.parent, staged.parent, final.parent.parent):
        _sync(directory)


def _move(staged: Path, final: Path) -> None:
    """Moves a directory that is on the disk. Raises OSError for a ``final`` that is there."""
    final.parent.mkdir(parents=True, exist_ok=True)
    if final.exists():  # a rename would replace an empty one
        raise FileExistsError(final)
    staged.rename(final)


def _sync_tree(directory: Path) -> None:
    """Forces a written directory to the disk. Raises FileNotFoundError for one that is not there."""
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory} was not written")
    for folder, _, files in os.walk(directory):
        for file in files:
            _sync(Path(folder, file))
        _sync(Path(folder))
    _sync(directory.parent)
    _sync(directory.parent.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
