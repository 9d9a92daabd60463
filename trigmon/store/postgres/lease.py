"""Who serves a queue manager: one process at a time, by a row with an epoch and a lease.

The lease is judged by the database's clock and decides when another may take over. Safety is the epoch's: every turn's
transaction begins with the fence, which a process that was taken over from does not pass.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import Any

import psycopg

from trigmon.store.port import DirectoryInUse, Unreachable
from trigmon.store.postgres.connection import Place, translated

# Whoever says nothing for as long as his lease may be taken over from; whose session is gone at once, since a process
# that has lost it stops. For whom the database is at work (he waits for a lock, for the standby, or for its next step
# behind that) cannot say anything, and has a lease from the end of that; it is not where it waits for him. A session of
# another role shows none of this but that it is there.
GONE = """
    NOT EXISTS (
        SELECT FROM pg_stat_activity a
        WHERE a.pid = m.backend AND coalesce(a.backend_start = m.backend_start, true)
        AND (a.state = 'active' AND a.wait_event_type IS DISTINCT FROM 'Client'
            OR clock_timestamp() - greatest(m.beat, a.state_change) <= m.lease_ms * interval '1 millisecond'))"""
TAKE = f"""
INSERT INTO member AS m (name, epoch, beat, lease_ms, serving, backend, backend_start, host, pid)
VALUES (%(name)s, 1, clock_timestamp(), %(lease_ms)s, true, pg_backend_pid(),
        (SELECT backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()), %(host)s, %(pid)s)
ON CONFLICT (name) DO UPDATE SET
    epoch = m.epoch + 1, beat = clock_timestamp(), lease_ms = excluded.lease_ms, serving = true,
    backend = excluded.backend, backend_start = excluded.backend_start, host = excluded.host, pid = excluded.pid
WHERE NOT m.serving OR {GONE}
RETURNING epoch"""
DEAD = f"SELECT m.name FROM member m WHERE m.serving AND m.name <> ? AND ({GONE}) ORDER BY m.name"
DISMISS = f"""
UPDATE member m SET serving = false, epoch = epoch + 1 WHERE m.name = ? AND m.serving AND ({GONE}) RETURNING m.epoch"""
"""Nobody passes the fence any more with the epoch that a dead one had."""
END_STUCK = f"""
SELECT pg_terminate_backend(a.pid) FROM member m JOIN pg_stat_activity a ON a.pid = m.backend
WHERE m.serving AND a.wait_event = 'ClientWrite' AND ({GONE})"""
"""A dead one that takes nothing of a long answer is not idle, so no timeout ends it and what it holds."""
HOLDER = "SELECT host, pid FROM member WHERE name = %s"
BEAT = "UPDATE member SET beat = clock_timestamp() WHERE name = ? AND epoch = ?"
LEAVE = "UPDATE member SET serving = false WHERE name = ? AND epoch = ?"
FENCE = "SELECT fence(?, ?, true)"
CHECK = "SELECT fence(?, ?, false)"

_AGAIN_S = 0.02
_LOCK_MS = "1000"
"""A holder that was stopped in the middle of a turn keeps its row; whoever waits for it asks again."""


def take(connection: psycopg.Connection[Any], name: str, lease_ms: int) -> int | None:
    """Makes this process the one that serves; its epoch, or None while another does."""
    values = {"name": name, "lease_ms": lease_ms, "host": socket.gethostname(), "pid": os.getpid()}
    try:
        with connection.transaction():
            connection.execute("SELECT set_config('lock_timeout', %s, true)", (_LOCK_MS,))
            row = connection.execute(TAKE, values).fetchone()
    except psycopg.errors.LockNotAvailable:
        return None
    except psycopg.Error as error:
        raise translated(error, f"taking over {name}") from error
    return None if row is None else int(row[0])


def wait_to_take(take: Callable[[], bool], place: Place, who: Callable[[], str]) -> None:
    """Takes as soon as whoever served before is gone, or says nothing for his lease. Raises DirectoryInUse."""
    until = time.monotonic() + 2 * place.lease_ms / 1000
    while not take():
        if time.monotonic() > until:
            raise DirectoryInUse(f"{place} is in use by {who()}")
        time.sleep(_AGAIN_S)


def holder(connection: psycopg.Connection[Any], name: str) -> str:
    """The process that serves, for a person."""
    try:
        row = connection.execute(HOLDER, (name,)).fetchone()
    except psycopg.Error as error:
        raise Unreachable(f"who serves {name}: {error}") from error
    return f"process {row[1]} on {row[0]}" if row else "nobody"
