"""A Spark job without code: moves a queue into Parquet, JSON or a database, by options alone.

    spark-submit queue_load.py --queue ORDERS --to parquet --path /data/orders
    spark-submit queue_load.py --queue ORDERS --to json --path /data/orders --format json --schema "id int, name string"
    spark-submit queue_load.py --queue ORDERS --to jdbc --url jdbc:postgresql://db/shop --table orders --format text
    spark-submit queue_load.py --queue ORDERS --to delta --path s3://lake/orders --option aws_region=eu-central-1

``process_defs/QUEUE.LOAD.yaml`` is its process definition for a trigger. Each message is moved exactly once, wherever
the job is killed: files have a directory for each batch (:mod:`trigmon.spark.file_table`), a database has a transaction
for each batch and a unique index (:mod:`trigmon.spark.jdbc_table`), a Delta or Iceberg table and an object store what
:mod:`trigmon.spark.sinks` says. A message that cannot be a row goes to the queue's
backout queue.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trigmon.client.triggered import triggered
from trigmon.mq.errors import MQError
from trigmon.mq.names import is_object_name
from trigmon.paths import file_name
from trigmon.spark import arrow_rows
from trigmon.spark.drain_queue import Drained, drain
from trigmon.spark.file_table import refuse_batch, write_batch
from trigmon.spark.files.staging import sweep
from trigmon.spark.jdbc_table import ORDINAL, Database
from trigmon.spark.options import MAX_ROWS
from trigmon.spark.sinks.delta_table import DeltaSink
from trigmon.spark.sinks.iceberg_table import IcebergSink
from trigmon.spark.sinks.jdbc_connection import DatabaseError
from trigmon.spark.sinks.object_table import ObjectSink
from trigmon.spark.sinks.postgres_table import URL, PostgresSink
from trigmon.spark.sinks.sink import Sink, SinkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from trigmon.spark.queue_batches import Batch

PARQUET, JDBC = "parquet", "jdbc"
FILES = (PARQUET, "json")
DELTA, ICEBERG, OBJECTS = LAKES = ("delta", "iceberg", "objects")
_MEANS_SOMETHING = {
    "path": (*FILES, DELTA, OBJECTS),
    "partition_by": (*FILES, *LAKES),
    "merge_schema": (PARQUET, *LAKES),
    "table": (JDBC, ICEBERG),
    "catalog": (ICEBERG,),
    "url": (JDBC,),
    "upsert_key": (JDBC,),
    "user": (JDBC,),
    "secret": (JDBC,),
}
"""The options of the place, and with which places each means something."""
_IDS = tuple(name for name, (_, kind) in arrow_rows.COLUMNS.items() if kind == "binary" and name != arrow_rows.DATA)


class LoadError(Exception):
    """Options that contradict each other. The text names the option, and the remedy."""


class Plan(NamedTuple):
    """The options as a value. ``options`` are those of Spark's writer, the database's user among them."""

    queue: str
    qmgr: str | None
    to: str
    form: str
    schema: str | None
    mode: str
    columns: tuple[str, ...]
    path: str | Path
    partition_by: tuple[str, ...]
    merge_schema: bool
    catalog: str
    url: str
    table: str
    upsert_key: tuple[str, ...]
    options: dict[str, str]
    batch: int
    groups: bool
    wait_interval_ms: int

    @property
    def has_ordinal(self) -> bool:
        """Whether each row of a database has its place in its batch, by which it is there once."""
        return self.to == JDBC and not self.upsert_key


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
    columns = [*plan.columns, arrow_rows.ORDINAL] if plan.has_ordinal and plan.columns else plan.columns
    write: Callable[[DataFrame, Batch], Any] | None = None
    refuse: Callable[[str], bool] | None = None
    sink = _sink(spark, plan)
    if plan.has_ordinal:
        database = Database(spark, plan.url, plan.table, plan.options)
        database.check()
        write = database.write
    elif sink is None:
        sweep(plan.path)
        refuse = partial(refuse_batch, plan.path)
        write = partial(_write_files, plan)
    options = {"format": "json", "mode": plan.mode} if schema else {"columns": ",".join(dict.fromkeys(columns))}
    return drain(
        spark,
        write,
        to=sink,
        transform=lambda frame: _rows(frame, plan),
        queue=plan.queue,
        qmgr=plan.qmgr,
        max_rows=plan.batch,
        groups=plan.groups,
        refuse=refuse,
        wait_interval_ms=plan.wait_interval_ms,
        progress=progress,
        options=options,
        schema=schema,
    )


def _sink(spark: SparkSession, plan: Plan) -> Sink | None:
    """Returns the sink of a table that other engines share, None for files and rows that a database only adds."""
    if plan.upsert_key:
        return PostgresSink(spark, plan.url, plan.table, upsert_key=plan.upsert_key, options=plan.options)
    if plan.to == DELTA:
        of: type[DeltaSink] | type[ObjectSink] = DeltaSink
    elif plan.to == OBJECTS:
        of = ObjectSink
    elif plan.to == ICEBERG:
        by, merges = plan.partition_by, plan.merge_schema
        return IcebergSink(plan.table, catalog=plan.catalog, partition_by=by, merge_schema=merges, options=plan.options)
    else:
        return None
    return of(str(plan.path), partition_by=plan.partition_by, merge_schema=plan.merge_schema, options=plan.options)


def _write_files(plan: Plan, rows: DataFrame, batch: Batch) -> bool:
    where, by, merges, more = plan.path, plan.partition_by, plan.merge_schema, plan.options
    return write_batch(rows, where, batch.id, partition_by=by, form=plan.to, options=more, merge_schema=merges)


def _rows(frame: DataFrame, plan: Plan) -> DataFrame:
    """Returns the rows to write: bytes as text in format text, and the ordinal by its own name."""
    from pyspark.sql import functions as F  # noqa: N812

    if plan.form == "text":
        texts = {name: F.lower(F.hex(name)) for name in _IDS}
        texts[arrow_rows.DATA] = F.validate_utf8(F.col(arrow_rows.DATA).cast("string"))
        frame = frame.withColumns({name: text for name, text in texts.items() if name in frame.columns})
    if plan.has_ordinal and plan.form != "json":
        frame = frame.withColumnRenamed(arrow_rows.ORDINAL, ORDINAL)
    return frame


def _checked_schema(plan: Plan) -> str:
    """Returns the schema of format json, with the ordinal for a database. Raises LoadError."""
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        names = StructType.fromDDL(str(plan.schema)).fieldNames()
        own = [name for name in names if name.startswith(arrow_rows.JSON_PREFIX)]
        arrow_rows.ddl([name.removeprefix(arrow_rows.JSON_PREFIX) for name in own])
    except (PySparkException, arrow_rows.UnfitRowError) as error:
        why = str(error).strip().splitlines()[0]
        raise LoadError(f'--schema: {why}. It is written as "id bigint, name string"') from None
    _check_partitions(plan, names)
    return f"{plan.schema}, {ORDINAL} bigint" if plan.has_ordinal and ORDINAL not in names else str(plan.schema)


def _check_partitions(plan: Plan, names: Sequence[str]) -> None:
    if unknown := [name for name in plan.partition_by if name not in names]:
        raise LoadError(f"--partition-by: there is no column {unknown[0]}; there are {', '.join(names)}")


# -- the options --------------------------------------------------------------------------------------------


def parsed(arguments: Sequence[str]) -> Plan:
    """Returns the command line as a plan. Ends the program with status 2 and a message for wrong options."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return _plan(options)
    except (LoadError, arrow_rows.UnfitRowError) as error:
        parser.error(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("load", description="Moves a queue into files, a table of a lake or a database.")
    add = parser.add_argument
    add("--queue", help="the queue (default: the one whose trigger started this job)")
    add("--qmgr", help="its queue manager (default: as trigmon.connect finds it)")
    add("--to", choices=[*FILES, JDBC, *LAKES], default="parquet", help="what it is moved into")
    add("--path", help="a directory (default: ~/queues/QUEUE); delta, objects: or a URL, as s3://bucket/orders")
    add("--partition-by", default="", metavar="COLUMN,...", help="not jdbc: a directory for each value of these")
    add("--merge-schema", action="store_true", help="parquet, delta, iceberg, objects: new columns are added")
    add("--catalog", help="iceberg: its name in pyiceberg's configuration (default: default)")
    add("--url", help="jdbc: where, as jdbc:postgresql://host/database")
    add("--table", help="jdbc, iceberg: the table, which is made where there is none")
    add("--upsert-key", default="", metavar="COLUMN,...", help="jdbc, PostgreSQL: rows replace those of the same key")
    add("--user", help="jdbc: as whom")
    add("--secret", metavar="NAME", help="jdbc: the password, a file of that name in $CREDENTIALS_DIRECTORY (SECRETS)")
    add("--format", choices=["raw", "text", "json"], default="raw", help="data as bytes, UTF-8 text, or a JSON object")
    add("--schema", metavar="DDL", help="json: columns and types, as Spark writes them; mq_priority is the message's")
    modes = "json: what becomes of a message that is no object of the schema (default: it is set aside)"
    add("--mode", choices=[mode.lower() for mode in arrow_rows.MODES], help=modes)
    add("--columns", default="", metavar="COLUMN,...", help="raw, text: which columns (default: all)")
    add("--option", action="append", default=[], metavar="KEY=VALUE", help="one of the writer, as compression=zstd")
    add("--batch", type=_positive, default=MAX_ROWS, help="messages a batch (default: %(default)s)")
    add("--groups", action="store_true", help="whole groups only, each in one batch")
    add("--wait", type=float, default=1, metavar="SECONDS", help="without a message, after which it ends (default: 1)")
    return parser


def _plan(given: argparse.Namespace) -> Plan:
    cause = triggered()
    queue = given.queue or (cause.q_name if cause else "")
    if not is_object_name(queue):
        why = f"{queue!r} is no queue's name" if queue else "which one? No trigger started this job"
        raise LoadError(f"--queue: {why}")
    _refuse(given, f"--to {given.to}", [name for name, to in _MEANS_SOMETHING.items() if given.to not in to])
    _refuse(given, f"--format {given.format}", ["columns"] if given.format == "json" else ["schema", "mode"])
    if given.to == JDBC and not (given.url and given.table):
        raise LoadError("--to jdbc needs --url, as jdbc:postgresql://host/database, and --table")
    if given.to == ICEBERG and "." not in (given.table or ""):
        raise LoadError("--to iceberg needs --table, as shop.orders")
    if given.to == JDBC and not given.url.startswith("jdbc:"):
        raise LoadError(f"--url: {given.url!r} does not begin with jdbc:")
    if given.upsert_key and not given.url.startswith(URL):
        raise LoadError(f"--upsert-key is for PostgreSQL, {URL}//host/database")
    if given.format == "json" and not given.schema:
        raise LoadError('--format json needs --schema, as "id bigint, name string"')
    plan = Plan(
        queue=queue,
        qmgr=given.qmgr,
        to=given.to,
        form=given.format,
        schema=given.schema,
        mode=given.mode or arrow_rows.FAILFAST.mode,
        columns=_listed(given.columns) or (() if given.schema else tuple(arrow_rows.COLUMNS)),
        path=_path(given, queue),
        partition_by=_listed(given.partition_by),
        merge_schema=given.merge_schema,
        catalog=given.catalog or "default",
        url=given.url or "",
        table=given.table or "",
        upsert_key=_listed(given.upsert_key),
        options=dict(map(_pair, given.option)) | _credentials(given.user, given.secret),
        batch=given.batch,
        groups=given.groups,
        wait_interval_ms=round(given.wait * 1000),
    )
    if not plan.schema:
        arrow_rows.ddl(plan.columns)
        _check_partitions(plan, plan.columns)
    return plan


def _path(given: argparse.Namespace, queue: str) -> str | Path:
    """Returns the directory, or the URL of one, which is no path of this machine."""
    if given.path and given.to in LAKES:
        return str(given.path)
    return Path(given.path) if given.path else Path.home() / "queues" / file_name(queue)


def _refuse(given: argparse.Namespace, where: str, without_effect: Sequence[str]) -> None:
    """Raises LoadError for an option without effect."""
    for name in without_effect:
        if getattr(given, name):
            raise LoadError(f"--{name.replace('_', '-')} means nothing with {where}")


def _credentials(user: str | None, secret: str | None) -> dict[str, str]:
    found = {"user": user} if user else {}
    if secret:
        directory = os.environ.get("CREDENTIALS_DIRECTORY")
        file = Path(directory or "/", secret)
        if "/" in secret or not directory or not file.is_file():
            raise LoadError(f"--secret: no {secret!r} in $CREDENTIALS_DIRECTORY: name it in the process's SECRETS")
        found["password"] = file.read_text().rstrip("\n")
    return found


def _pair(text: str) -> tuple[str, str]:
    name, is_pair, value = text.partition("=")
    if not (name and is_pair):
        raise LoadError(f"--option: {text!r} is not KEY=VALUE")
    return name, value


def _listed(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def _tell(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - the output of the job
