"""A table of PostgreSQL that takes each batch once, by JDBC: rows are inserted, or replace those of the same key.

Spark's tasks write a batch side by side into a table of its own, which has the types of the target. Then one
transaction moves it into the target and remembers the batch (:mod:`~trigmon.spark.sinks.high_water`):

    orders                      the target, any table of yours; no columns are added
    mq_batches                  beside it: what each consumer has written into each table
    mq_staging_CONSUMER_X       the rows of a batch, until they are moved; dropped by the consumer's next batch

Of several rows of a batch with one key the last is written. Batches come in the order of the queue. But while the
message that makes batches fail, or kills jobs, is searched for, others overtake it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from trigmon.spark.sinks.high_water import Known, check_not_refused, key_of, known, refused_mark, written_mark
from trigmon.spark.sinks.jdbc_connection import Connector, ask, database_errors, do
from trigmon.spark.sinks.sink import BatchName, SinkError, column_names

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

URL = "jdbc:postgresql:"
_NAME = re.compile(r'[\w$."]+')
_MARKS, _STAGING, _ROW = "mq_batches", "mq_staging_", "mq_row"
_PLACE = (
    "SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) "
    "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass(?)"
)
_COLUMNS = (
    "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped "
    "AND attgenerated = '' ORDER BY attnum"
)


class PostgresSink:
    """A table behind a URL ``jdbc:postgresql:``. ``options`` are those of Spark's JDBC: ``user``, ``password``, ...

    ``upsert_key`` are the columns by which a row replaces another; without any, rows are inserted.
    """

    def __init__(
        self,
        spark: SparkSession,
        url: str,
        table: str,
        *,
        upsert_key: str | Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> None:
        if not url.startswith(URL):
            raise SinkError(f"upsert and to= are for PostgreSQL, {URL}//HOST/DATABASE, not for {url.split('//')[0]}")
        if not _NAME.fullmatch(table):
            raise SinkError(f"{table!r} is no name of a table")
        self._spark = spark
        self._table = table
        self._key = tuple(column_names(upsert_key))
        self._owed: list[BatchName] = []
        # A text goes into a column of any type that PostgreSQL reads from a text: jsonb, uuid, inet, ...
        self._database = Connector(spark, url, table, {"stringtype": "unspecified", **(options or {})})

    def check(self) -> None:
        """Raises DatabaseError unless the database answers, SinkError where the table has not the key."""
        with self._database.connection() as (connection, _):
            if ask(connection, _PLACE, self._table):
                self._check_key(connection)

    def write(self, frame: DataFrame, batch: BatchName) -> bool:
        """Writes a batch in one transaction. Returns False when the table has it.

        Raises BatchRefusedError, SinkError, DatabaseError.
        """
        from pyspark.sql import functions as F  # noqa: N812

        with self._database.connection() as (connection, _):
            place = self._prepared(connection, frame)
            while self._owed:
                self._marks(connection, place, self._owed[-1], refused_mark(self._owed[-1]))
                self._owed.pop()
            if self._has(connection, place, batch):
                return False
            columns = self._fit(connection, frame)
            staged = self._staging(connection, place, batch, columns)
        rows = frame.withColumnsRenamed(columns).withColumn(_ROW, F.monotonically_increasing_id())
        try:
            self._save(rows, staged)
            with self._database.connection() as (connection, _), database_errors(f"writing to {self._table}"):
                connection.setAutoCommit(False)
                if not self._marks(connection, place, batch, written_mark(batch)):
                    check_not_refused(self._known(connection, place, batch), self._table, batch)
                    return False
                do(connection, self._move(place, staged, list(columns.values())))
                connection.commit()
        finally:
            with suppress(Exception), self._database.connection() as (connection, _):
                do(connection, f"DROP TABLE IF EXISTS {staged}")
        return True

    def refuse(self, batch: BatchName) -> bool:
        """Makes the table refuse the batch from now on, from any job. Returns False when the table has it."""
        with self._database.connection() as (connection, _):
            place = (ask(connection, _PLACE, self._table) or [None])[0]
            if place is None:
                self._owed.append(batch)  # there is no table yet whose batches could be remembered
                return True
            self._make_marks(connection, place)
            if self._marks(connection, place, batch, refused_mark(batch)):
                return True
            return self._known(connection, place, batch) is Known.REFUSED

    # -- what the database knows ----------------------------------------------------------------------------

    def _has(self, connection: Any, place: str, batch: BatchName) -> bool:
        """Returns whether the batch is in the table. Raises BatchRefusedError."""
        state = self._known(connection, place, batch)
        check_not_refused(state, self._table, batch)
        return state is Known.WRITTEN

    def _known(self, connection: Any, place: str, batch: BatchName) -> Known:
        of = (place, key_of(batch))
        found = ask(connection, f"SELECT mark FROM {_beside(place, _MARKS)} WHERE target = ? AND consumer = ?", *of)
        return known(int(found[0]) if found else None, batch)

    def _marks(self, connection: Any, place: str, batch: BatchName, mark: int) -> bool:
        """Marks a batch that was neither written nor refused; returns False for another.

        In a transaction another one that marks the same consumer waits for its end.
        """
        order = (
            f"INSERT INTO {_beside(place, _MARKS)} AS m (target, consumer, mark) VALUES (?, ?, ?::bigint) "
            "ON CONFLICT (target, consumer) DO UPDATE SET mark = excluded.mark WHERE m.mark < ?::bigint"
        )
        return do(connection, order, place, key_of(batch), str(mark), str(written_mark(batch))) == 1

    def _make_marks(self, connection: Any, place: str) -> None:
        marks = _beside(place, _MARKS)
        if not ask(connection, _PLACE, marks):
            columns = "target text, consumer text, mark bigint NOT NULL, PRIMARY KEY (target, consumer)"
            with suppress(Exception):  # another drain may make it at the same moment
                do(connection, f"CREATE TABLE IF NOT EXISTS {marks} ({columns})")
            if not ask(connection, _PLACE, marks):
                raise SinkError(
                    f"{marks} is missing and cannot be made. Have it made: CREATE TABLE {marks} ({columns})"
                )

    # -- the target -----------------------------------------------------------------------------------------

    def _prepared(self, connection: Any, frame: DataFrame) -> str:
        """Returns the target's full name, and makes what is missing: the target, its key, the table of marks."""
        if not ask(connection, _PLACE, self._table):
            self._fit(connection, frame, frame.columns)
            self._save(self._spark.createDataFrame([], frame.schema), self._table)
            if self._key:
                do(connection, f"CREATE UNIQUE INDEX ON {self._table} ({self._quoted_key()})")
        place: str = ask(connection, _PLACE, self._table)[0]
        self._check_key(connection)
        self._make_marks(connection, place)
        return place

    def _check_key(self, connection: Any) -> None:
        """Raises SinkError unless PostgreSQL finds a unique index for the key."""
        if not self._key:
            return
        key = self._quoted_key()
        try:
            do(
                connection,
                f"EXPLAIN INSERT INTO {self._table} SELECT * FROM {self._table} ON CONFLICT ({key}) DO NOTHING",
            )
        except Exception as error:
            raise SinkError(
                f"{self._table} has no unique index over {key}, by which rows could replace others. Have it made: "
                f"CREATE UNIQUE INDEX ON {self._table} ({key})"
            ) from error

    def _fit(self, connection: Any, frame: DataFrame, there: Sequence[str] = ()) -> dict[str, str]:
        """Returns the frame's columns by name, with those of the table. Raises SinkError for one that it has not."""
        names = list(there or ask(connection, _COLUMNS, self._table))
        by_name = {name.lower(): name for name in names} | {name: name for name in names}
        found = {name: by_name.get(name) or by_name.get(name.lower()) for name in frame.columns}
        if missing := [name for name, column in found.items() if column is None]:
            raise SinkError(f"{self._table} has no column {', '.join(missing)}; it has {', '.join(names)}")
        if missing := [name for name in self._key if name not in found.values()]:
            raise SinkError(
                f"upsert_key: there is no column {', '.join(missing)}; there are {', '.join(frame.columns)}"
            )
        return {name: str(column) for name, column in found.items()}

    def _staging(self, connection: Any, place: str, batch: BatchName, columns: Mapping[str, str]) -> str:
        """Makes the table of a batch, and drops those that earlier attempts of the same consumer left."""
        of = hashlib.sha256(f"{place} {batch.application}".encode()).hexdigest()[:16]
        schema = place.rpartition(".")[0]
        question = "SELECT tablename FROM pg_tables WHERE quote_ident(schemaname) = ? AND tablename LIKE ?"
        for left in ask(connection, question, schema, f"{_STAGING}{of}\\_%".replace("mq_staging_", "mq\\_staging\\_")):
            do(connection, f"DROP TABLE IF EXISTS {schema}.{left}")
        staged = _beside(place, f"{_STAGING}{of}_{os.urandom(4).hex()}")
        named = ", ".join(map(_quoted, columns.values()))
        do(
            connection,
            f"CREATE UNLOGGED TABLE {staged} AS SELECT {named}, 0::bigint AS {_ROW} FROM {place} WITH NO DATA",
        )
        return staged

    def _move(self, place: str, staged: str, columns: Sequence[str]) -> str:
        """Returns the statement that moves a batch. A row that a repeated task wrote twice has one number."""
        named = ", ".join(map(_quoted, columns))
        by = self._quoted_key() or _ROW
        order = f"{by}, {_ROW} DESC" if self._key else by
        text = f"INSERT INTO {place} ({named}) SELECT {named} FROM "
        text += f"(SELECT DISTINCT ON ({by}) * FROM {staged} ORDER BY {order}) batch ORDER BY {_ROW}"
        if not self._key:
            return text
        others = [_quoted(name) for name in columns if name not in self._key]
        changes = ", ".join(f"{name} = excluded.{name}" for name in others)
        return f"{text} ON CONFLICT ({by}) DO {f'UPDATE SET {changes}' if changes else 'NOTHING'}"

    def _save(self, rows: DataFrame, table: str) -> None:
        with database_errors(f"writing to {self._table}"):
            rows.write.format("jdbc").options(**self._database.options | {"dbtable": table}).mode("append").save()

    def _quoted_key(self) -> str:
        return ", ".join(map(_quoted, self._key))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _beside(place: str, name: str) -> str:
    """Returns the full name of a table in the schema of another."""
    return f"{place.rpartition('.')[0]}.{name}"
