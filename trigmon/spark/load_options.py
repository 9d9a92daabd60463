"""The options of :mod:`trigmon.spark.load`: a command line as a value, and what contradicts itself is named. Pure."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from trigmon.client.triggered import triggered
from trigmon.mq.names import is_object_name
from trigmon.paths import file_name
from trigmon.spark import arrow_rows
from trigmon.spark.options import MAX_ROWS
from trigmon.spark.sinks.postgres_table import URL

PARQUET, JDBC, KAFKA = "parquet", "jdbc", "kafka"
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
    "user": (JDBC, KAFKA),
    "secret": (JDBC, KAFKA),
    "topic": (KAFKA,),
    "bootstrap_server": (KAFKA,),
    "key": (KAFKA,),
}
"""The options of the place, and with which places each means something."""


class LoadError(Exception):
    """Options that contradict each other. The text names the option, and the remedy."""


class Plan(NamedTuple):
    """The options as a value. ``options`` are the writer's, the user among them. For Kafka ``columns`` are headers."""

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
    topic: str
    key: str
    options: dict[str, str]
    batch: int
    groups: bool
    wait_interval_ms: int

    @property
    def is_transformed(self) -> bool:
        """Whether the rows that are written are not those that were read."""
        return self.form == "text" or self.to == KAFKA or (self.has_ordinal and self.form != "json")

    @property
    def has_ordinal(self) -> bool:
        """Whether each row of a database has its place in its batch, by which it is there once."""
        return self.to == JDBC and not self.upsert_key


def parsed(arguments: Sequence[str]) -> Plan:
    """Returns the command line as a plan. Ends the program with status 2 and a message for wrong options."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return _plan(options)
    except (LoadError, arrow_rows.UnfitRowError) as error:
        parser.error(str(error))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("load", description="Moves a queue into files, a lake, a database or Kafka.")
    add = parser.add_argument
    add("--queue", help="the queue (default: the one whose trigger started this job)")
    add("--qmgr", help="its queue manager (default: as trigmon.connect finds it)")
    add("--to", choices=[*FILES, JDBC, *LAKES, KAFKA], default="parquet", help="what it is moved into")
    add("--path", help="a directory (default: ~/queues/QUEUE); delta, objects: or a URL, as s3://bucket/orders")
    add("--partition-by", default="", metavar="COLUMN,...", help="files and lakes: a directory for each value of these")
    add("--merge-schema", action="store_true", help="parquet, delta, iceberg, objects: new columns are added")
    add("--catalog", help="iceberg: its name in pyiceberg's configuration (default: default)")
    add("--url", help="jdbc: where, as jdbc:postgresql://host/database")
    add("--table", help="jdbc, iceberg: the table, which is made where there is none")
    add("--upsert-key", default="", metavar="COLUMN,...", help="jdbc, PostgreSQL: rows replace those of the same key")
    add("--topic", help="kafka: the topic, which must be there")
    add("--bootstrap-server", metavar="HOST:PORT,...", help="kafka: brokers of the cluster")
    add("--key", default="", metavar="COLUMN", help="kafka: the column that is the key of each message")
    add("--user", help="jdbc, kafka: as whom")
    add(
        "--secret",
        metavar="NAME",
        help="jdbc, kafka: the password, a file of that name in $CREDENTIALS_DIRECTORY (SECRETS)",
    )
    add("--format", choices=["raw", "text", "json"], default="raw", help="data as bytes, UTF-8 text, or a JSON object")
    add("--schema", metavar="DDL", help="json: columns and types, as Spark writes them; mq_priority is the message's")
    modes = "json: what becomes of a message that is no object of the schema (default: it is set aside)"
    add("--mode", choices=[mode.lower() for mode in arrow_rows.MODES], help=modes)
    add(
        "--columns", default="", metavar="COLUMN,...", help="raw, text: which columns (default: all); kafka: as headers"
    )
    add("--option", action="append", default=[], metavar="KEY=VALUE", help="one of the writer, as compression=zstd")
    add("--batch", type=_positive, default=MAX_ROWS, help="messages a batch (default: %(default)s)")
    add("--groups", action="store_true", help="whole groups only, each in one batch")
    add("--wait", type=float, default=1, metavar="SECONDS", help="without a message, after which it ends (default: 1)")
    return parser


def _plan(given: argparse.Namespace) -> Plan:
    cause = triggered()
    queue = given.queue or (cause.q_name if cause else "")
    _check(given, queue)
    plan = Plan(
        queue=queue,
        qmgr=given.qmgr,
        to=given.to,
        form=given.format,
        schema=given.schema,
        mode=given.mode or arrow_rows.FAILFAST.mode,
        columns=_listed(given.columns) or (() if given.schema or given.to == KAFKA else tuple(arrow_rows.COLUMNS)),
        path=_path(given, queue),
        partition_by=_listed(given.partition_by),
        merge_schema=given.merge_schema,
        catalog=given.catalog or "default",
        url=given.url or "",
        table=given.table or "",
        upsert_key=_listed(given.upsert_key),
        topic=given.topic or "",
        key=given.key,
        options=dict(map(_pair, given.option)) | _of_server(given),
        batch=given.batch,
        groups=given.groups,
        wait_interval_ms=round(given.wait * 1000),
    )
    if not plan.schema:
        arrow_rows.ddl(plan.columns)
        check_columns(plan, [*plan.columns] if plan.to != KAFKA else [*arrow_rows.NAMED])
    return plan


def _check(given: argparse.Namespace, queue: str) -> None:
    """Raises LoadError for options that are missing, or mean nothing beside others."""
    if not is_object_name(queue):
        why = f"{queue!r} is no queue's name" if queue else "which one? No trigger started this job"
        raise LoadError(f"--queue: {why}")
    _refuse(given, f"--to {given.to}", [name for name, to in _MEANS_SOMETHING.items() if given.to not in to])
    _refuse(given, f"--format {given.format}", ["columns"] if given.format == "json" else ["schema", "mode"])
    if given.to == JDBC and not (given.url and given.table):
        raise LoadError("--to jdbc needs --url, as jdbc:postgresql://host/database, and --table")
    if given.to == ICEBERG and "." not in (given.table or ""):
        raise LoadError("--to iceberg needs --table, as shop.orders")
    if given.to == KAFKA and not (given.topic and given.bootstrap_server):
        raise LoadError("--to kafka needs --bootstrap-server, as broker:9092, and --topic")
    if given.to == KAFKA and arrow_rows.DATA in _listed(given.columns):
        raise LoadError("--columns: data is the value of each message with --to kafka, and no header")
    if given.to == JDBC and not given.url.startswith("jdbc:"):
        raise LoadError(f"--url: {given.url!r} does not begin with jdbc:")
    if given.upsert_key and not given.url.startswith(URL):
        raise LoadError(f"--upsert-key is for PostgreSQL, {URL}//host/database")
    if given.format == "json" and not given.schema:
        raise LoadError('--format json needs --schema, as "id bigint, name string"')


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


def _of_server(given: argparse.Namespace) -> dict[str, str]:
    """Returns the brokers, the user and the password, by the names that the writer has for them."""
    user, password = ("sasl.username", "sasl.password") if given.to == KAFKA else ("user", "password")
    found = {"bootstrap.servers": given.bootstrap_server} if given.bootstrap_server else {}
    if given.user:
        found[user] = given.user
    if given.secret:
        directory = os.environ.get("CREDENTIALS_DIRECTORY")
        file = Path(directory or "/", given.secret)
        if "/" in given.secret or not directory or not file.is_file():
            raise LoadError(
                f"--secret: no {given.secret!r} in $CREDENTIALS_DIRECTORY: name it in the process's SECRETS"
            )
        found[password] = file.read_text().rstrip("\n")
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


def check_columns(plan: Plan, names: Sequence[str]) -> None:
    """Raises LoadError for a column that is named by an option and not there."""
    for option, wanted in (("--partition-by", plan.partition_by), ("--key", [plan.key] if plan.key else [])):
        if unknown := [name for name in wanted if name not in names]:
            raise LoadError(f"{option}: there is no column {unknown[0]}; there are {', '.join(names)}")
