"""A Spark job without code: moves a queue into Parquet, JSON, a lake, a database or Kafka, by options alone.

    spark-submit queue_load.py --queue ORDERS --to parquet --path /data/orders
    spark-submit queue_load.py --queue ORDERS --to json --path /data/orders --format json --schema "id int, name string"
    spark-submit queue_load.py --queue ORDERS --to jdbc --url jdbc:postgresql://db/shop --table orders --format text
    spark-submit queue_load.py --queue ORDERS --to kafka --bootstrap-server broker:9092 --topic orders --key correl_id
    spark-submit queue_load.py --queue ORDERS --to delta --path s3://lake/orders --option aws_region=eu-central-1

``process_defs/QUEUE.LOAD.yaml`` is its process definition for a trigger. Each message is moved exactly once, wherever
the job is killed: files have a directory for each batch (:mod:`trigmon.spark.file_table`), a database has a transaction
for each batch and a unique index (:mod:`trigmon.spark.jdbc_table`), a Delta or Iceberg table, an object store and a
topic of Kafka what :mod:`trigmon.spark.sinks` says. A message that cannot be a row goes to the queue's
backout queue.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from trigmon.mq.errors import MQError
from trigmon.spark import arrow_rows
from trigmon.spark.drain_queue import Drained, drain
from trigmon.spark.file_sink import FileSink
from trigmon.spark.frame_source import columns_of
from trigmon.spark.jdbc_table import ORDINAL, Database
from trigmon.spark.load_options import DELTA, FILES, ICEBERG, JDBC, KAFKA, LoadError, Plan, check_columns, parsed
from trigmon.spark.options import Options
from trigmon.spark.sinks.delta_table import DeltaSink
from trigmon.spark.sinks.iceberg_table import IcebergSink
from trigmon.spark.sinks.jdbc_connection import DatabaseError
from trigmon.spark.sinks.kafka_topic import KafkaSink
from trigmon.spark.sinks.object_table import ObjectSink
from trigmon.spark.sinks.postgres_table import PostgresSink
from trigmon.spark.sinks.sink import Sink, SinkError
from trigmon.spark.source import DefaultSource

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from trigmon.spark.queue_batches import Batch

_IDS = tuple(name for name, (_, kind) in arrow_rows.COLUMNS.items() if kind == "binary" and name != arrow_rows.DATA)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the job: reads the options, drains the queue and prints the result."""
    from pyspark.sql import SparkSession

    plan = parsed(sys.argv[1:] if arguments is None else arguments)
    spark = SparkSession.builder.appName(f"load {plan.queue}").getOrCreate()
    try:
        done = load(spark, plan, progress=lambda batch: _tell(f"{batch.count} messages written"))
    except (LoadError, DatabaseError, SinkError, MQError) as error:
        sys.exit(f"load: {error}")
    finally:
        spark.stop()
    for message in done.rejected:
        _tell(f"set aside: message {message.msg_id.hex()}: {message.why}")
    _tell(f"{done.rows} messages in {done.batches} batches, {len(done.rejected)} set aside, {done.seconds:.1f} s")


def load(spark: SparkSession, plan: Plan, progress: Callable[[Batch], Any] | None = None) -> Drained:
    """Moves the messages of the queue. Raises LoadError, DatabaseError, SinkError before anything is taken, MQError."""
    schema = plan.schema and _checked_schema(plan)
    options = {"format": "json", "mode": plan.mode} if schema else {"columns": ",".join(_columns(plan))}
    sink = _sink(spark, plan)
    return drain(
        spark,
        _checked_database(spark, plan).write if sink is None else None,
        to=sink,
        transform=(lambda frame: _rows(frame, plan)) if plan.is_transformed else None,
        queue=plan.queue,
        qmgr=plan.qmgr,
        max_rows=plan.batch,
        groups=plan.groups,
        wait_interval_ms=plan.wait_interval_ms,
        progress=progress,
        options=options,
        schema=schema,
    )


def _columns(plan: Plan) -> list[str]:
    """Returns the columns to read, which are more than those that were named."""
    if plan.to == KAFKA:
        return list(dict.fromkeys([arrow_rows.DATA, *([plan.key] if plan.key else []), *plan.columns]))
    return list(dict.fromkeys([*plan.columns, *([arrow_rows.ORDINAL] if plan.has_ordinal else [])]))


def _sink(spark: SparkSession, plan: Plan) -> Sink | None:
    """Returns where the rows go, None for a database that only adds them."""
    if plan.has_ordinal:
        return None
    if plan.to == JDBC:
        return PostgresSink(spark, plan.url, plan.table, upsert_key=plan.upsert_key, options=plan.options)
    if plan.to == KAFKA:
        return KafkaSink(plan.topic, options=plan.options)
    more: dict[str, Any] = {
        "partition_by": plan.partition_by,
        "merge_schema": plan.merge_schema,
        "options": plan.options,
    }
    if plan.to == ICEBERG:
        return IcebergSink(plan.table, catalog=plan.catalog, **more)
    if plan.to in FILES:
        return FileSink(plan.path, form=plan.to, **more)
    return (DeltaSink if plan.to == DELTA else ObjectSink)(str(plan.path), **more)


def _checked_database(spark: SparkSession, plan: Plan) -> Database:
    """Returns the table that rows are only added to. Raises DatabaseError where it cannot take them once."""
    database = Database(spark, plan.url, plan.table, plan.options)
    database.check()
    return database


def _rows(frame: DataFrame, plan: Plan) -> DataFrame:
    """Returns the rows to write: bytes as text in format text, the ordinal by its own name, and as Kafka has them."""
    from pyspark.sql import functions as F  # noqa: N812

    if plan.form == "text":
        texts = {name: F.lower(F.hex(name)) for name in _IDS}
        texts[arrow_rows.DATA] = F.validate_utf8(F.col(arrow_rows.DATA).cast("string"))
        frame = frame.withColumns({name: text for name, text in texts.items() if name in frame.columns})
    if plan.has_ordinal and plan.form != "json":
        frame = frame.withColumnRenamed(arrow_rows.ORDINAL, ORDINAL)
    return _messages(frame, plan) if plan.to == KAFKA else frame


def _messages(frame: DataFrame, plan: Plan) -> DataFrame:
    """Returns the rows as messages of Kafka: the data or the JSON object, the key, and the columns as headers."""
    from pyspark.sql import functions as F  # noqa: N812

    def header(name: Column, value: Column) -> Column:
        return F.struct(name.alias("key"), value.cast("string").cast("binary").alias("value"))

    columns = {"value": F.to_json(F.struct("*")) if plan.form == "json" else F.col(arrow_rows.DATA)}
    if plan.key:
        is_scalar = "<" not in dict(frame.dtypes)[plan.key]  # the sink names one that is not
        columns["key"] = F.col(plan.key).cast("string") if is_scalar else F.col(plan.key)
    fields = [header(F.lit(name), F.col(name)) for name in plan.columns if name != arrow_rows.HEADERS]
    if arrow_rows.HEADERS in plan.columns:
        properties = F.transform(F.map_entries(arrow_rows.HEADERS), lambda of: header(of["key"], of["value"]))
        columns["headers"] = F.concat(F.array(*fields), properties) if fields else properties
    elif fields:
        columns["headers"] = F.array(*fields)
    return frame.select(*[column.alias(name) for name, column in columns.items()])


def _checked_schema(plan: Plan) -> str:
    """Returns the schema of format json, with the ordinal for a database. Raises LoadError."""
    from pyspark.errors import PySparkException

    read = Options(plan.queue, "", "", is_json=True, malformed=arrow_rows.Malformed(plan.mode.upper()))
    try:
        columns = columns_of(str(plan.schema))
        arrow_rows.check_kept_text(DefaultSource.arrow(read, columns), read.malformed)
    except (arrow_rows.UnfitRowError, PySparkException) as error:
        raise LoadError(f"--schema: {error}") from None
    names = columns.fieldNames()
    check_columns(plan, names)
    return f"{plan.schema}, {ORDINAL} bigint" if plan.has_ordinal and ORDINAL not in names else str(plan.schema)


def _tell(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - the output of the job
