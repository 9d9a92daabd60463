"""The two kinds of schemas, a queue manager's and a group's: their files and versions."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from trigmon.store.port import StoreBroken, UnsupportedVersion


class Schema(NamedTuple):
    """A kind of schema: the files that create it, in order, and the key of its version in the table ``meta``.

    ``version``: the one that the files create; a change of a stored table raises it (docs/contributing/recipes.md).
    ``data``: the tables with data of a queue manager or group.
    """

    what: str
    key: str
    version: int
    files: tuple[str, ...]
    data: tuple[str, ...]


OWN = Schema(
    "a queue manager",
    "schema_version",
    2,
    ("schema.sql", "member.sql", "message.sql"),
    ("message", "queue", "object", "outcome", "run", "held", "serving", "cause", "pause", "reservation"),
)
GROUP = Schema(
    "a queue-sharing group",
    "group_version",
    2,
    ("group.sql", "member.sql", "message.sql"),
    ("message", "queue", "definition", "lock", "role", "deferred", "decided", "joined", "member"),
)


def version_of(connection: psycopg.Connection[Any], name: str, schema: Schema) -> int:
    """Returns the version of the schema of this name; 0 if it is empty. Raises StoreBroken."""
    # A query instead of a look-up by name, which may have cached that the table is missing.
    found = connection.execute("SELECT FROM pg_tables WHERE schemaname = %s AND tablename = 'meta'", (name,))
    if found.fetchone() is None:
        return 0
    row = connection.execute("SELECT value FROM meta WHERE key = %s", (schema.key,)).fetchone()
    if row is None:
        raise StoreBroken(f"schema {name} holds something else than the data of {schema.what}")
    return int(row[0])


def create_schema(connection: psycopg.Connection[Any], name: str, schema: Schema, where: str) -> None:
    """Creates the schema if it is empty. Processes that start at once do so one after the other.

    ``where`` is the place, for error texts. Raises UnsupportedVersion for another version, StoreBroken.
    """
    version = version_of(connection, name, schema)
    if version == 0:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"trigmon {name}",))
            version = version_of(connection, name, schema) or _create(connection, name, schema)
    if version > schema.version:
        raise UnsupportedVersion(
            f"{where} has version {version}; this trigmon knows {schema.version}: install a later one"
        )
    if version < schema.version:
        raise UnsupportedVersion(
            f"{where} has version {version}, from before the first release; this trigmon knows {schema.version}:"
            " empty its queues with the trigmon that wrote it, then name an empty schema"
        )


def _create(connection: psycopg.Connection[Any], name: str, schema: Schema) -> int:
    """Runs the schema's files; returns their version."""
    connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(name)))
    for file in schema.files:
        connection.execute(files("trigmon.store.postgres").joinpath(file).read_text())
    connection.execute("INSERT INTO meta VALUES (%s, %s)", (schema.key, str(schema.version)))
    return schema.version
