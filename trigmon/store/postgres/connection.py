"""Opens a PostgreSQL session: on the primary, with every setting read back and a schema of this version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from trigmon.store.port import MayLose, StoreBroken, Unfit, Unreachable
from trigmon.store.postgres.schemas import GROUP, OWN, Schema, create_schema, upgrade

LOWEST_SERVER = 150000
LEASE_MS = 5000
"""The lease: a queue manager without a heartbeat for so long counts as dead. It sends five heartbeats in this time."""

# A dead connection is noticed within seconds, not hours. Settings in the connection string take precedence.
_LINK = {
    "connect_timeout": "3",
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "target_session_attrs": "read-write",
}
# Plans are pinned: a plan made when a queue was empty must not be a scan when it is full. No timeout of a role or a
# database may interrupt a turn; only an idle transaction is ended, since it keeps others from taking over.
_SESSION = (
    ("enable_seqscan", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("enable_sort", "off"),
    ("jit", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("default_transaction_isolation", "read committed"),
    ("statement_timeout", "0"),
    ("lock_timeout", "0"),
    ("client_encoding", "UTF8"),
)
LONGEST_IDLE_MS = 5000
LONGEST_SILENCE_MS = 10_000
_LASTING = ("on", "remote_apply")
# A role that may not see a standby's state sees at least that it exists.
_CONFIRMING = "SELECT FROM pg_stat_replication WHERE coalesce(sync_state IN ('sync', 'quorum'), true)"
_SAFETY = ("fsync", "full_page_writes", "synchronous_standby_names")
_ASKED = ("server_encoding", "synchronous_commit", *_SAFETY)
SAFETY = "SELECT " + ", ".join(f"current_setting('{name}')" for name in _SAFETY)
"""Reads the settings that decide whether commits are durable; they can change while the server runs."""


class Place(NamedTuple):
    """Where a queue manager's data lies: a connection string, a schema, and the accepted risk.

    ``accept_loss``: a server without a synchronous standby is accepted, although messages are lost with it.
    ``lease_ms`` as LEASE_MS.
    """

    dsn: str
    schema: str
    accept_loss: bool = False
    lease_ms: int = LEASE_MS

    def __str__(self) -> str:
        """Returns the place without user and password."""
        settings = conninfo_to_dict(self.dsn)
        shown = {key: str(settings[key]) for key in ("service", "host", "port", "dbname") if settings.get(key)}
        return f"schema {self.schema} of PostgreSQL ({make_conninfo(**shown)})"


def connect(place: Place, schema: Schema = OWN) -> psycopg.Connection[Any]:
    """Opens a session whose search path is the schema, and creates the schema if it is empty.

    Raises Unreachable; Unfit while no standby confirms commits; MayLose; UnsupportedVersion; StoreBroken for all else.
    """
    try:
        settings = conninfo_to_dict(place.dsn)
        # A silence longer than the lease loses the role anyway.
        patience_ms = max(1000, min(LONGEST_SILENCE_MS, place.lease_ms))
        link = _LINK | {"tcp_user_timeout": str(patience_ms)}
        conninfo = make_conninfo(place.dsn, **{key: value for key, value in link.items() if key not in settings})
        connection = psycopg.connect(conninfo, autocommit=True, application_name=f"trigmon {place.schema}")
    except psycopg.Error as error:
        raise translated(error, str(place)) from error
    with closed_when_it_fails(connection, place):
        _prepare(connection, place, "group" if schema is GROUP else "store")
        create_schema(connection, place.schema, schema, str(place))
    return connection


def bring_up(connection: psycopg.Connection[Any], place: Place) -> None:
    """Brings a schema to this version, for the process that serves its queue manager.

    Raises Unreachable, StoreBroken.
    """
    try:
        upgrade(connection, place.schema, OWN)
    except psycopg.Error as error:
        raise translated(error, str(place)) from error


@contextmanager
def closed_when_it_fails(connection: psycopg.Connection[Any], place: Place) -> Iterator[None]:
    """Closes the session if its first statements, in the block, fail.

    Raises Unreachable or StoreBroken for errors of the driver.
    """
    try:
        yield
    except psycopg.Error as error:
        connection.close()
        raise translated(error, str(place)) from error
    except BaseException:
        connection.close()
        raise


def translated(error: psycopg.Error, what: str) -> StoreBroken:
    """Returns Unreachable if the session was lost, so that a retry may help; StoreBroken for all else.

    PostgreSQL ends a session with severity FATAL, and the driver's class does not always show that: the end of a
    session that was idle in a transaction is an InternalError.
    """
    is_lost = isinstance(error, psycopg.OperationalError) or error.diag.severity_nonlocalized == "FATAL"
    return (Unreachable if is_lost else StoreBroken)(f"{what}: {error}")


def _prepare(connection: psycopg.Connection[Any], place: Place, section: str) -> None:
    """Sets and checks the session's settings. ``section``: the settings section that names this place."""
    version = connection.info.server_version
    if version < LOWEST_SERVER:
        raise StoreBroken(f"{place}: PostgreSQL 15 or later is needed, this is {version // 10000}")
    shown = _shown(connection, _ASKED)
    # A process that stops in the middle of a turn blocks all others. They must be free before their own leases expire,
    # or one stopped process fences them, too.
    idle_ms = min(LONGEST_IDLE_MS, place.lease_ms // 2)
    wanted = dict(_SESSION) | {
        "search_path": f'"{place.schema}"',
        "idle_in_transaction_session_timeout": f"{idle_ms}ms" if idle_ms % 1000 else f"{idle_ms // 1000}s",
    }
    if shown["synchronous_commit"] not in _LASTING:
        wanted["synchronous_commit"] = "on"
    calls = ", ".join(["set_config(%s, %s, false)"] * len(wanted))
    connection.execute(f"SELECT {calls}", [word for pair in wanted.items() for word in pair])
    for name, got in _shown(connection, wanted).items():
        if got != wanted[name]:
            raise StoreBroken(f"{place}: {name} is {got!r} instead of {wanted[name]!r}")
    if shown["server_encoding"] != "UTF8":
        raise StoreBroken(f"{place}: the database's encoding is {shown['server_encoding']} instead of UTF8")
    check_safety(place, [shown[name] for name in _SAFETY], section)
    if shown["synchronous_standby_names"] and connection.execute(_CONFIRMING).fetchone() is None:
        # The first commit would wait for a standby, and this queue manager could not even report that.
        raise Unfit(f"{place}: no synchronous standby is connected, and no commit is confirmed without")


def check_safety(place: Place, found: Sequence[str], section: str) -> None:
    """Checks that commits are durable, by a row of SAFETY. ``section`` as in the error's remedy. Raises MayLose."""
    if not place.accept_loss and (why := _what_may_be_lost(dict(zip(_SAFETY, found, strict=True)))):
        raise MayLose(f"{place}: {why}; set {section}.accept_loss to accept that")


def _what_may_be_lost(shown: dict[str, str]) -> str:
    """Returns why commits may not be durable; empty if they are."""
    for name in ("fsync", "full_page_writes"):
        if shown[name] != "on":
            return f"{name} is off, so a power cut loses acknowledged messages"
    if not shown["synchronous_standby_names"]:
        return "synchronous_standby_names is empty, so the loss of this server loses acknowledged messages"
    return ""


def _shown(connection: psycopg.Connection[Any], names: Iterable[str]) -> dict[str, str]:
    asked = list(names)
    row = connection.execute("SELECT array(SELECT current_setting(name) FROM unnest(%s::text[]) name)", (asked,))
    found = row.fetchone()
    assert found is not None
    return dict(zip(asked, found[0], strict=True))


def empty(place: Place, schema: Schema = OWN) -> None:
    """Deletes all data of a queue manager, or of a group, from the schema; no process may be using it."""
    with psycopg.connect(place.dsn, autocommit=True) as connection:
        name = sql.Identifier(place.schema)
        deletes = [sql.SQL("DELETE FROM {}.{}").format(name, sql.Identifier(table)) for table in schema.data]
        deletes.append(sql.SQL("DELETE FROM {}.meta WHERE key <> {}").format(name, sql.Literal(schema.key)))
        connection.execute(sql.SQL("; ").join(deletes))


def drop(place: Place) -> None:
    """Drops the schema with all its contents."""
    with psycopg.connect(place.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(place.schema)))
