"""How the messages of a queue become DataFrames."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trigmon.spark import arrow_rows
from trigmon.spark.options import TASK_ADDRESS, Options, read

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Source:
    """How the messages of a queue become DataFrames. ``in_plan``: those of a small batch may come in Spark's plan."""

    spark: SparkSession
    address: str
    queue: str
    options: dict[str, Any]
    schema: str | None = None
    secret: str = ""
    in_plan: bool = False

    @cached_property
    def named(self) -> Options:
        """The options of the data source as a value. Raises OptionError."""
        return read(self._given())

    @cached_property
    def columns(self) -> StructType:
        """The columns that are asked for. Raises UnfitRowError and Spark's errors."""
        from pyspark.sql.pandas.types import from_arrow_schema
        from pyspark.sql.types import StructType

        if self.schema:
            return StructType.fromDDL(self.schema)
        return from_arrow_schema(arrow_rows.schema_of(self.named.columns or arrow_rows.COLUMNS))

    @cached_property
    def arrow(self) -> pyarrow.Schema:
        """These columns in Arrow's types. Raises as :attr:`columns`."""
        from trigmon.spark.source import DefaultSource

        return DefaultSource.arrow(self.named, self.columns)

    def checked(self) -> Source:
        """Returns it. Raises OptionError and UnfitRowError where no message could be read so."""
        from pyspark.errors import PySparkException

        with suppress(PySparkException):  # which Spark words itself, when the rows are asked for
            _ = self.arrow
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


def register(spark: SparkSession) -> None:
    """Registers ``format("trigmon")`` where Spark does not find it by itself: in a checkout that is not installed."""
    from importlib.util import find_spec

    if find_spec("pyspark_trigmon") is None:
        from trigmon.spark.source import DefaultSource

        spark.dataSource.register(DefaultSource)
