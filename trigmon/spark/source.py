"""The data source ``format("trigmon")``, as Spark finds it; implemented in reader and writer.

>>> spark.read.format("trigmon").load("ORDERS")  # doctest: +SKIP
>>> spark.readStream.format("trigmon").option("queue", "ORDERS").option("consumer", "loader").load()  # doctest: +SKIP
>>> frame.write.format("trigmon").mode("append").save("ORDERS")  # doctest: +SKIP
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import CharType, StringType, StructField, StructType, VarcharType

from trigmon.mq.errors import MQError
from trigmon.spark import arrow_rows, json_rows, options
from trigmon.spark.plan_errors import one_line
from trigmon.spark.reader import QueueReader, QueueStreamReader, RefusedStreamReader
from trigmon.spark.writer import QueueStreamWriter, QueueWriter

_TEXTS = (CharType, VarcharType)
"""What Spark sends as text where ``spark.sql.preserveCharVarcharTypeInfo`` is set."""
_KEPT = "trigmon"
"""The key of a column's metadata with a table's options."""


class DefaultSource(DataSource):
    """A queue as a table and as a stream. Spark finds it by the module ``pyspark_trigmon`` and this class's name."""

    @classmethod
    def name(cls) -> str:
        """Returns the name for ``format(...)``."""
        return "trigmon"

    def schema(self) -> str | StructType:
        """Returns the columns of :mod:`trigmon.spark.arrow_rows`, or those of the options; json needs a schema.

        Raises MQError where there is no such queue: Spark asks for the columns when a frame is loaded.
        """
        with one_line():
            return self._columns()

    def _columns(self) -> str | StructType:
        given = options.read(self.options)
        if given.is_json:
            raise options.OptionError("format json needs a schema: .schema('id bigint, name string')")
        ddl = arrow_rows.ddl(given.columns or arrow_rows.COLUMNS)
        _find(given, "inquire")
        if not (of_table := options.of_table(self.options)):
            return ddl
        # The only thing of a table that a reader of it gets is its schema.
        first, *others = from_arrow_schema(arrow_rows.schema_of(given.columns or arrow_rows.COLUMNS)).fields
        return StructType([StructField(first.name, first.dataType, first.nullable, {_KEPT: of_table}), *others])

    def reader(self, schema: StructType) -> QueueReader:
        """Returns the reader of a batch, which takes nothing from the queue."""
        with one_line():
            given = self._given(schema)
            if given.groups and given.max_rows and not given.reservation:
                raise options.OptionError("maxRows could cut a group: a batch read with groups reads all there is")
            return QueueReader(given, self.arrow(given, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Returns the reader of a stream, which drains the queue; one that says why not, where that cannot be."""
        try:
            given = self._given(schema)
            columns = self.arrow(given, schema)
            arrow_rows.check_kept_text(columns, given.malformed)
        except (MQError, ValueError, PySparkException) as error:
            return RefusedStreamReader(error)
        return QueueStreamReader(given, columns)

    def writer(self, schema: StructType, overwrite: bool) -> QueueWriter:
        """Returns the writer that appends rows as messages, all of them or none."""
        with one_line():
            return QueueWriter(self._to_write(schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> QueueStreamWriter:  # noqa: N802
        """Returns the writer that appends a stream's batches as messages, each batch once."""
        with one_line():
            return QueueStreamWriter(self._to_write(schema, overwrite))

    def _given(self, schema: StructType) -> options.Options:
        """Returns the options; those of a table lie in its schema. Raises OptionError for a table without."""
        kept: dict[str, str] = next((field.metadata[_KEPT] for field in schema if _KEPT in field.metadata), {})
        if not kept and not self.options:
            raise options.OptionError(
                "Spark passes no options of a table that was created with columns of its own: leave the columns out, "
                "or use CREATE TEMPORARY VIEW"
            )
        return options.read({**kept, **self.options})

    def _to_write(self, schema: StructType, overwrite: bool) -> options.Options:
        given = self._given(schema)
        if overwrite:
            raise options.OptionError('a queue is never overwritten: say .mode("append")')
        _check_to_write(schema, is_json=given.is_json)
        _find(given, "output")
        return given

    @staticmethod
    def arrow(given: options.Options, schema: StructType) -> pa.Schema:
        """Returns the schema that Spark expects. Raises UnfitRowError for a column that messages do not have."""
        arrow = _arrow(schema)
        arrow_rows.check_once(arrow)
        if given.is_json:
            arrow_rows.check_json(arrow, given.malformed)
        for field in arrow:
            if given.is_json and not arrow_rows.is_of_message(field.name):
                continue
            name = arrow_rows.raw_name(field.name) if given.is_json else field.name
            _check_name(field.name, name)
            if field.type != arrow_rows.NAMED[name][0]:
                raise arrow_rows.UnfitRowError(f"column {field.name} is {arrow_rows.NAMED[name][1]}, not {field.type}")
        return arrow


def _check_name(given: str, name: str) -> None:
    """Raises UnfitRowError, with the name as it was given, for a column that messages do not have."""
    try:
        arrow_rows.ddl([name])
    except arrow_rows.UnfitRowError as error:
        if given == name:
            raise
        raise arrow_rows.UnfitRowError(f"column {given} is to be one of the message's own, and {error}") from None


def _arrow(schema: StructType) -> pa.Schema:
    """Returns the columns in Arrow's types. Raises UnfitRowError for a type that Spark gives to no Python."""
    texts = [
        StructField(field.name, StringType(), field.nullable) if isinstance(field.dataType, _TEXTS) else field
        for field in schema
    ]
    try:
        return to_arrow_schema(StructType(texts), timezone="UTC")
    except PySparkException as error:
        raise arrow_rows.UnfitRowError(str(error).splitlines()[0]) from None


def _check_to_write(schema: StructType, *, is_json: bool) -> None:
    """Raises UnfitRowError unless the columns are of a message, of json those ``mq_...``, and the others its data."""
    from trigmon.spark.sinks.data_files import nullable

    schema = nullable(schema)  # Arrow has no other type for what an empty array contains
    if not is_json:
        arrow_rows.check_writable(schema.fieldNames())
        arrow_rows.check_types(_arrow(schema))
        return
    own = [field for field in schema if arrow_rows.is_of_message(field.name)]
    names = [arrow_rows.raw_name(field.name) for field in own]
    if arrow_rows.DATA in names:
        raise arrow_rows.UnfitRowError("a put takes no mq_data with format json: the other columns are the data")
    arrow_rows.check_writable([arrow_rows.DATA, *names])
    arrow_rows.check_types(_arrow(StructType(own)))
    body = StructType([field for field in schema if not arrow_rows.is_of_message(field.name)])
    if name := json_rows.unwritten_column(_arrow(body)):
        raise arrow_rows.UnfitRowError(
            f"column {name} has a type that format json does not write: cast it to string, or write to_json as data"
        )


def _find(given: options.Options, how: str) -> None:
    """Raises MQError unless the queue can be opened so: before the work, not behind it."""
    with one_line(given.queue), given.connect("planning") as connection, connection.open(given.queue, how):
        pass
