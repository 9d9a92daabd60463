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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from trigmon.spark.queue_batches import Batch

BATCH, ORDINAL = "mq_batch", "mq_ordinal"
_KEY = frozenset({BATCH, ORDINAL})
_KEY_TYPES = f"{BATCH} VARCHAR(64)"  # a driver's type for unlimited text often cannot be indexed
_NAME = re.compile(r"""[\w$#."`\[\]-]+""")


class DatabaseError(Exception):
    """The database cannot be used as it is. The text has its own error and the remedy."""


class Database:
    """A table behind a JDBC URL. ``options`` are those of Spark's JDBC: ``user``, ``password``, ``driver``, ..."""

    def __init__(self, spark: SparkSession, url: str, table: str, options: Mapping[str, str] | None = None) -> None:
        if not _NAME.fullmatch(table):
            raise DatabaseError(f"{table!r} is no name of a table")
        self._spark = spark
        self._table = table
        self._options = {**(options or {}), "url": url, "dbtable": table}
        by_name = {name.lower(): value for name, value in self._options.items()}  # Spark ignores their case
        if by_name.get("isolationlevel", "").upper() == "NONE":
            raise DatabaseError("with isolationLevel NONE a batch would not be there whole or not at all")
        self._columns: dict[str, str] = {}

    def check(self) -> None:
        """Raises DatabaseError unless the database answers, has transactions, and the table is fit where it exists."""
        with self._connection() as (connection, dialect):
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
        with self._connection() as (connection, _):
            # An attempt may have committed before a part of the batch was released: it is written anew without it.
            where = f"{self._table} WHERE {self._columns[BATCH]} = ?"
            there = _ask(connection, f"SELECT COUNT(*) FROM {where}", batch.id)
            if there == batch.count:
                return False
            if there:
                _do(connection, f"DELETE FROM {where}", batch.id)
        with _database_errors(f"writing to {self._table}"):
            self._save(rows.coalesce(1))
        return True

    def _prepare(self, rows: DataFrame) -> None:
        with self._connection() as (connection, dialect):
            if not _exists(connection, dialect, self._table):
                with _database_errors(f"making {self._table}"):
                    self._save(self._spark.createDataFrame([], rows.schema))
            self._see(connection, dialect)

    def _save(self, rows: DataFrame) -> None:
        types = ", ".join(filter(None, [_KEY_TYPES, self._options.get("createTableColumnTypes", "")]))
        options = self._options | {"createTableColumnTypes": types}
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
            with _database_errors(""):
                _do(connection, statement)
        except DatabaseError as error:
            raise DatabaseError(
                f"table {self._table} needs a unique index over {BATCH} and {ORDINAL}, so that no batch is in it "
                f"twice, and making it failed {error}. Have it made: {statement}"
            ) from None

    @contextmanager
    def _connection(self) -> Iterator[tuple[Any, Any]]:
        """Yields a java.sql.Connection, made as Spark makes it, and Spark's dialect of this database."""
        jvm = getattr(self._spark, "_jvm", None)
        if jvm is None:
            raise DatabaseError("a database needs Spark in the job's own process: with Spark Connect it cannot be had")
        sql = jvm.org.apache.spark.sql
        url = self._options["url"]
        with _database_errors(f"cannot connect to {_without_secrets(url)}"):
            scala_map = jvm.PythonUtils.toScalaMap(self._options)
            options = sql.execution.datasources.jdbc.JDBCOptions(url, self._table, scala_map)
            dialect = sql.jdbc.JdbcDialects.get(url)
            connection = dialect.createConnectionFactory(options).apply(-1)
        try:
            with _database_errors(self._table):
                yield connection, dialect
        finally:
            with suppress(Exception):
                connection.close()


# -- parts of the above -------------------------------------------------------------------------------------


def _exists(connection: Any, dialect: Any, table: str) -> bool:
    """Returns whether the table exists, by the query that Spark uses before it appends."""
    try:
        _do(connection, dialect.getTableExistsQuery(table))
    except Exception as error:
        if _java(error) is None:
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


def _ask(connection: Any, question: str, value: str) -> int:
    statement = connection.prepareStatement(question)
    try:
        statement.setString(1, value)
        found = statement.executeQuery()
        found.next()
        return int(found.getLong(1))
    finally:
        statement.close()


def _do(connection: Any, order: str, *values: str) -> None:
    statement = connection.prepareStatement(order)
    try:
        for at, value in enumerate(values, 1):
            statement.setString(at, value)
        statement.execute()
    finally:
        statement.close()


@contextmanager
def _database_errors(doing: str) -> Iterator[None]:
    """Raises an exception of Java in the block as DatabaseError, with the database's message in one line."""
    try:
        yield
    except Exception as error:
        message = _java(error)
        if message is None:
            raise
        raise DatabaseError(f"{doing}: {message}") from error


def _java(error: Exception) -> str | None:
    """Returns the message of the root cause in Java, or None where the error is not one of Java."""
    thrown = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if thrown is None:
        return None
    while (cause := thrown.getCause()) is not None:
        thrown = cause
    text = str(thrown.getMessage() or thrown.toString()).strip()
    return None if "Traceback (most recent" in text else text.splitlines()[0]


def _without_secrets(url: str) -> str:
    """Returns a URL for a message, without the parts behind ``?`` or ``;`` and before ``@``: they may be secrets."""
    return re.split(r"[?;]", re.sub(r"(//|thin:).*@", r"\1", url))[0]
