"""A member's session in its group's schema: its number, epoch and heartbeat, and notifications between members."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import psycopg

from trigmon.store.port import AnothersStore, StoreBroken, Unfit
from trigmon.store.postgres import group_sql, lease
from trigmon.store.postgres.connection import SAFETY, Place, check_safety, closed_when_it_fails, connect
from trigmon.store.postgres.pipeline import Link
from trigmon.store.postgres.schemas import GROUP
from trigmon.store.postgres.turn import Turn

BEATS = 5
"""Heartbeats in the time of a lease."""


class Reached(NamedTuple):
    """The state of the group that a member last knew to be durable.

    ``timeline`` is PostgreSQL's timeline of the server: the promotion of a standby begins the next one. ``version`` is
    the group's version in it.
    """

    timeline: int = 0
    version: int = 0


NOTHING_REACHED = Reached()


class Session:
    """A member's session. Joins the group, with a permanent number; has a turn once :meth:`take` has succeeded.

    ``who``: name and epoch. ``notify``: the statement that wakes the other members. ``reached``: the state that the
    server must have at least; ``timeline``: the server's. Raises Unreachable; Unfit for a server with less;
    StoreBroken, UnsupportedVersion; AnothersStore for the schema of another group.
    """

    def __init__(self, place: Place, group_name: str, name: str, reached: Reached) -> None:
        self._place = place
        self._connection = connect(place, GROUP)
        self._name = name
        self._beaten_s = 0.0
        self.who: tuple[str, int] = (name, 0)
        channel = place.schema.replace('"', '""')
        self.notify, self._listen = f'NOTIFY "{channel}"', f'LISTEN "{channel}"'
        self.turn: Turn
        with closed_when_it_fails(self._connection, place):
            self.timeline = check_reached(self._connection, place, reached)
            check_name(self._connection, place, group_name)
            self.number = _join(self._connection, name)

    def take(self) -> bool:
        """Makes this process the one that serves the member; returns False while another one does."""
        if self.who[1]:
            return True
        before_s = time.monotonic()
        epoch = lease.take(self._connection, self._name, self._place.lease_ms)
        if epoch is None:
            return False
        self.who = self._name, epoch
        self._beaten_s = before_s
        # First the lock, then the fence: while the lock is held, no other member recovers this one.
        opening = (("BEGIN", ()), (group_sql.LOCK, ()), (lease.CHECK, self.who))
        self.turn = Turn(Link(self._connection), opening, (lease.CHECK, self.who))
        return True

    def holder(self) -> str:
        """Returns the process that serves the member, as text."""
        return lease.holder(self._connection, self._name)

    @property
    def lease_s(self) -> float:
        """The lease in seconds: a member without a heartbeat for so long counts as dead."""
        return self._place.lease_ms / 1000

    @property
    def beat_s(self) -> float:
        """How often a heartbeat is due, in seconds."""
        return self.lease_s / BEATS

    def beat(self) -> None:
        """Sends a heartbeat. Raises Fenced; MayLose if commits on the server are no longer durable."""
        before_s = time.monotonic()
        self._send_beat()
        (found,) = self.turn.link.ask(SAFETY)
        self._beaten_s = before_s
        check_safety(self._place, found, "group")

    def beat_if_due(self) -> None:
        """Sends a heartbeat, if due, with the next round trip, so that the lease covers the wait for a turn."""
        if time.monotonic() - self._beaten_s > self.beat_s:
            self._beaten_s = time.monotonic()
            self._send_beat()

    @contextmanager
    def kept_alive(self) -> Iterator[None]:
        """Sends heartbeats in the block, by a thread with its own session: the member's own store may open slowly."""
        over = threading.Event()
        thread = threading.Thread(target=self._keep_alive, args=(over,), name="lives", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _keep_alive(self, over: threading.Event) -> None:
        if over.wait(self.beat_s):
            return  # most blocks end sooner and need no session
        # On failure the member's own session finds the cause.
        with suppress(psycopg.Error, StoreBroken), connect(self._place, GROUP) as connection:
            connection.execute("SET synchronous_commit = off")  # a heartbeat waits for no standby
            connection.execute(for_cursor(lease.BEAT), self.who)
            while not over.wait(self.beat_s):
                connection.execute(for_cursor(lease.BEAT), self.who)

    def end_stuck(self) -> None:
        """Ends sessions of dead members that read no answer and block all turns; uses another session. Thread-safe."""
        # On failure the member's own session finds the cause, or a later call tries again.
        with suppress(psycopg.Error, StoreBroken), connect(self._place, GROUP) as connection:
            connection.execute(lease.END_STUCK)

    def _send_beat(self) -> None:
        for statement, values in (
            ("BEGIN", ()),
            ("SET LOCAL synchronous_commit = off", ()),
            (lease.BEAT, self.who),
            (lease.CHECK, self.who),
            ("COMMIT", ()),
        ):
            self.turn.link.send(statement, values)

    def listen(self) -> None:
        """Begins to receive notifications of other members (LISTEN)."""
        self.turn.link.ask(self._listen)

    def close(self) -> None:
        """Ends the session at once; an open turn is rolled back."""
        self._connection.close()


def check_name(connection: psycopg.Connection[Any], place: Place, group_name: str) -> None:
    """Checks the group's name, or writes it for the first member. Raises AnothersStore for another group's schema."""
    connection.execute("INSERT INTO meta VALUES ('group_name', %s) ON CONFLICT DO NOTHING", (group_name,))
    row = connection.execute("SELECT value FROM meta WHERE key = 'group_name'").fetchone()
    if row is not None and row[0] != group_name:
        raise AnothersStore(f"{place} holds the queue-sharing group {row[0]}, not {group_name}")


def check_reached(connection: psycopg.Connection[Any], place: Place, reached: Reached) -> int:
    """Returns the server's timeline. Raises Unfit if the server lacks a state that the member knew to be durable.

    ``accept_loss`` allows a loss, but never a server on an older timeline, which another server has replaced.
    """
    row = connection.execute(group_sql.REACHED).fetchone()
    assert row is not None
    there = Reached(*row)
    if there.timeline < reached.timeline:
        why = f"its timeline is {there.timeline}, and the group has continued on timeline {reached.timeline}"
        raise Unfit(f"{place} is a server that was replaced: {why}; stop it, so that the primary is found")
    if there.version < reached.version and not place.accept_loss:
        why = f"the group's version there is {there.version}, and {reached.version} was acknowledged"
        raise Unfit(f"{place} lacks acknowledged changes: {why}; restart the queue manager to continue without them")
    return there.timeline


def _join(connection: psycopg.Connection[Any], name: str) -> int:
    asked = for_cursor(group_sql.NUMBER)
    with connection.transaction():
        row = connection.execute(asked, (name,)).fetchone()
        if row is None:
            connection.execute(group_sql.LOCK)
            connection.execute(group_sql.JOIN, (name,))
            row = connection.execute(asked, (name,)).fetchone()
    assert row is not None
    return int(row[0])


def for_cursor(statement: str) -> str:
    """Returns a statement with the parameter marks of a cursor (``%s``)."""
    return statement.replace("?", "%s")
