"""A member's session in its group's schema: its number, its epoch, that it lives, and the bell that others ring."""

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
"""In the time of a lease."""


class Reached(NamedTuple):
    """How far a group had come when a member was last told that something lasts.

    ``timeline`` is PostgreSQL's number of the server's history: a standby that is promoted begins the next.
    ``version`` is the group's in it.
    """

    timeline: int = 0
    version: int = 0


NOTHING_REACHED = Reached()


class Session:
    """Joins at once, with a number for ever; it has a turn from :meth:`take` on. ``who``: name and epoch.

    ``bell`` is the statement that tells the other members to look. ``reached`` is where the group is at least, and
    then ``timeline`` where it is. Raises Unreachable, Unfit where it is not, StoreBroken, StoreTooNew, AnothersStore
    for the schema of another group.
    """

    def __init__(self, place: Place, group_name: str, name: str, reached: Reached) -> None:
        self._place = place
        self._connection = connect(place, GROUP)
        self._name = name
        self._beaten_s = 0.0
        self.who: tuple[str, int] = (name, 0)
        channel = place.schema.replace('"', '""')
        self.bell, self._listen = f'NOTIFY "{channel}"', f'LISTEN "{channel}"'
        self.turn: Turn
        with closed_when_it_fails(self._connection, place):
            self.timeline = check_reached(self._connection, place, reached)
            check_name(self._connection, place, group_name)
            self.number = _join(self._connection, name)

    def take(self) -> bool:
        """Makes this process the one that is the member; False while another is."""
        if self.who[1]:
            return True
        before_s = time.monotonic()
        epoch = lease.take(self._connection, self._name, self._place.lease_ms)
        if epoch is None:
            return False
        self.who = self._name, epoch
        self._beaten_s = before_s
        # The lock first, and only behind it whether this one may still have it: nobody recovers a member meanwhile.
        opening = (("BEGIN", ()), (group_sql.LOCK, ()), (lease.CHECK, self.who))
        self.turn = Turn(Link(self._connection), opening, (lease.CHECK, self.who))
        return True

    def holder(self) -> str:
        """The process that is the member, for a person."""
        return lease.holder(self._connection, self._name)

    def beat(self) -> None:
        """Says that it lives. Raises Fenced, and MayLose where the server is no longer as safe as at the start."""
        before_s = time.monotonic()
        self._send_beat()
        (found,) = self.turn.link.ask(SAFETY)
        self._beaten_s = before_s
        check_safety(self._place, found, "group")

    def beat_if_due(self) -> None:
        """Lets a beat go with the next trip: who waits for his turn lives meanwhile."""
        if time.monotonic() - self._beaten_s > self._place.lease_ms / 1000 / BEATS:
            self._beaten_s = time.monotonic()
            self._send_beat()

    @contextmanager
    def kept_alive(self) -> Iterator[None]:
        """Within the block a thread with a session of its own says that it lives, whatever keeps this one busy."""
        over = threading.Event()
        thread = threading.Thread(target=self._keep_alive, args=(over,), name="lives", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _keep_alive(self, over: threading.Event) -> None:
        every_s = self._place.lease_ms / 1000 / BEATS
        if over.wait(every_s):
            return  # most blocks are over sooner, and need no session
        # Where it fails the member's own session finds out why.
        with suppress(psycopg.Error, StoreBroken), connect(self._place, GROUP) as connection:
            connection.execute("SET synchronous_commit = off")  # a beat waits for no standby
            connection.execute(for_cursor(lease.BEAT), self.who)
            while not over.wait(every_s):
                connection.execute(for_cursor(lease.BEAT), self.who)

    def end_stuck(self) -> None:
        """Ends the sessions of dead members that stand still in the middle of an answer; by a session of its own."""
        # Where it fails the member's own session finds out why, or it is tried again.
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
        """From now on the bell is heard."""
        self.turn.link.ask(self._listen)

    def close(self) -> None:
        """Ends the session at once; a turn that is going on is undone."""
        self._connection.close()


def check_name(connection: psycopg.Connection[Any], place: Place, group_name: str) -> None:
    """The first who comes names the group. Raises AnothersStore where the schema is another group's."""
    connection.execute("INSERT INTO meta VALUES ('group_name', %s) ON CONFLICT DO NOTHING", (group_name,))
    row = connection.execute("SELECT value FROM meta WHERE key = 'group_name'").fetchone()
    if row is not None and row[0] != group_name:
        raise AnothersStore(f"{place} holds the queue-sharing group {row[0]}, not {group_name}")


def check_reached(connection: psycopg.Connection[Any], place: Place, reached: Reached) -> int:
    """The timeline of a server that has all that a member was told to last. Raises Unfit for one that has not.

    A loss may be put up with, but nobody goes on with what another server has gone on from.
    """
    row = connection.execute(group_sql.REACHED).fetchone()
    assert row is not None
    there = Reached(*row)
    if there.timeline < reached.timeline:
        why = f"its history is number {there.timeline}, and the group has gone on in number {reached.timeline}"
        raise Unfit(f"{place} is a server that was replaced: {why}; end it, so that the one that serves is found")
    if there.version < reached.version and not place.accept_loss:
        why = f"the group stands at {there.version} there, and {reached.version} was acknowledged"
        raise Unfit(f"{place} has not all that it should have: {why}; start the queue manager again to go on with that")
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
    """A statement for a cursor, which marks its parameters otherwise than a link."""
    return statement.replace("?", "%s")
