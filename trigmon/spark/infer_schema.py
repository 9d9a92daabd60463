"""The schema of a queue's messages, inferred by Spark from the first of them; nothing is taken."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trigmon.client.address import default_address
from trigmon.spark.frame_source import Source
from trigmon.spark.options import concrete

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class NoSchemaError(ValueError):
    """There is nothing on the queue that a schema could be inferred from. The text names the queue and the reason."""


def schema_of_queue(spark: SparkSession, queue: str, n: int = 1000, *, qmgr: str | None = None) -> StructType:
    """Returns the schema of the first ``n`` messages of a queue, as ``spark.read.json`` infers it from their texts.

    It is for ``format`` json: ``spark.read.format("trigmon").option("format", "json").schema(schema_of_queue(...))``.
    Messages that are no JSON objects are left out. Raises NoSchemaError where no message is one, or none is there.

    >>> from trigmon.spark import schema_of_queue
    >>> schema_of_queue(spark, "ORDERS", 100).simpleString()  # doctest: +SKIP
    'struct<id:bigint,name:string>'
    """
    if n < 1:
        raise ValueError(f"a schema is inferred from 1 message or more, not from {n}")
    source = Source(spark, concrete(qmgr or default_address()), queue, {"maxRows": n, "columns": "data"})
    texts = source.reader(spark.read).load().selectExpr("cast(data AS string) AS data")
    schema = spark.read.option("mode", "DROPMALFORMED").json(texts).schema
    if schema.fields:
        return schema
    if texts.isEmpty():
        raise NoSchemaError(f"{queue} is empty: a schema is inferred from the messages that are there")
    raise NoSchemaError(f"none of the first {n} messages of {queue} is a JSON object with a field")
