"""One session of PostgreSQL as trigmon wants it: the primary, every setting read back, a schema of this version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from trigmon.store.port import MayLose, StoreBroken, Unfit, Unreachable
from trigmon.store.postgres.schemas import GROUP, OWN, Schema, migrate

LOWEST_SERVER = 150000
LEASE_MS = 5000
"""So long a queue manager is believed to live that says nothing; it says so five times as often."""

# A dead link shows within seconds, not hours. What the connection string says itself is left as it is.
_LINK = {
    "connect_timeout": "3",
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "target_session_attrs": "read-write",
}
# Plans are pinned: a plan made when a queue was empty must not be a scan when it is full. And no timeout of a role or a
# database cuts a turn in the middle; only one that does not go on is ended, since it keeps others from taking over.
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
# Whoever may not see how far a standby is sees that there is one.
_CONFIRMING = "SELECT FROM pg_stat_replication WHERE coalesce(sync_state IN ('sync', 'quorum'), true)"
_SAFETY = ("fsync", "full_page_writes", "synchronous_standby_names")
_ASKED = ("server_encoding", "synchronous_commit", *_SAFETY)
SAFETY = "SELECT " + ", ".join(f"current_setting('{name}')" for name in _SAFETY)
"""How safe what is committed is now: these settings of a server can change while it runs."""


class Place(NamedTuple):
    """Where a queue manager's data lies: a connection string, a schema, and what its owner puts up with.

    ``accept_loss``: a server without a synchronous standby will do, whose loss loses messages. ``lease_ms`` as
    LEASE_MS.
    """

    dsn: str
    schema: str
    accept_loss: bool = False
    lease_ms: int = LEASE_MS

    def __str__(self) -> str:
        """Without what opens it."""
        said = conninfo_to_dict(self.dsn)
        shown = {key: str(said[key]) for key in ("service", "host", "port", "dbname") if said.get(key)}
        return f"schema {self.schema} of PostgreSQL ({make_conninfo(**shown)})"


def connect(place: Place, schema: Schema = OWN) -> psycopg.Connection[Any]:
    """A session whose search path is the schema, which is made if it is not there.

    Raises Unreachable; Unfit while no commit would be confirmed; MayLose; StoreBroken for all else, and StoreTooNew.
    """
    try:
        said = conninfo_to_dict(place.dsn)
        # Whom the database has not heard for a lease it gives up anyway.
        patience_ms = max(1000, min(LONGEST_SILENCE_MS, place.lease_ms))
        link = _LINK | {"tcp_user_timeout": str(patience_ms)}
        conninfo = make_conninfo(place.dsn, **{key: value for key, value in link.items() if key not in said})
        connection = psycopg.connect(conninfo, autocommit=True, application_name=f"trigmon {place.schema}")
    except psycopg.Error as error:
        raise translated(error, str(place)) from error
    with closed_when_it_fails(connection, place):
        _prepare(connection, place, "group" if schema is GROUP else "store")
        migrate(connection, place.schema, schema, str(place))
    return connection


@contextmanager
def closed_when_it_fails(connection: psycopg.Connection[Any], place: Place) -> Iterator[None]:
    """The first words of a session. Where they fail it is closed; raises Unreachable, StoreBroken for the driver's."""
    try:
        yield
    except psycopg.Error as error:
        connection.close()
        raise translated(error, str(place)) from error
    except BaseException:
        connection.close()
        raise


def translated(error: psycopg.Error, what: str) -> StoreBroken:
    """Returns Unreachable where the session was lost, which another attempt may mend; StoreBroken for all else.

    PostgreSQL ends a session with severity FATAL, and the driver's class does not always say so: the end of a session
    that was idle in a transaction is an InternalError to it.
    """
    is_lost = isinstance(error, psycopg.OperationalError) or error.diag.severity_nonlocalized == "FATAL"
    return (Unreachable if is_lost else StoreBroken)(f"{what}: {error}")


def _prepare(connection: psycopg.Connection[Any], place: Place, section: str) -> None:
    """``section`` is that of the settings which said where this is."""
    version = connection.info.server_version
    if version < LOWEST_SERVER:
        raise StoreBroken(f"{place}: PostgreSQL 15 or later is needed, this is {version // 10000}")
    shown = _shown(connection, _ASKED)
    # Who stands still in the middle of a turn holds up all who wait for theirs: they must be free before their own
    # leases are over, or one that is stopped takes the others with it.
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
        # The first commit would wait for it, and this queue manager could not even say so.
        raise Unfit(f"{place}: no synchronous standby is connected, and no commit is confirmed without")


def check_safety(place: Place, found: Sequence[str], section: str) -> None:
    """``found`` is the row of SAFETY, ``section`` that of the settings which said where this is. Raises MayLose."""
    if not place.accept_loss and (why := _what_may_be_lost(dict(zip(_SAFETY, found, strict=True)))):
        raise MayLose(f"{place}: {why}; with {section}.accept_loss that is put up with")


def _what_may_be_lost(shown: dict[str, str]) -> str:
    """Why what was committed here may not last, empty when it does."""
    for name in ("fsync", "full_page_writes"):
        if shown[name] != "on":
            return f"{name} is off, so a power cut takes what was answered"
    if not shown["synchronous_standby_names"]:
        return "synchronous_standby_names is empty, so whoever loses this server loses what was answered"
    return ""


def _shown(connection: psycopg.Connection[Any], names: Iterable[str]) -> dict[str, str]:
    asked = list(names)
    row = connection.execute("SELECT array(SELECT current_setting(name) FROM unnest(%s::text[]) name)", (asked,))
    found = row.fetchone()
    assert found is not None
    return dict(zip(asked, found[0], strict=True))


def empty(place: Place, schema: Schema = OWN) -> None:
    """Nothing of a queue manager, or of a group, is in the schema any more; nobody serves it now."""
    with psycopg.connect(place.dsn, autocommit=True) as connection:
        name = sql.Identifier(place.schema)
        deletes = [sql.SQL("DELETE FROM {}.{}").format(name, sql.Identifier(table)) for table in schema.data]
        deletes.append(sql.SQL("DELETE FROM {}.meta WHERE key <> {}").format(name, sql.Literal(schema.key)))
        connection.execute(sql.SQL("; ").join(deletes))


def drop(place: Place) -> None:
    """The schema and all that lies in it is gone."""
    with psycopg.connect(place.dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(place.schema)))
