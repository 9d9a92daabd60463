"""The two kinds of schemas, a queue manager's and a group's: their files, versions and migrations."""

from __future__ import annotations

from importlib.resources import files
from typing import Any, NamedTuple

import psycopg
from psycopg import sql

from trigmon.store.port import StoreBroken, StoreTooNew


class Schema(NamedTuple):
    """A kind of schema: the files that create it, in order, and the key of its version in the table ``meta``.

    ``data``: the tables with data of a queue manager or group. ``migrations`` lead from each version to the next; a new
    schema begins with the last version.
    """

    what: str
    key: str
    files: tuple[str, ...]
    data: tuple[str, ...]
    migrations: dict[int, str]

    @property
    def version(self) -> int:
        """The version that this trigmon creates."""
        return 1 + len(self.migrations)


_TAKEN_IN_GET_ORDER = """DROP INDEX message_taken_by;
CREATE INDEX message_taken_by ON message (taken_by, ordinal, queue, priority DESC, id) WHERE taken_by IS NOT NULL;"""
OWN = Schema(
    "a queue manager",
    "schema_version",
    ("schema.sql", "member.sql", "message.sql"),
    ("message", "queue", "object", "outcome", "run", "held", "serving", "cause", "pause", "reservation"),
    {1: _TAKEN_IN_GET_ORDER},
)
GROUP = Schema(
    "a queue-sharing group",
    "group_version",
    ("group.sql", "member.sql", "message.sql"),
    ("message", "queue", "definition", "lock", "role", "deferred", "decided", "joined", "member"),
    {},
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


def migrate(connection: psycopg.Connection[Any], name: str, schema: Schema, where: str) -> None:
    """Migrates the schema to this version. Processes that start at once do so one after the other.

    ``where`` is the place, for error texts. Raises StoreTooNew, StoreBroken.
    """
    version = version_of(connection, name, schema)
    if version > schema.version:
        raise StoreTooNew(f"{where} has version {version}; this trigmon knows {schema.version}: install a later one")
    if version == schema.version:
        return
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"trigmon {name}",))
        version = version_of(connection, name, schema)
        if version == 0:
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(name)))
            for file in schema.files:
                connection.execute(files("trigmon.store.postgres").joinpath(file).read_text())
            connection.execute("INSERT INTO meta VALUES (%s, %s)", (schema.key, str(schema.version)))
        for old in range(version or schema.version, schema.version):
            connection.execute(schema.migrations[old])
            connection.execute("UPDATE meta SET value = %s WHERE key = %s", (str(old + 1), schema.key))
