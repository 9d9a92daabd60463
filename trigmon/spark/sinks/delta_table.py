"""A Delta table that takes each batch once: an append with an application transaction, made by the package deltalake.

Spark's tasks write the Parquet files, ``deltalake`` commits them: no jar is needed, and any Spark will do. The commit
has the consumer as ``appId`` and a number that rises with the batches as ``version``
(:mod:`~trigmon.spark.sinks.high_water`), in one step with the files. Of two writers of one ``appId`` Delta lets the
first commit; the other looks again.

    orders/_delta_log/          Delta's own
    orders/BATCH/X.parquet      the files of a batch, or a directory for each value, if it is partitioned

Files of an attempt that was killed belong to no version of the table. They are deleted when their batch is written or
refused; what a job that was given up writes later is left to Delta's VACUUM.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trigmon.spark.files import kept_schema
from trigmon.spark.sinks.data_files import DataFile, arrow_schema, check_partitions, write_files
from trigmon.spark.sinks.high_water import (
    ATTEMPT,
    BATCH,
    MOST_CONFLICTS,
    Known,
    check_not_refused,
    key_of,
    known,
    new_attempt,
    refused_mark,
    written_mark,
)
from trigmon.spark.sinks.place import DELTA_LOG, Place, force, is_url, place_of
from trigmon.spark.sinks.sink import BatchName, BatchRefusedError, SinkError, column_names

if TYPE_CHECKING:
    import pyarrow
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame

_LOOKED_AT = 200
"""Commits that are looked at for the one of a batch."""
_YOUNG_S = 600
"""Older entries of the log have been written to the disk by the system."""
_HARMLESS = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "deletionVectors",
        "domainMetadata",
        "inCommitTimestamp",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
)
"""Features of a table that an append of plain files need not do anything for; invariants are looked at by column."""
_ABOUT_NULLS = ("nullable", "containsNull", "valueContainsNull", "metadata")
_DEMANDING = ("delta.constraints.", "delta.columnMapping.mode")
_DEMANDING_COLUMN = ("delta.generationExpression", "delta.invariants", "delta.identity.start")


class DeltaSink:
    """A Delta table at a path or URL. ``options`` are those of deltalake's storage: ``aws_region``, ...

    ``merge_schema``: new columns are added to the table. A column of another type is always refused.
    """

    def __init__(
        self,
        table: str | Path,
        *,
        partition_by: str | Sequence[str] = (),
        merge_schema: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._table = str(table) if is_url(table) else str(Path(table).absolute())
        self._partition_by = column_names(partition_by)
        self._merges = merge_schema
        self._options = dict(options or {})
        self._place: Place = place_of(table, self._options)
        self._log = None if is_url(self._table) else Path(self._table, DELTA_LOG)
        self._forced = -1
        self._owed: list[BatchName] = []

    def check(self) -> None:
        """Raises SinkError unless deltalake is there and the table, where it exists, can be appended to."""
        found = self._load()
        if found is not None:
            _check_features(found)
            self._check_partitioning(found)
        elif self._log is not None and any(Path(self._table).glob(f"{kept_schema.BATCH}=*")):
            raise SinkError(f"{self._table} is a table of Parquet files: name another directory")

    def write(self, frame: DataFrame, batch: BatchName) -> bool:
        """Appends a batch. Returns False when the table has it. Raises BatchRefusedError, SinkError."""
        found = self._load()
        if self._has(found, batch):
            return False
        schema = arrow_schema(frame)
        check_partitions(schema, self._partition_by)
        found = found or self._create(schema)
        while self._owed:
            if not self.refuse(self._owed[0]):
                raise SinkError(f"{self._table}: batch {self._owed[0].number} was written while it was being refused")
            del self._owed[0]
        self._fit(found, schema)
        files = write_files(frame, self._place.open, batch.id, self._partition_by)
        attempt = new_attempt()
        try:
            is_new = self._commit(batch, attempt, written_mark(batch), files)
        except BatchRefusedError:
            self._discard(batch, attempt, files)
            raise
        if is_new:
            self._sweep(batch.id, files)
        else:
            self._discard(batch, attempt, files)
        return is_new

    def refuse(self, batch: BatchName) -> bool:
        """Makes the table refuse the batch from now on, from any job. Returns False when the table has it."""
        found = self._load()
        if found is None:
            self._owed.append(batch)  # there is no table yet that could remember it
            return True
        try:
            if not self._commit(batch, new_attempt(), refused_mark(batch), []):
                return False
        except BatchRefusedError:  # it was refused before, or a later one is there: perhaps it was written, too
            return True
        self._sweep(batch.id, [])
        return True

    # -- what the table knows -------------------------------------------------------------------------------

    def _load(self) -> DeltaTable | None:
        """Returns the newest version of the table, None where there is none."""
        try:
            from deltalake import DeltaTable
            from deltalake.exceptions import TableNotFoundError
        except ImportError:
            raise SinkError("Delta tables are written by deltalake: pip install 'trigmon[delta]'") from None
        with self._errors("reading"):
            try:
                return DeltaTable(self._table, storage_options=self._options)
            except TableNotFoundError:
                return None

    def _has(self, found: DeltaTable | None, batch: BatchName) -> bool:
        """Returns whether the batch is in the table. Raises BatchRefusedError."""
        state = known(_mark(found, batch), batch)
        check_not_refused(state, self._table, batch)
        if state is Known.WRITTEN:
            self._force_log()
        return state is Known.WRITTEN

    def _check_partitioning(self, found: DeltaTable) -> None:
        there = list(found.metadata().partition_columns)
        if self._partition_by and there != self._partition_by:
            raise SinkError(f"{self._table} is partitioned by {there}, not by {self._partition_by}: leave it out")
        self._partition_by = there

    # -- commits --------------------------------------------------------------------------------------------

    def _create(self, schema: pyarrow.Schema) -> DeltaTable:
        from deltalake import DeltaTable, Schema

        with self._errors("making"):
            of = {"partition_by": self._partition_by, "mode": "ignore", "storage_options": self._options}
            DeltaTable.create(self._table, Schema.from_arrow(schema), **of)
        made = self._load()
        if made is None:
            raise SinkError(f"{self._table} was made and is not there")
        return made

    def _fit(self, found: DeltaTable, schema: pyarrow.Schema) -> DeltaTable:
        """Adds new columns, if so wanted. Raises SinkError for columns that the table does not have as they are."""
        from deltalake import Schema

        self._check_partitioning(found)
        with self._errors("reading columns for"):
            wanted = {field.name: field for field in Schema.from_arrow(schema).fields}
        there = {field.name: field for field in found.schema().fields}
        for name in wanted.keys() & there.keys():
            if (given := _type(wanted[name])) != (kept := _type(there[name])):
                raise SinkError(f"column {name} of {self._table} is {kept}, and the batch has {given}: cast it")
        new = [field for name, field in wanted.items() if name not in there]
        if not new:
            return found
        names = ", ".join(field.name for field in new)
        if not self._merges:
            raise SinkError(f"{self._table} has no column {names}: merge_schema adds it, or drop it")
        with self._errors(f"adding {names} to"):
            found.alter.add_columns(new)
        return found

    def _commit(self, batch: BatchName, attempt: str, mark: int, files: Sequence[DataFile]) -> bool:
        """Commits the files with the mark, in one step. Returns False when the table has the batch already."""
        from deltalake import CommitProperties, Transaction
        from deltalake.exceptions import CommitFailedError, DeltaError

        metadata = {BATCH: batch.id, ATTEMPT: attempt}
        marked = [Transaction(key_of(batch), mark)]
        properties = CommitProperties(custom_metadata=metadata, app_transactions=marked)
        actions = [_added(file) for file in files]
        for _ in range(MOST_CONFLICTS):
            found = self._load()
            if found is None or self._has(found, batch):
                return self._writer(batch) == attempt
            of = (actions, "append", found.schema(), self._partition_by)
            try:
                found.create_write_transaction(*of, commit_properties=properties)
            except CommitFailedError:
                continue
            except (DeltaError, OSError) as error:
                found = self._load()
                # A store that did not answer may have taken it.
                if _mark(found, batch) != mark:
                    raise SinkError(f"committing to {self._table}: {_line(error)}") from error
            self._force_log()
            return True
        raise SinkError(f"{self._table}: other writers committed {MOST_CONFLICTS} times meanwhile")

    def _force_log(self) -> None:
        """Forces the young entries of a log on this machine to the disk: deltalake leaves that to the system."""
        found = self._load() if self._log is not None else None
        if self._log is None or found is None:
            return
        newest = version = found.version()
        while version > self._forced:
            entry = self._log / f"{version:020}.json"
            if not entry.exists() or entry.stat().st_mtime < time.time() - _YOUNG_S:
                break
            force(entry)
            version -= 1
        for directory in (self._log, *self._log.parents[:2]):
            force(directory)
        self._forced = newest

    def _writer(self, batch: BatchName) -> str | None:
        """Returns which attempt has written or refused the batch, None where that is not known any more."""
        found = self._load()
        with self._errors("reading the log of"):
            commits = found.history(_LOOKED_AT) if found is not None else []
        return next((one.get(ATTEMPT) for one in commits if one.get(BATCH) == batch.id), None)

    def _sweep(self, batch_id: str, files: Sequence[DataFile]) -> None:
        """Deletes what other attempts left of a batch that this call has committed or refused: no commit names it."""
        kept = {file.path for file in files}
        with suppress(OSError, SinkError):
            self._delete([path for path in self._place.names(batch_id) if path not in kept])

    def _discard(self, batch: BatchName, attempt: str, files: Sequence[DataFile]) -> None:
        """Deletes the files of an attempt whose batch another one has written or refused."""
        with suppress(SinkError):
            if self._writer(batch) not in (None, attempt):
                self._delete([file.path for file in files])

    def _delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            with suppress(OSError, SinkError):  # it is in nobody's way
                self._place.delete(path)

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        """Raises an error of deltalake, or of the system, in the block as SinkError."""
        try:
            yield
        except SinkError:
            raise
        except Exception as error:  # of a type that Delta has not deltalake says Exception, and no more
            raise SinkError(f"{doing} {self._table}: {_line(error)}") from error


# -- parts of the above -------------------------------------------------------------------------------------


def _mark(found: DeltaTable | None, batch: BatchName) -> int | None:
    mark: int | None = found.transaction_version(key_of(batch)) if found is not None else None
    return mark


def _check_features(found: DeltaTable) -> None:
    """Raises SinkError for a table whose features ask more of a writer than files and their names."""
    unknown = sorted(set(found.protocol().writer_features or ()) - _HARMLESS)
    settings = found.metadata().configuration
    unknown += [name for name, value in settings.items() if name.startswith(_DEMANDING) and value != "none"]
    for field in found.schema().fields:
        unknown += [f"{name} of column {field.name}" for name in _DEMANDING_COLUMN if name in field.metadata]
    if unknown:
        raise SinkError(f"a writer of this table must know {', '.join(unknown)}: write it with Spark's Delta, by each=")


def _type(field: Any) -> str:
    """Returns a column's type as Delta writes it, without what of it may be null."""
    return json.dumps(_without_nulls(json.loads(field.type.to_json())))


def _without_nulls(kind: Any) -> Any:
    if isinstance(kind, list):
        return [_without_nulls(item) for item in kind]
    if not isinstance(kind, dict):
        return kind
    return {name: _without_nulls(value) for name, value in kind.items() if name not in _ABOUT_NULLS}


def _added(file: DataFile) -> Any:
    """Returns a file as Delta's action that adds it."""
    from deltalake.transaction import AddAction

    statistics: dict[str, Any] = {"numRecords": file.rows}
    for at, name in enumerate(("minValues", "maxValues", "nullCount")):
        statistics[name] = {column: bounds[at] for column, bounds in file.bounds.items()}
    now = int(time.time() * 1000)
    return AddAction(file.path, file.size, file.partition, now, True, json.dumps(statistics))


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
