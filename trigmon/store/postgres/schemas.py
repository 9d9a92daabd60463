"""The two kinds of schemas, a queue manager's and a group's: their files and versions."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from trigmon.store.port import StoreBroken, UnsupportedVersion


class Schema(NamedTuple):
    """A kind of schema: the files that create it, in order, and the key of its version in the table ``meta``.

    ``version``: the one that the files create; a change of a stored table raises it (docs/contributing/recipes.md).
    ``data``: the tables with data of a queue manager or group. ``released``: the first version that is upgraded, and
    ``upgrades`` by version the statements that make the next one of it; a released one never changes.
    """

    what: str
    key: str
    version: int
    files: tuple[str, ...]
    data: tuple[str, ...]
    released: int = 2
    upgrades: Mapping[int, tuple[str, ...]] = MappingProxyType({})


OWN = Schema(
    "a queue manager",
    "schema_version",
    3,
    ("schema.sql", "member.sql", "message.sql"),
    ("message", "queue", "object", "outcome", "run", "held", "serving", "cause", "pause", "reservation"),
    upgrades={2: ()},  # objects of kinds that version 2 does not know: namelists
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

    One of a released version is left as it is; :func:`upgrade` brings it to this one. ``where`` is the place, for error
    texts. Raises UnsupportedVersion for another version, StoreBroken.
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
    if version < schema.released:
        raise UnsupportedVersion(
            f"{where} has version {version}, from before the first release; this trigmon knows {schema.version}:"
            " empty its queues with the trigmon that wrote it, then name an empty schema"
        )


def upgrade(connection: psycopg.Connection[Any], name: str, schema: Schema) -> None:
    """Brings a schema of a released version to this one, in one transaction; for the process that serves it alone."""
    found = version_of(connection, name, schema)
    if found == schema.version:
        return
    with connection.transaction():
        for version in range(found, schema.version):
            for statement in schema.upgrades[version]:
                connection.execute(statement.encode())
        connection.execute("UPDATE meta SET value = %s WHERE key = %s", (str(schema.version), schema.key))


def _create(connection: psycopg.Connection[Any], name: str, schema: Schema) -> int:
    """Runs the schema's files; returns their version."""
    connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(name)))
    for file in schema.files:
        connection.execute(files("trigmon.store.postgres").joinpath(file).read_text())
    connection.execute("INSERT INTO meta VALUES (%s, %s)", (schema.key, str(schema.version)))
    return schema.version
