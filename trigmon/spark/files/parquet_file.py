"""A Parquet file written by pyarrow so that Spark reads it as its own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from trigmon.spark.files.kept_schema import SPARKS
from trigmon.spark.sinks.data_files import arrow_types
from trigmon.spark.sinks.sink import SinkError

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import DataType, StructType

VERSION = "org.apache.spark.version"
"""With it in a file, Spark knows by which calendar the dates are."""
_TYPES = frozenset(
    (
        *("ByteType", "ShortType", "IntegerType", "LongType", "FloatType", "DoubleType", "DecimalType", "StringType"),
        *("BinaryType", "BooleanType", "DateType", "TimestampType", "TimestampNTZType"),
    )
)
"""The types that pyarrow writes as Spark reads them."""


def check_types(schema: StructType) -> None:
    """Raises SinkError for a column of a type that pyarrow would write in another way than Spark."""
    for field in schema.fields:
        _check(field.dataType, field.name)


def arrow_columns(schema: StructType, version: str | bytes) -> pyarrow.Schema:
    """Returns the columns in Arrow's types, with the metadata by which Spark of that version reads them as its own."""
    return arrow_types(schema).with_metadata({SPARKS: schema.json(), VERSION: version})


def write_rows(
    rows: Iterable[pyarrow.Table],
    target: Path,
    columns: pyarrow.Schema,
    *,
    codec: str,
    row_group_bytes: int,
    int96: bool = False,
) -> None:
    """Writes rows of :func:`arrow_columns` into a file. ``int96``: all times are so. A row group is in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetWriter(target, columns, compression=codec, use_deprecated_int96_timestamps=int96) as writer:
        waiting: list[pyarrow.Table] = []
        size = 0
        for part in rows:
            waiting.append(part)
            size += part.nbytes
            if size >= row_group_bytes:
                writer.write_table(pa.concat_tables(waiting))
                waiting, size = [], 0
        if waiting:
            writer.write_table(pa.concat_tables(waiting))


def _check(kind: DataType, path: str) -> None:
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
        raise SinkError(f"column {path} is {kind.simpleString()}, which pyarrow writes in another way than Spark")
