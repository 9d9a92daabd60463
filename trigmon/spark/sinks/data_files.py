"""Parquet files of a batch that belong to no table yet: tasks write them, and a commit makes them part of a table.

Each has a name of its own below the batch's directory, so no attempt writes over the files of another.
"""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple
from urllib.parse import quote

from trigmon.spark.plan_errors import plan_errors
from trigmon.spark.sinks.sink import SinkError

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The directory of rows whose partition column is null, by the name that Hive and Spark give it."""
_LONGEST_BOUND = 32
"""Longer texts are no bounds of a column: a cut upper bound would not be one."""


_OWN_ERROR = re.compile(r"^\S*\bSinkError: (.*)", re.MULTILINE)


class DataFile(NamedTuple):
    """A written file: its path, its bytes and rows, its partition's values as text, and the bounds of its columns.

    The bounds of a column are its least and greatest value, as JSON has them, and how many are null.
    """

    path: str
    size: int
    rows: int
    partition: dict[str, str | None]
    bounds: dict[str, tuple[Any, Any, int]]


def arrow_schema(frame: DataFrame) -> pyarrow.Schema:
    """Returns the columns of the frame as they are written: times in UTC, each column with nulls."""
    from pyspark.errors import PySparkException

    try:
        return arrow_types(nullable(frame.schema))
    except (PySparkException, TypeError, ValueError) as error:
        raise SinkError(f"a column cannot be written: {str(error).splitlines()[0]}") from None


def arrow_types(schema: StructType) -> pyarrow.Schema:
    """Returns the columns in Arrow's types: times in UTC, each column with nulls. Raises Spark's errors."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    return pa.schema([pa.field(field.name, field.type) for field in to_arrow_schema(schema, timezone="UTC")])


def nullable(schema: StructType) -> StructType:
    """Returns the columns so that each may be null, and what they contain, too: the next batch may have nulls."""
    from pyspark.sql.types import StructType

    text = re.sub(r'"(nullable|containsNull|valueContainsNull)":false', r'"\1":true', schema.json())
    return StructType.fromJson(json.loads(text))


def check_partitions(schema: pyarrow.Schema, partition_by: Sequence[str]) -> None:
    """Raises SinkError unless the columns are there, of types whose values a directory's name can hold."""
    import pyarrow as pa

    kinds = (pa.types.is_integer, pa.types.is_string, pa.types.is_boolean, pa.types.is_date)
    for name in partition_by:
        if name not in schema.names:
            raise SinkError(f"partition_by: there is no column {name}; there are {', '.join(schema.names)}")
        kind = schema.field(name).type
        if not any(fits(kind) for fits in kinds):
            raise SinkError(f"partition_by: {name} is {kind}; text, whole numbers, booleans and dates can be one")
    if len(partition_by) == len(schema):
        raise SinkError("partition_by: a column must be left beside those")


def write_files(
    frame: DataFrame,
    open_file: Callable[[str], BinaryIO],
    directory: str,
    partition_by: Sequence[str] = (),
    *,
    keeps_partitions: bool = False,
) -> list[DataFile]:
    """Writes the rows of the frame below the directory and returns the files; no rows are no file.

    ``open_file`` is called in the tasks. ``keeps_partitions``: the files have the columns ``partition_by``, too.
    """
    schema = arrow_schema(frame)
    check_partitions(schema, partition_by)
    write = _Task(open_file, directory, schema, tuple(partition_by), keeps_partitions)
    try:
        with plan_errors("the batch cannot be written"):
            found = frame.mapInArrow(write, "file string").collect()
    except Exception as error:  # Spark raises what a task raised as its own, with the traceback as its text
        if (own := _OWN_ERROR.search(str(error))) is None:
            raise
        raise SinkError(own[1]) from error
    return [_file(json.loads(row.file)) for row in found]


def _file(known: dict[str, Any]) -> DataFile:
    bounds = {name: (least, most, nulls) for name, (least, most, nulls) in known["bounds"].items()}
    return DataFile(known["path"], known["size"], known["rows"], known["partition"], bounds)


class _Task:
    """What a task does with its rows: a file for each value of the partition columns."""

    def __init__(
        self,
        open_file: Callable[[str], BinaryIO],
        directory: str,
        schema: pyarrow.Schema,
        partition_by: tuple[str, ...],
        keeps_partitions: bool,
    ) -> None:
        self._open = open_file
        self._directory = directory
        self._schema = schema
        self._partition_by = partition_by
        self._dropped = () if keeps_partitions else partition_by

    def __call__(self, batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        """Writes the rows and yields what was written, a JSON text a file."""
        import pyarrow as pa

        files: dict[tuple[Any, ...], _OpenFile] = {}
        for batch in batches:
            rows = pa.Table.from_batches([batch]).select(self._schema.names).cast(self._schema)
            with _place_errors(self._directory):
                for values, part in _parted(rows, self._partition_by):
                    if values not in files:
                        files[values] = self._new(values)
                    files[values].write(part.drop_columns(list(self._dropped)))
        with _place_errors(self._directory):
            texts = [json.dumps(file.close()._asdict()) for file in files.values()]
        yield pa.RecordBatch.from_arrays([pa.array(texts, pa.string())], names=["file"])

    def _new(self, values: tuple[Any, ...]) -> _OpenFile:
        texts = dict(zip(self._partition_by, map(_text, values), strict=True))
        names = [f"{name}={NULL if text is None else quote(text, safe='')}" for name, text in texts.items()]
        path = "/".join([self._directory, *names, f"{os.urandom(8).hex()}.parquet"])
        schema = self._schema
        for name in self._dropped:
            schema = schema.remove(schema.get_field_index(name))
        return _OpenFile(self._open(path), path, schema, texts)


@contextmanager
def _place_errors(directory: str) -> Iterator[None]:
    """Raises an error of the place in the block, such as a full disk, as SinkError: no message is to blame."""
    try:
        yield
    except Exception as error:  # each package has its own
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SinkError(f"writing the files of {directory}: {why}") from error


def _parted(rows: pyarrow.Table, by: tuple[str, ...]) -> Iterator[tuple[tuple[Any, ...], pyarrow.Table]]:
    """Yields the rows of each value of these columns."""
    import pyarrow.compute as pc

    if not by:
        yield (), rows
        return
    for found in rows.group_by(list(by)).aggregate([]).to_pylist():
        part = rows
        for name in by:
            column = part[name]
            part = part.filter(pc.is_null(column) if found[name] is None else pc.equal(column, found[name]))
        yield tuple(found[name] for name in by), part


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


class _OpenFile:
    """A Parquet file that is being written."""

    def __init__(self, stream: BinaryIO, path: str, schema: pyarrow.Schema, partition: dict[str, str | None]) -> None:
        import pyarrow.parquet as pq

        self._stream, self._path, self._partition = stream, path, partition
        self._known: list[Any] = []
        self._counted = _Counted(stream)
        self._writer = pq.ParquetWriter(self._counted, schema, metadata_collector=self._known, compression="zstd")

    def write(self, rows: pyarrow.Table) -> None:
        self._writer.write_table(rows)

    def close(self) -> DataFile:
        """Returns the file, which is there from now on."""
        self._writer.close()
        self._stream.close()
        known = self._known[0]
        return DataFile(self._path, self._counted.bytes, known.num_rows, self._partition, _bounds(known))


class _Counted:
    """A stream that counts its bytes; pyarrow closes it, and the stream stays open."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.bytes = 0
        self.closed = False

    def write(self, data: Any) -> int:
        size = memoryview(data).nbytes
        left = memoryview(data).cast("B")
        while left:
            left = left[self._stream.write(left) :]
        self.bytes += size
        return size

    def flush(self) -> None:
        """Leaves the stream alone: it is flushed when it is closed."""

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


def _bounds(known: Any) -> dict[str, tuple[Any, Any, int]]:
    """Returns the bounds of the columns of whole numbers, dates and short texts; the others are simply not known."""
    groups = [known.row_group(at) for at in range(known.num_row_groups)]
    found = {}
    for at, column in enumerate(known.schema):
        statistics = [group.column(at).statistics for group in groups]
        if "." in column.path or not statistics or any(s is None or not s.has_null_count for s in statistics):
            continue
        least = [s.min for s in statistics if s.has_min_max]
        most = [s.max for s in statistics if s.has_min_max]
        if len(least) == len(groups) and all(map(_is_bound, [*least, *most])):
            nulls = sum(s.null_count for s in statistics)
            found[column.path] = (_plain(min(least)), _plain(max(most)), nulls)
    return found


def _is_bound(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_BOUND
    is_date = isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)
    return is_date or (isinstance(value, int) and not isinstance(value, bool))


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime.date) else value
