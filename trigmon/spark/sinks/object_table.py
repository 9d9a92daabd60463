"""A table of Parquet files on an object store that takes each batch once: one manifest makes a batch part of it.

    orders/_manifests/BATCH.json    names the files of a batch, or says that the table never takes it
    orders/_schemas/00000001.json   the columns, in Spark's words; the last one is in force
    orders/BATCH/X.parquet          the files of a batch, or a directory for each value, if it is partitioned

An object store has no rename. So the files have names of their own, and the manifest is written on the condition that
there is none of its name (``If-None-Match: *`` on S3): the first writer of a batch has written it, and a refused batch
has a manifest without files. Who reads the files without the manifests also reads those of killed attempts:
:func:`read_objects` and :func:`object_files` go by the manifests. Where other engines are to read, Delta is the better
choice. Files of attempts are deleted when their batch is written or refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote

from trigmon.spark.sinks.data_files import NULL, DataFile, arrow_schema, check_partitions, nullable, write_files
from trigmon.spark.sinks.place import Place, place_of
from trigmon.spark.sinks.sink import BatchName, BatchRefusedError, SinkError, column_names

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_MANIFESTS, _SCHEMAS = "_manifests", "_schemas"
_AT_ONCE = 16
"""Manifests that are read at a time."""


class ObjectSink:
    """A table at a URL, as ``s3://bucket/orders``. ``options`` are those of obstore: ``aws_region``, ...

    ``merge_schema``: new columns are added to the table. A column of another type is always refused.
    """

    def __init__(
        self,
        table: str,
        *,
        partition_by: str | Sequence[str] = (),
        merge_schema: bool = False,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._table = table
        self._place = place_of(table, options)
        self._partition_by = column_names(partition_by)
        self._merges = merge_schema

    def check(self) -> None:
        """Raises SinkError unless the store answers."""
        with _store_errors(self._table):
            _newest_schema(self._place)

    def write(self, frame: DataFrame, batch: BatchName) -> bool:
        """Writes a batch. Returns False when the table has it. Raises BatchRefusedError, SinkError."""
        with _store_errors(self._table):
            if (there := self._place.get(_manifest(batch.id))) is not None:
                return self._is_new(there, batch)
            check_partitions(arrow_schema(frame), self._partition_by)
            self._fit(nullable(frame.schema))
        files = write_files(frame, self._place.open, batch.id, self._partition_by)
        text = json.dumps({"batch": batch.id, "files": [file._asdict() for file in files]})
        with _store_errors(self._table):
            is_new = self._place.put_new(_manifest(batch.id), text.encode())
            there = None if is_new else self._place.get(_manifest(batch.id))
            # A store that was asked twice, since its answer was lost, says that the manifest is there: it is this one.
            if is_new or there == text.encode():
                self._sweep(batch.id, files)
                return True
            for file in files:
                self._place.delete(file.path)
            return self._is_new(there or b"{}", batch)

    def refuse(self, batch: BatchName) -> bool:
        """Makes the table refuse the batch from now on, from any job. Returns False when the table has it."""
        with _store_errors(self._table):
            text = json.dumps({"batch": batch.id, "refused": True})
            if self._place.put_new(_manifest(batch.id), text.encode()):
                self._sweep(batch.id, [])
                return True
            return bool(json.loads(self._place.get(_manifest(batch.id)) or b"{}").get("refused"))

    def _is_new(self, manifest: bytes, batch: BatchName) -> bool:
        """Returns False, since the batch has a manifest. Raises BatchRefusedError where that refuses it."""
        if json.loads(manifest).get("refused"):
            raise BatchRefusedError(f"{self._table} refuses batch {batch.id}: its messages come in other batches")
        return False

    def _fit(self, schema: StructType) -> None:
        """Keeps the columns of the first batch, and new ones, if so wanted. Raises SinkError for others."""
        from pyspark.sql.types import StructType

        while True:
            version, kept = _newest_schema(self._place)
            there = {field.name: field.dataType for field in kept.fields}
            for field in schema.fields:
                if there.get(field.name, field.dataType) != field.dataType:
                    raise SinkError(
                        f"column {field.name} of {self._table} is {there[field.name].simpleString()}, and the batch "
                        f"has {field.dataType.simpleString()}: cast it"
                    )
            new = [field for field in schema.fields if field.name not in there]
            if not new:
                return
            names = ", ".join(field.name for field in new)
            if version and not self._merges:
                raise SinkError(f"{self._table} has no column {names}: merge_schema adds it, or drop it")
            merged = StructType([*kept.fields, *new])
            if self._place.put_new(f"{_SCHEMAS}/{version + 1:08}.json", merged.json().encode()):
                return

    def _sweep(self, batch_id: str, files: Sequence[DataFile]) -> None:
        """Deletes what other attempts left of a batch whose manifest this call has written."""
        kept = {file.path for file in files}
        for path in self._place.names(batch_id):
            if path not in kept:
                with suppress(OSError):  # it is in nobody's way
                    self._place.delete(path)


def object_files(table: str, options: Mapping[str, str] | None = None) -> list[str]:
    """Returns the URLs of the files of the table, for an engine that reads Parquet. Raises SinkError."""
    with _store_errors(table):
        return [f"{table.rstrip('/')}/{path}" for path in _paths(place_of(table, options))]


def read_objects(spark: SparkSession, table: str, options: Mapping[str, str] | None = None) -> DataFrame:
    """Returns the table as a frame that Spark's tasks read without Hadoop's file systems. Raises SinkError."""
    place = place_of(table, options)
    with _store_errors(table):
        version, schema = _newest_schema(place)
        paths = _paths(place)
    if not version:
        raise SinkError(f"{table} is no table: nothing was written to it")
    slices = max(1, min(len(paths), 4 * spark.sparkContext.defaultParallelism))
    rows = spark.createDataFrame([(path,) for path in paths], "path string").repartition(slices)
    return rows.mapInArrow(_Reader(place, arrow_schema(spark.createDataFrame([], schema))), schema)


# -- parts of the above -------------------------------------------------------------------------------------


def _manifest(batch_id: str) -> str:
    return f"{_MANIFESTS}/{batch_id}.json"


def _newest_schema(place: Place) -> tuple[int, StructType]:
    """Returns the number of the schema in force and the schema, 0 and no columns where there is none."""
    from pyspark.sql.types import StructType

    names = place.names(_SCHEMAS)
    if not names:
        return 0, StructType([])
    return len(names), StructType.fromJson(json.loads(place.get(names[-1]) or b"{}"))


def _paths(place: Place) -> list[str]:
    """Returns the paths of all files that a manifest names."""
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        texts = list(threads.map(place.get, place.names(_MANIFESTS)))
    return [file["path"] for text in texts for file in json.loads(text or b"{}").get("files", ())]


class _Reader:
    """What a task does with the paths of its files."""

    def __init__(self, place: Place, schema: pyarrow.Schema) -> None:
        self._place, self._schema = place, schema

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Yields the rows of the files."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        for batch in batches:
            for path in batch.column(0).to_pylist():
                data = self._place.get(path)
                if data is None:
                    raise FileNotFoundError(path)
                yield from self._whole(pq.read_table(pa.BufferReader(data)), _values(path)).to_batches()

    def _whole(self, rows: pyarrow.Table, values: Mapping[str, str | None]) -> pyarrow.Table:
        """Returns the rows with all columns of the table: a partition's value, or null where a file has none."""
        import pyarrow as pa

        columns = []
        for field in self._schema:
            if field.name in rows.column_names:
                columns.append(rows[field.name].cast(field.type))
            else:
                value = pa.scalar(values.get(field.name), pa.string()).cast(field.type)
                columns.append(pa.repeat(value, len(rows)))
        return pa.table(columns, schema=self._schema)


def _values(path: str) -> dict[str, str | None]:
    """Returns the values of the partition columns in the path of a file."""
    pairs = [name.split("=", 1) for name in path.split("/")[1:-1]]
    return {name: None if value == NULL else unquote(value) for name, value in pairs}


@contextmanager
def _store_errors(table: str) -> Iterator[None]:
    """Raises an error of the store in the block as SinkError."""
    try:
        yield
    except (SinkError, BatchRefusedError):
        raise
    except Exception as error:  # obstore has an exception for each kind
        raise SinkError(f"{table}: {(str(error).strip() or type(error).__name__).splitlines()[0]}") from error
