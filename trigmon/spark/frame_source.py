"""How the messages of a queue become DataFrames."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trigmon.spark import arrow_rows
from trigmon.spark.options import TASK_ADDRESS, OptionError, Options, read

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

GIVEN_BY_DRAIN = {
    "queue": "the argument queue",
    "path": "the argument queue",
    "qmgr": "the argument qmgr",
    "address": "the argument qmgr, which may be an address; the option taskAddress is that of tasks",
    "consumer": "the argument consumer",
    "maxrows": "the argument max_rows",
    "maxoffsetspertrigger": "the argument max_rows",
    "maxbytes": "the argument max_bytes",
    "groups": "the argument groups",
    "reservation": "its own, batch by batch",
    "ordinals": "its own, batch by batch",
    "firstrows": "its own",
    "secret": "its own",
}
"""Options of the data source that ``drain`` gives itself, and what says the same to it."""
DDL_EXAMPLE = '"id bigint, name string"'


@dataclass(frozen=True)
class Source:
    """How the messages of a queue become DataFrames. ``in_plan``: those of a small batch may come in Spark's plan."""

    spark: SparkSession
    address: str
    queue: str
    options: dict[str, Any]
    schema: str | StructType | None = None
    secret: str = ""
    in_plan: bool = False

    @cached_property
    def named(self) -> Options:
        """The options of the data source as a value. Raises OptionError."""
        return read(self._given())

    @cached_property
    def columns(self) -> StructType:
        """The columns that are asked for. Raises OptionError for json without a schema, and UnfitRowError."""
        from pyspark.sql.pandas.types import from_arrow_schema

        if self.schema:
            return columns_of(self.schema)
        if self.named.is_json:
            raise OptionError(
                f"format json needs a schema: schema={DDL_EXAMPLE}, or that of schema_of_queue(spark, {self.queue!r})"
            )
        return from_arrow_schema(arrow_rows.schema_of(self.named.columns or arrow_rows.COLUMNS))

    @cached_property
    def arrow(self) -> pyarrow.Schema:
        """These columns in Arrow's types. Raises as :attr:`columns`."""
        from trigmon.spark.source import DefaultSource

        try:
            return DefaultSource.arrow(self.named, self.columns)
        except arrow_rows.UnfitRowError as error:
            if not self.schema or self.named.is_json or "have no column" not in str(error):
                raise
            raise arrow_rows.UnfitRowError(f"{error}; a schema of JSON needs options={{'format': 'json'}}") from None

    def checked(self) -> Source:
        """Returns it. Raises OptionError and UnfitRowError where no message could be read so, or its text be lost."""
        for name in self.options:
            if instead := GIVEN_BY_DRAIN.get(name.lower()):
                raise OptionError(f"option {name}: of a drain that is {instead}")
        if self.schema and self.named.columns:
            raise OptionError("option columns means nothing beside a schema, which names the columns")
        arrow_rows.check_kept_text(self.arrow, self.named.malformed)
        return self

    def _given(self, **more: Any) -> dict[str, str]:
        """Returns all options of the data source, ``more`` among them."""
        own = {"queue": self.queue, "address": self.address, "secret": self.secret}
        for variable, option in (("TRIGMON_RUN", "run"), (TASK_ADDRESS, "taskAddress")):
            if value := os.environ.get(variable):
                own[option] = value
        given = {name: value for name, value in {**own, **self.options, **more}.items() if value is not None}
        return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}

    def reader(self, of: Any, **more: Any) -> Any:
        """Returns ``spark.read`` or ``spark.readStream`` with all options of the data source."""
        register(self.spark)
        reader = of.format("trigmon").options(**self._given(**more))
        return reader.schema(self.schema) if self.schema else reader


def columns_of(schema: str | StructType) -> StructType:
    """Returns the columns of a schema. Raises UnfitRowError for a text that is none."""
    from pyspark.errors import ParseException
    from pyspark.sql.types import StructType

    if isinstance(schema, StructType):
        return schema
    try:
        columns = StructType.fromDDL(schema)
    except ParseException as error:
        why = str(error).strip().splitlines()[0].rstrip(".")
    else:
        if isinstance(columns, StructType):
            return columns
        why = f"{schema} is a type without a column's name"
    raise arrow_rows.UnfitRowError(f"{why}. It is written as {DDL_EXAMPLE}")


def register(spark: SparkSession) -> None:
    """Registers ``format("trigmon")`` where Spark does not find it by itself: in a checkout that is not installed."""
    from importlib.util import find_spec

    if find_spec("pyspark_trigmon") is None:
        from trigmon.spark.source import DefaultSource

        spark.dataSource.register(DefaultSource)
