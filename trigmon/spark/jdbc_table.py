"""A table of a database that takes each batch once, written through any JDBC driver that Spark finds.

Beside the rows' own columns it has two: ``mq_batch``, the batch's id, and ``mq_ordinal``, the place in it, with a
unique index over both. A batch is written by one task in one transaction, so it is in the table whole or not at all.
A batch that is in the table already is not written a second time. Where Spark runs a task twice, the index refuses the
second. So with this sink a drain is exactly once, wherever the job is killed, as far as the
database keeps what it has committed.

The table is made where there is none. An existing table must have the two columns; a missing index is made.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trigmon.spark.sinks.jdbc_connection import Connector, DatabaseError, ask, database_errors, do, java_message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from trigmon.spark.queue_batches import Batch

BATCH, ORDINAL = "mq_batch", "mq_ordinal"
_KEY = frozenset({BATCH, ORDINAL})
_KEY_TYPES = f"{BATCH} VARCHAR(64)"  # a driver's type for unlimited text often cannot be indexed
_NAME = re.compile(r"""[\w$#."`\[\]-]+""")


class Database:
    """A table behind a JDBC URL. ``options`` are those of Spark's JDBC: ``user``, ``password``, ``driver``, ..."""

    def __init__(self, spark: SparkSession, url: str, table: str, options: Mapping[str, str] | None = None) -> None:
        if not _NAME.fullmatch(table):
            raise DatabaseError(f"{table!r} is no name of a table")
        self._spark = spark
        self._table = table
        self._database = Connector(spark, url, table, options or {})
        by_name = {name.lower(): value for name, value in (options or {}).items()}  # Spark ignores their case
        if by_name.get("isolationlevel", "").upper() == "NONE":
            raise DatabaseError("with isolationLevel NONE a batch would not be there whole or not at all")
        self._columns: dict[str, str] = {}

    def check(self) -> None:
        """Raises DatabaseError unless the database answers, has transactions, and the table is fit where it exists."""
        with self._database.connection() as (connection, dialect):
            if not connection.getMetaData().supportsTransactions():
                raise DatabaseError("the database has no transactions, so no batch would be there whole or not at all")
            if _exists(connection, dialect, self._table):
                self._see(connection, dialect)

    def write(self, frame: DataFrame, batch: Batch) -> bool:
        """Writes a batch, a row a message, with the column ``mq_ordinal``; False when the table has it already."""
        from pyspark.sql import functions as F  # noqa: N812

        rows = frame.withColumn(BATCH, F.lit(batch.id))
        if not self._columns:
            self._prepare(rows)
        with self._database.connection() as (connection, _):
            # An attempt may have committed before a part of the batch was released: it is written anew without it.
            where = f"{self._table} WHERE {self._columns[BATCH]} = ?"
            there = int(ask(connection, f"SELECT COUNT(*) FROM {where}", batch.id)[0])
            if there == batch.count:
                return False
            if there:
                do(connection, f"DELETE FROM {where}", batch.id)
        with database_errors(f"writing to {self._table}"):
            self._save(rows.coalesce(1))
        return True

    def _prepare(self, rows: DataFrame) -> None:
        with self._database.connection() as (connection, dialect):
            if not _exists(connection, dialect, self._table):
                with database_errors(f"making {self._table}"):
                    self._save(self._spark.createDataFrame([], rows.schema))
            self._see(connection, dialect)

    def _save(self, rows: DataFrame) -> None:
        types = ", ".join(filter(None, [_KEY_TYPES, self._database.options.get("createTableColumnTypes", "")]))
        options = self._database.options | {"createTableColumnTypes": types}
        rows.write.format("jdbc").options(**options).mode("append").save()

    def _see(self, connection: Any, dialect: Any) -> None:
        """Reads the quoted names of the two columns, and makes the index over them if it is missing."""
        names = {name.lower(): dialect.quoteIdentifier(name) for name in _columns(connection, self._table)}
        if missing := [name for name in (BATCH, ORDINAL) if name not in names]:
            raise DatabaseError(
                f"table {self._table} has no column {' and no column '.join(missing)}: "
                f"add {BATCH} VARCHAR(64) and {ORDINAL} BIGINT, or name a table that is not there yet"
            )
        if not _has_index(connection, self._table):
            index = "mq_batches_" + re.sub(r"\W", "_", self._table)
            self._make_index(connection, f"CREATE UNIQUE INDEX {index} ON {self._table}", names)
        self._columns = names

    def _make_index(self, connection: Any, statement: str, names: dict[str, str]) -> None:
        statement = f"{statement} ({names[BATCH]}, {names[ORDINAL]})"
        try:
            with database_errors(""):
                do(connection, statement)
        except DatabaseError as error:
            raise DatabaseError(
                f"table {self._table} needs a unique index over {BATCH} and {ORDINAL}, so that no batch is in it "
                f"twice, and making it failed {error}. Have it made: {statement}"
            ) from None


# -- parts of the above -------------------------------------------------------------------------------------


def _exists(connection: Any, dialect: Any, table: str) -> bool:
    """Returns whether the table exists, by the query that Spark uses before it appends."""
    try:
        do(connection, dialect.getTableExistsQuery(table))
    except Exception as error:
        if java_message(error) is None:
            raise
        return False
    return True


def _columns(connection: Any, table: str) -> list[str]:
    statement = connection.createStatement()
    try:
        of = statement.executeQuery(f"SELECT * FROM {table} WHERE 1 = 0").getMetaData()
        return [of.getColumnName(at) for at in range(1, of.getColumnCount() + 1)]
    finally:
        statement.close()


def _has_index(connection: Any, table: str) -> bool:
    """Returns whether a unique index lies over the two columns."""
    schema, name = (part.strip('"`[]') for part in table.rpartition(".")[::2])
    for fold in (str, str.upper, str.lower):  # databases differ in how they store unquoted names
        where = (connection.getCatalog(), fold(schema) if schema else connection.getSchema(), fold(name))
        found = connection.getMetaData().getIndexInfo(*where, True, True)
        indexes: dict[str, set[str]] = {}
        while found.next():
            if column := found.getString("COLUMN_NAME"):
                indexes.setdefault(found.getString("INDEX_NAME"), set()).add(column.lower())
        found.close()
        if any(columns == _KEY for columns in indexes.values()):
            return True
    return False
