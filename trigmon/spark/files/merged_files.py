"""Several Parquet files as one, with the columns of their table, by pyarrow: no Spark is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trigmon.spark.files.kept_schema import SPARKS, Kept
from trigmon.spark.sinks.sink import SinkError

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import DataType

_VERSION = b"org.apache.spark.version"
_OLD_CALENDARS = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_ROW_GROUP_BYTES = 64 << 20
_ROWS = 1 << 16
_TYPES = frozenset(
    (
        *("ByteType", "ShortType", "IntegerType", "LongType", "FloatType", "DoubleType", "DecimalType", "StringType"),
        *("BinaryType", "BooleanType", "DateType", "TimestampType", "TimestampNTZType"),
    )
)
"""The types that pyarrow writes as Spark reads them."""


class Merger:
    """Writes files of one table. Raises SinkError for a table with a column of a type that cannot be written."""

    def __init__(self, known: Kept) -> None:
        from pyspark.sql.pandas.types import to_arrow_schema
        from pyspark.sql.types import StructType

        columns = StructType([field for field in known.schema.fields if field.name not in known.partition_by])
        for field in columns.fields:
            _check(field.dataType, field.name)
        self._schema = to_arrow_schema(columns, timezone="UTC")
        self._words = columns.json()

    def write(self, files: Sequence[Path], target: Path) -> None:
        """Writes the rows of these files into one. Raises SinkError where a file cannot be read so."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        version = (pq.read_metadata(files[0]).metadata or {}).get(_VERSION, b"")
        words = {SPARKS: self._words, _VERSION: version}
        with pq.ParquetWriter(target, self._schema.with_metadata(words), compression="zstd") as writer:
            waiting: list[pyarrow.Table] = []
            size = 0
            for rows in self._read(files):
                waiting.append(rows)
                size += rows.nbytes
                if size >= _ROW_GROUP_BYTES:
                    writer.write_table(pa.concat_tables(waiting))
                    waiting, size = [], 0
            if waiting:
                writer.write_table(pa.concat_tables(waiting))

    def _read(self, files: Sequence[Path]) -> Iterator[pyarrow.Table]:
        """Yields the rows of each file, as the table has them; one file is open at a time."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        for file in files:
            with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as source:
                if any(key in (source.metadata.metadata or {}) for key in _OLD_CALENDARS):
                    raise SinkError(f"{file}: files with dates of the old calendar cannot be compacted")
                for batch in source.iter_batches(batch_size=_ROWS):
                    try:
                        yield self._as_kept(pa.Table.from_batches([batch]))
                    except pa.ArrowException as error:
                        raise SinkError(f"{file} does not fit the table's schema: {error}") from error

    def _as_kept(self, rows: pyarrow.Table) -> pyarrow.Table:
        """Returns the rows with the columns of the table, null where the file has none."""
        import pyarrow as pa

        there = {name.lower(): name for name in rows.column_names}
        columns: list[Any] = [
            rows[there[field.name.lower()]].cast(field.type)
            if field.name.lower() in there
            else pa.nulls(len(rows), field.type)
            for field in self._schema
        ]
        if unknown := there.keys() - {name.lower() for name in self._schema.names}:
            raise pa.ArrowInvalid(f"it has a column {min(unknown)}")
        return pa.table(columns, schema=self._schema)


def _check(kind: DataType, path: str) -> None:
    """Raises SinkError for a type that pyarrow would write in another way than Spark."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        for field in kind.fields:
            _check(field.dataType, f"{path}.{field.name}")
    elif isinstance(kind, ArrayType):
        _check(kind.elementType, f"{path}.element")
    elif isinstance(kind, MapType):
        _check(kind.keyType, f"{path}.key")
        _check(kind.valueType, f"{path}.value")
    elif type(kind).__name__ not in _TYPES:
        raise SinkError(f"column {path} is {kind.simpleString()}, which cannot be compacted")
