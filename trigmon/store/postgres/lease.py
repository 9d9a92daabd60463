"""Leases: one process at a time serves a queue manager, by a row with an epoch and a heartbeat.

The lease is measured by the database's clock and decides when another process may take over. The epoch gives safety:
every turn's transaction begins with the fence, which fails for a process whose data was taken over.
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

# A process without a heartbeat for its lease may be taken over from; one whose session is gone at once, since a process
# that has lost its session stops. While the database works for a process (it waits for a lock, for the standby, or for
# the next step after these), the process cannot send heartbeats, and its lease begins at the end of that work. A
# session that waits for its client gets no such extension. Of another role's session only its existence is visible.
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
"""Raises the epoch of a dead member, so that its process fails the fence."""
END_STUCK = f"""
SELECT pg_terminate_backend(a.pid) FROM member m JOIN pg_stat_activity a ON a.pid = m.backend
WHERE m.serving AND a.wait_event = 'ClientWrite' AND ({GONE})"""
"""Ends sessions of dead members that read nothing of a long answer: no idle timeout ends them and their locks."""
HOLDER = "SELECT host, pid FROM member WHERE name = %s"
BEAT = "UPDATE member SET beat = clock_timestamp() WHERE name = ? AND epoch = ?"
LEAVE = "UPDATE member SET serving = false WHERE name = ? AND epoch = ?"
FENCE = "SELECT fence(?, ?, true)"
CHECK = "SELECT fence(?, ?, false)"

_AGAIN_S = 0.02
_LOCK_MS = "1000"
"""A process stopped in the middle of a turn keeps its row locked; a process that waits for the row tries again."""


def take(connection: psycopg.Connection[Any], name: str, lease_ms: int) -> int | None:
    """Makes this process the one that serves; returns its epoch, or None while another process serves."""
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
    """Takes over as soon as the previous process is gone or its lease has expired. Raises DirectoryInUse."""
    until = time.monotonic() + 2 * place.lease_ms / 1000
    while not take():
        if time.monotonic() > until:
            raise DirectoryInUse(f"{place} is in use by {who()}")
        time.sleep(_AGAIN_S)


def holder(connection: psycopg.Connection[Any], name: str) -> str:
    """Returns the process that serves, as text."""
    try:
        row = connection.execute(HOLDER, (name,)).fetchone()
    except psycopg.Error as error:
        raise Unreachable(f"the process that serves {name} cannot be read: {error}") from error
    return f"process {row[1]} on {row[0]}" if row else "nobody"
