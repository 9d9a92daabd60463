"""Connections to a database by JDBC, made as Spark makes them, with the driver that its URL asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from trigmon.spark.classic_session import context_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class DatabaseError(Exception):
    """The database cannot be used as it is. The text has its own error and the remedy."""


class Connector:
    """What connects to a table. ``options`` are those of Spark's JDBC, with ``url``, ``dbtable`` and ``driver``."""

    def __init__(self, spark: SparkSession, url: str, table: str, options: Mapping[str, str]) -> None:
        self._spark = spark
        self._url = url
        self.options = {**options, "url": url, "dbtable": table}
        self._is_found = False

    @contextmanager
    def connection(self) -> Iterator[tuple[Any, Any]]:
        """Yields a java.sql.Connection and Spark's dialect of the database. Raises DatabaseError, also in the block."""
        context = context_of(self._spark)
        if context is None:
            raise DatabaseError("a database needs Spark in the job's own process: with Spark Connect it cannot be had")
        jvm = context._jvm
        self._find_driver(jvm)
        sql = jvm.org.apache.spark.sql
        with database_errors(f"cannot connect to {_without_secrets(self._url)}"):
            scala_map = jvm.PythonUtils.toScalaMap(self.options)
            options = sql.execution.datasources.jdbc.JDBCOptions(self._url, self.options["dbtable"], scala_map)
            dialect = sql.jdbc.JdbcDialects.get(self._url)
            connection = dialect.createConnectionFactory(options).apply(-1)
        try:
            with database_errors(self.options["dbtable"]):
                yield connection, dialect
        finally:
            with suppress(Exception):
                connection.close()

    def _find_driver(self, jvm: Any) -> None:
        """Names the driver among the options: Java itself does not look at jars that Spark was given (spark.jars)."""
        if self._is_found or "driver" in map(str.lower, self.options):
            return
        with database_errors("looking for JDBC drivers"):
            loader = jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader()
            drivers = jvm.java.util.ServiceLoader.load(jvm.java.lang.Class.forName("java.sql.Driver"), loader)
            found = [driver for driver in drivers.iterator() if driver.acceptsURL(self._url)]
        if not found:
            scheme = ":".join(self._url.split(":")[:2])
            raise DatabaseError(
                f"no JDBC driver for {scheme}: is among Spark's jars: name it, --conf spark.jars=/path/driver.jar, "
                "or its package, --conf spark.jars.packages=GROUP:ARTIFACT:VERSION"
            )
        self.options["driver"] = found[0].getClass().getName()
        self._is_found = True


def ask(connection: Any, question: str, *values: str) -> list[Any]:
    """Returns the first column of the answer, as texts."""
    statement = _bound(connection, question, values)
    try:
        found, rows = statement.executeQuery(), []
        while found.next():
            rows.append(found.getString(1))
        return rows
    finally:
        statement.close()


def do(connection: Any, order: str, *values: str) -> int:
    """Executes a statement and returns how many rows it changed."""
    statement = _bound(connection, order, values)
    try:
        statement.execute()
        return max(0, int(statement.getUpdateCount()))
    finally:
        statement.close()


def _bound(connection: Any, text: str, values: tuple[str, ...]) -> Any:
    statement = connection.prepareStatement(text)
    for at, value in enumerate(values, 1):
        statement.setString(at, value)
    return statement


@contextmanager
def database_errors(doing: str) -> Iterator[None]:
    """Raises an exception of Java in the block as DatabaseError, with the database's message in one line."""
    try:
        yield
    except Exception as error:
        message = java_message(error)
        if message is None:
            raise
        raise DatabaseError(f"{doing}: {message}") from error


def java_message(error: Exception) -> str | None:
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
