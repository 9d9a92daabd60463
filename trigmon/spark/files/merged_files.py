"""Several Parquet files as one, with the columns of their table, by pyarrow: no Spark is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trigmon.spark.files.kept_schema import Kept
from trigmon.spark.files.parquet_file import VERSION, arrow_columns, check_types, write_rows
from trigmon.spark.sinks.sink import SinkError

if TYPE_CHECKING:
    import pyarrow

_OLD_CALENDARS = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_ROWS = 1 << 16
_ROW_GROUP_BYTES = 64 << 20


class Merger:
    """Writes files of one table. Raises SinkError for a table with a column of a type that cannot be written."""

    def __init__(self, known: Kept) -> None:
        from pyspark.sql.types import StructType

        self._columns = StructType([field for field in known.schema.fields if field.name not in known.partition_by])
        check_types(self._columns)

    def write(self, files: Sequence[Path], target: Path) -> None:
        """Writes the rows of these files into one. Raises SinkError where a file cannot be read so."""
        import pyarrow.parquet as pq

        version = (pq.read_metadata(files[0]).metadata or {}).get(VERSION.encode(), b"")
        columns = arrow_columns(self._columns, version)
        write_rows(self._read(files, columns), target, columns, codec="zstd", row_group_bytes=_ROW_GROUP_BYTES)

    def _read(self, files: Sequence[Path], columns: pyarrow.Schema) -> Iterator[pyarrow.Table]:
        """Yields the rows of each file, as the table has them; one file is open at a time."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        for file in files:
            with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as source:
                if any(key in (source.metadata.metadata or {}) for key in _OLD_CALENDARS):
                    raise SinkError(f"{file}: files with dates of the old calendar cannot be compacted")
                for batch in source.iter_batches(batch_size=_ROWS):
                    try:
                        yield _as_kept(pa.Table.from_batches([batch]), columns)
                    except pa.ArrowException as error:
                        raise SinkError(f"{file} does not fit the table's schema: {error}") from error


def _as_kept(rows: pyarrow.Table, wanted: pyarrow.Schema) -> pyarrow.Table:
    """Returns the rows with the columns of the table, null where the file has none."""
    import pyarrow as pa

    there = {name.lower(): name for name in rows.column_names}
    columns: list[Any] = [
        rows[there[field.name.lower()]].cast(field.type)
        if field.name.lower() in there
        else pa.nulls(len(rows), field.type)
        for field in wanted
    ]
    if unknown := there.keys() - {name.lower() for name in wanted.names}:
        raise pa.ArrowInvalid(f"it has a column {min(unknown)}")
    return pa.table(columns, schema=wanted)
