"""The schema of a table of Parquet files, kept beside them, so that every batch fits and the table stays readable.

It is in ``_common_metadata``, the file by which Spark knows the columns of a Parquet table, in Spark's words. So a
plain ``spark.read.parquet`` has every column, also those that only later batches have. The rules are those of Delta:

- a column that the table has must have the same type, with the same precision of decimals; what may be null does not
  count, and every column of the table may be;
- a column that the table has not is added by ``merge_schema``, also within a struct, and is refused without it;
- a column that the batch has not is null;
- the order of columns does not count, nor does the case of their names, except within a struct: the table's is written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trigmon.spark.sinks.data_files import nullable
from trigmon.spark.sinks.place import force
from trigmon.spark.sinks.sink import SinkError

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql.types import DataType, StructType

FILE = "_common_metadata"
SPARKS = b"org.apache.spark.sql.parquet.row.metadata"
_PARTITION_BY = b"trigmon.partition_by"
BATCH = "batch"
"""The column that the directories of batches are in every reader's eyes."""


class Kept(NamedTuple):
    """The columns of a table, all nullable, and those of them by which a batch's files are in directories."""

    schema: StructType
    partition_by: tuple[str, ...] = ()


class Fit(NamedTuple):
    """How a batch fits: what the table keeps with it, and the batch's columns by other names than the table's."""

    kept: Kept
    renamed: dict[str, str]


def kept(table: Path) -> Kept | None:
    """Returns the schema that a table keeps; of one without the file that of its files, None without any.

    Raises SinkError where the files contradict each other.
    """
    import pyarrow.parquet as pq

    if (table / FILE).exists():
        found = pq.read_schema(table / FILE)
        by = (found.metadata or {}).get(_PARTITION_BY, b"[]")
        return Kept(_of_spark(found), tuple(json.loads(by)))
    known: Kept | None = None
    for batch in sorted(table.glob(f"{BATCH}=*")):
        for file in batch.rglob("*.parquet"):
            by = tuple(part.partition("=")[0] for part in file.relative_to(batch).parts[:-1])
            known = fit(_of_spark(pq.read_schema(file)), by, known, f"{table}, by {batch.name},", merges=True).kept
            break  # all files of a batch have one schema
    return known


def fit(given: StructType, by: Sequence[str], known: Kept | None, table: str | Path, *, merges: bool) -> Fit:
    """Returns how a batch's columns fit those of the table. Raises SinkError, with the column and both types."""
    _check_names(given, table)
    given = nullable(given)
    if known is None:
        return Fit(Kept(given, tuple(by)), {})
    by = [_name(column, known.partition_by) for column in by]
    if by and tuple(by) != known.partition_by:
        there = ", ".join(known.partition_by) or "nothing"
        raise SinkError(f"{table} is partitioned by {there}, not by {', '.join(by)}: name the same, or another table")
    names = [*known.schema.fieldNames(), *known.partition_by]
    renamed = {name: there for name in given.fieldNames() if (there := _name(name, names)) != name}
    merge = _Merge(table)
    schema = merge.struct(known.schema, _with_names(given, renamed))
    new = [name for name in merge.new if name not in known.partition_by]  # those are in no file of an older table
    if new and not merges:
        raise SinkError(f"{table} has no column {', '.join(new)}: merge_schema adds it, or drop it")
    return Fit(Kept(schema, known.partition_by), renamed)


def check_partitions(given: Sequence[str], by: Sequence[str], table: str | Path) -> None:
    """Raises SinkError unless a batch has the columns by which the table is partitioned, and one beside them."""
    folded = {name.lower() for name in given}
    if missing := [name for name in by if name.lower() not in folded]:
        raise SinkError(
            f"{table} is partitioned by {missing[0]}: there is no such column; there are {', '.join(given)}"
        )


def write(known: Kept, path: Path) -> None:
    """Writes the schema into a file, durably (fsync)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    metadata = {SPARKS: known.schema.json(), _PARTITION_BY: json.dumps(known.partition_by)}
    pq.write_metadata(pa.schema(_arrow_fields(known.schema)).with_metadata(metadata), path)
    force(path)


# -- parts of the above -------------------------------------------------------------------------------------


class _Merge:
    """The types of a table with those of a batch. ``new`` are the columns that the table has not, by their paths."""

    def __init__(self, table: str | Path) -> None:
        self._table = table
        self.new: list[str] = []

    def struct(self, there: StructType, given: StructType, path: str = "") -> StructType:
        """Returns the fields of both. Raises SinkError."""
        from pyspark.sql.types import StructField, StructType

        fields = {field.name: field for field in there.fields}
        for field in given.fields:
            at = f"{path}{field.name}"
            if field.name not in fields:
                self.new.append(at)
                fields[field.name] = StructField(field.name, field.dataType)
            else:
                fields[field.name] = StructField(
                    field.name, self._type(fields[field.name].dataType, field.dataType, at)
                )
        return StructType(list(fields.values()))

    def _type(self, there: DataType, given: DataType, path: str) -> DataType:
        from pyspark.sql.types import ArrayType, MapType, StructType

        if isinstance(there, StructType) and isinstance(given, StructType):
            return self.struct(there, given, f"{path}.")
        if isinstance(there, ArrayType) and isinstance(given, ArrayType):
            return ArrayType(self._type(there.elementType, given.elementType, f"{path}.element"))
        if isinstance(there, MapType) and isinstance(given, MapType):
            key = self._type(there.keyType, given.keyType, f"{path}.key")
            return MapType(key, self._type(there.valueType, given.valueType, f"{path}.value"))
        if there != given:
            raise SinkError(
                f"column {path} of {self._table} is {there.simpleString()}, and the batch has {given.simpleString()}: "
                "cast it to the table's type, or write to another table"
            )
        return there


def _check_names(given: StructType, table: str | Path) -> None:
    seen: set[str] = set()
    for name in given.fieldNames():
        if name.lower() == BATCH:
            raise SinkError(f"column {name}: the directories of {table} are a column of that name: rename it")
        if name.lower() in seen:
            raise SinkError(f"two columns are named {name.lower()}, apart from their case: rename one")
        seen.add(name.lower())


def _name(name: str, names: Sequence[str]) -> str:
    """Returns the name of these that is this one apart from its case, else the name itself."""
    return name if name in names else next((other for other in names if other.lower() == name.lower()), name)


def _with_names(schema: StructType, renamed: dict[str, str]) -> StructType:
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(renamed.get(field.name, field.name), field.dataType) for field in schema.fields])


def _of_spark(found: pyarrow.Schema) -> StructType:
    """Returns the columns of a file: in Spark's words where Spark or this module has written it."""
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    text = (found.metadata or {}).get(SPARKS)
    return nullable(StructType.fromJson(json.loads(text)) if text else from_arrow_schema(found))


def _arrow_fields(schema: StructType) -> list[Any]:
    """Returns the columns for other readers of the file; those of the few types that Arrow has not are left out."""
    from pyspark.errors import PySparkException
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    fields: list[Any] = []
    for field in schema.fields:
        with suppress(PySparkException):
            fields += to_arrow_schema(StructType([field]), timezone="UTC")
    return fields
