"""An Iceberg table that takes each batch once: an append that says in the table's properties which batch it was.

Spark's tasks write the Parquet files, ``pyiceberg`` adds them to the table through any of its catalogs: no jar is
needed, and any Spark will do. One commit has the files, a snapshot with the property ``trigmon.batch``, and a property
of the *table* with the consumer's last number (:mod:`~trigmon.spark.sinks.high_water`): snapshots expire, it stays. Of
two commits over the same snapshot a catalog takes the first; the other looks again.

Files of an attempt that was killed belong to no snapshot. They are left to the maintenance of orphan files that every
Iceberg table needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from trigmon.spark.sinks.data_files import arrow_schema, check_partitions, write_files
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
from trigmon.spark.sinks.sink import BatchName, BatchRefusedError, SinkError, column_names

if TYPE_CHECKING:
    import pyarrow
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table, Transaction
    from pyspark.sql import DataFrame

_MARK = "trigmon.mark."
_RETRIES = "commit.retry.num-retries"


class IcebergSink:
    """The table ``namespace.name`` of a catalog. ``options`` are pyiceberg's: ``uri``, ``warehouse``, ``type``, ...

    ``merge_schema``: new columns are added to the table. A column of another type is always refused.
    """

    def __init__(
        self,
        table: str,
        *,
        catalog: str = "default",
        partition_by: str | Sequence[str] = (),
        merge_schema: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._table = table
        self._catalog_name = catalog
        self._options = dict(options or {})
        self._partition_by = column_names(partition_by)
        self._merges = merge_schema
        self._catalog: Catalog | None = None
        self._owed: list[BatchName] = []

    def check(self) -> None:
        """Raises SinkError unless pyiceberg is there, the catalog answers, and the table can be appended to."""
        found = self._load()
        if found is not None:
            self._check_partitioning(found)

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
        opener = partial(_new_file, found.io, found.location().rstrip("/"))
        by = self._partition_by
        files = write_files(frame, opener, f"data/{batch.id}", by, keeps_partitions=True)
        paths = [f"{found.location().rstrip('/')}/{file.path}" for file in files]
        attempt = new_attempt()
        try:
            is_new = self._commit(batch, attempt, written_mark(batch), paths)
        except BatchRefusedError:
            self._discard(batch, attempt, paths)
            raise
        if not is_new:
            self._discard(batch, attempt, paths)
        return is_new

    def refuse(self, batch: BatchName) -> bool:
        """Makes the table refuse the batch from now on, from any job. Returns False when the table has it."""
        if self._load() is None:
            self._owed.append(batch)  # there is no table yet that could remember it
            return True
        try:
            return self._commit(batch, new_attempt(), refused_mark(batch), [])
        except BatchRefusedError:
            return True

    # -- what the table knows -------------------------------------------------------------------------------

    def _opened(self) -> Catalog:
        if self._catalog is None:
            try:
                from pyiceberg.catalog import load_catalog
            except ImportError:
                raise SinkError("Iceberg tables are written by pyiceberg: pip install 'trigmon[iceberg]'") from None
            with self._errors("opening the catalog of"):
                self._catalog = load_catalog(self._catalog_name, **self._options)
        return self._catalog

    def _load(self) -> Table | None:
        """Returns the table as it is now, None where there is none."""
        catalog = self._opened()
        from pyiceberg.exceptions import NoSuchTableError

        with self._errors("reading"):
            try:
                return catalog.load_table(self._table)
            except NoSuchTableError:
                return None

    def _has(self, found: Table | None, batch: BatchName) -> bool:
        """Returns whether the batch is in the table. Raises BatchRefusedError."""
        state = known(_mark(found, batch), batch)
        check_not_refused(state, self._table, batch)
        return state is Known.WRITTEN

    def _check_partitioning(self, found: Table) -> None:
        names = [field.name for field in found.spec().fields]
        if others := [str(field.transform) for field in found.spec().fields if str(field.transform) != "identity"]:
            raise SinkError(f"{self._table} is partitioned by {others[0]}: only the values of columns themselves fit")
        if self._partition_by and names != self._partition_by:
            raise SinkError(f"{self._table} is partitioned by {names}, not by {self._partition_by}: leave it out")
        self._partition_by = names

    # -- commits --------------------------------------------------------------------------------------------

    def _create(self, schema: pyarrow.Schema) -> Table:
        from pyiceberg.exceptions import TableAlreadyExistsError

        catalog = self._opened()
        with self._errors("making"):
            catalog.create_namespace_if_not_exists(self._table.rpartition(".")[0])
            with (
                suppress(TableAlreadyExistsError),
                catalog.create_table_transaction(self._table, schema=schema) as new,
                new.update_spec() as spec,
            ):
                for name in self._partition_by:
                    spec.add_identity(name)
            return catalog.load_table(self._table)

    def _fit(self, found: Table, schema: pyarrow.Schema) -> None:
        """Adds new columns, if so wanted. Raises SinkError for columns that the table does not have as they are."""
        import pyarrow as pa
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        self._check_partitioning(found)
        there = {field.name: _type(field.type) for field in schema_to_pyarrow(found.schema(), include_field_ids=False)}
        for field in schema:
            if there.get(field.name, _type(field.type)) != _type(field.type):
                raise SinkError(
                    f"column {field.name} of {self._table} is {there[field.name]}, and the batch has "
                    f"{_type(field.type)}: cast it"
                )
        new = [field for field in schema if field.name not in there]
        if not new:
            return
        names = ", ".join(field.name for field in new)
        if not self._merges:
            raise SinkError(f"{self._table} has no column {names}: merge_schema adds it, or drop it")
        with self._errors(f"adding {names} to"), found.update_schema() as update:
            update.union_by_name(pa.schema(new))

    def _commit(self, batch: BatchName, attempt: str, mark: int, paths: Sequence[str]) -> bool:
        """Commits the files with the mark, in one step. Returns False when the table has the batch already."""
        from pyiceberg.exceptions import CommitFailedException

        for _ in range(MOST_CONFLICTS):
            found = self._load()
            if found is None or self._has(found, batch):
                return self._writer(batch) == attempt
            # A repetition by pyiceberg itself would append over a snapshot that was not looked at.
            found.metadata.properties[_RETRIES] = "0"
            try:
                with found.transaction() as transaction:
                    transaction.set_properties({_MARK + key_of(batch): str(mark)})
                    _add(transaction, paths, {BATCH: batch.id, ATTEMPT: attempt})
            except CommitFailedException:
                continue
            except Exception as error:
                # A catalog that did not answer may have taken it.
                if _mark(self._load(), batch) != mark:
                    raise SinkError(f"committing to {self._table}: {_line(error)}") from error
            return True
        raise SinkError(f"{self._table}: other writers committed {MOST_CONFLICTS} times meanwhile")

    def _writer(self, batch: BatchName) -> str | None:
        """Returns which attempt has written or refused the batch, None where that is not known any more."""
        found = self._load()
        summaries = [snapshot.summary for snapshot in found.snapshots()] if found is not None else []
        properties_of = [summary.additional_properties for summary in summaries if summary is not None]
        return next((one.get(ATTEMPT) for one in reversed(properties_of) if one.get(BATCH) == batch.id), None)

    def _discard(self, batch: BatchName, attempt: str, paths: Sequence[str]) -> None:
        """Deletes the files of an attempt whose batch another one has written or refused."""
        with suppress(SinkError):
            if self._writer(batch) in (None, attempt):
                return
            if (found := self._load()) is not None:
                for path in paths:
                    with suppress(Exception):  # it is in nobody's way
                        found.io.delete(path)

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        """Raises an error of pyiceberg, its catalog or its storage in the block as SinkError."""
        try:
            yield
        except SinkError:
            raise
        except Exception as error:  # a catalog has the exceptions of its own driver
            raise SinkError(f"{doing} {self._table}: {_line(error)}") from error


# -- parts of the above -------------------------------------------------------------------------------------


def _mark(found: Table | None, batch: BatchName) -> int | None:
    text = found.properties.get(_MARK + key_of(batch)) if found is not None else None
    return int(text) if text is not None else None


def _new_file(io: Any, location: str, path: str) -> BinaryIO:
    """Returns a new file of the table's storage, in a task."""
    return cast(BinaryIO, io.new_output(f"{location}/{path}").create())


def _add(transaction: Transaction, paths: Sequence[str], properties: dict[str, str]) -> None:
    """Adds the files in a snapshot. An empty one is a snapshot, too, so no commit over the one before is taken."""
    if paths:
        transaction.add_files(list(paths), snapshot_properties=properties, check_duplicate_files=False)
    else:
        with transaction.update_snapshot(snapshot_properties=properties).fast_append():
            pass


def _type(kind: pyarrow.DataType) -> str:
    """Returns a column's type without what of it may be null, and without how long its texts may be."""
    return str(kind).replace("large_", "").replace(" not null", "")


def _line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
