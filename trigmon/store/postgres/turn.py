"""The statements of a turn: writes wait in memory and go with the next query, or with the commit.

The writes of a call that may be undone are kept apart; only a query within the call needs a savepoint.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence

from trigmon.store.postgres.pipeline import Link, Row
from trigmon.store.postgres.write_batch import Write, Writes
from trigmon.store.sql import statements as sql

Statement = tuple[str, Sequence[object]]
CHUNKS = (16, 128, 1024)
"""Rows read at a time: more with each read, unless they are large."""
LARGE_CHUNK = 1 << 20
_CHUNKED = frozenset({sql.GROUP_FROM})
_ONE_ROW = frozenset({sql.PLACE_FIRST, sql.PLACE_AFTER_SAME, sql.PLACE_AFTER_LOWER})


class Turn:
    """Transactions on a session, one after the other: the statements ``opening`` begin each.

    ``check`` is sent before a query outside a transaction.
    """

    def __init__(self, link: Link, opening: Sequence[Statement], check: Statement) -> None:
        self.link = link
        self.writes = Writes()
        self.is_open = False
        self._opening = opening
        self._check = check
        self._of_call: list[Write] | None = None
        self._is_saved = False

    def execute(self, statement: str, values: tuple[object, ...] = (), expected: int | None = None) -> Iterable[Row]:
        """Runs a query and returns its rows; a write waits, and fails unless it changes as many rows as expected."""
        if statement in _CHUNKED:
            return self.open_rows(statement, values)
        if _has_rows(statement):
            return self.ask(statement, values)
        if self._of_call is None:
            self.writes.add(statement, values, expected)
        else:
            self._of_call.append((statement, values, expected))
        return ()

    def ask(self, statement: str, values: tuple[object, ...]) -> list[Row]:
        """Returns the rows of a query, after all waiting writes."""
        does_write = "INSERT" in statement
        if self.writes.count or self._of_call or self.is_open or does_write:
            self.begin()
            self._send_writes(does_more=does_write)
        else:
            self.link.send(*self._check)
        return self.link.ask(statement, values)

    def open_rows(self, statement: str, values: tuple[object, ...]) -> Rows:
        """Returns the rows of a query, read a few at a time."""
        return Rows(self._chunks(statement, values))

    def _chunks(self, statement: str, values: tuple[object, ...]) -> Generator[Row, None, None]:
        """Yields a query's rows, a few at first: most look-ups end with the first row. No row changes meanwhile."""
        if statement in _ONE_ROW:
            yield from self.ask(statement, values)
            return
        offset, step = 0, 0
        while True:
            limit = CHUNKS[step]
            rows = self.first_rows(statement, values, limit, offset)
            yield from rows
            if len(rows) < limit:
                return
            offset += limit
            if step < len(CHUNKS) - 1 and size(rows) < LARGE_CHUNK:
                step += 1

    def first_rows(self, statement: str, values: tuple[object, ...], limit: int, offset: int = 0) -> list[Row]:
        """Returns at most ``limit`` rows of a query, from this offset."""
        return self.ask(f"{statement} LIMIT {limit} OFFSET ?", (*values, offset))

    # -- a call -----------------------------------------------------------------------------------------

    def save(self) -> None:
        """Begins a call that may be undone, until :meth:`release`."""
        if self._of_call is None:
            self._of_call = []

    @property
    def can_undo(self) -> bool:
        """Whether a call that may be undone is in progress."""
        return self._of_call is not None

    def release(self) -> None:
        """Ends the call: it cannot be undone any more."""
        of_call, self._of_call = self._of_call, None
        for write in of_call or ():
            self.writes.add(*write)
        if self._is_saved:
            self._is_saved = False
            self.writes.add("RELEASE SAVEPOINT call", ())

    def undo(self) -> bool:
        """Undoes the call; returns whether it had written anything."""
        was_written = bool(self._of_call)
        self._of_call = None
        if self._is_saved:
            self._is_saved = False
            self.writes.add("ROLLBACK TO SAVEPOINT call", ())
            self.writes.add("RELEASE SAVEPOINT call", ())
            was_written = True
        return was_written

    # -- the transaction --------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begins the transaction, if it has not begun."""
        if not self.is_open:
            self.is_open = True
            for statement in self._opening:
                self.link.send(*statement)

    def commit(self, *, lasts: bool, then: str = "") -> None:
        """Sends the waiting writes and commits. ``lasts``: the commit is durable when this returns.

        ``then`` is a statement after the commit, in the same round trip.
        """
        self.begin()
        self._send_writes()
        if not lasts:
            self.link.send("SET LOCAL synchronous_commit = off")
        self.is_open = False
        self.link.commit(then)

    def _send_writes(self, *, does_more: bool = False) -> None:
        """Sends the waiting writes. ``does_more``: a further write of the call follows."""
        for write in self.writes.drain():
            self._send(*write)
        if self._of_call or (does_more and self._of_call is not None):
            if not self._is_saved:
                self.link.send("SAVEPOINT call")
                self._is_saved = True
            for write in self._of_call:
                self._send(*write)
            self._of_call.clear()

    def _send(self, statement: str, values: Sequence[object], expected: int | None) -> None:
        if expected is None:
            self.link.send(statement, values)
        else:
            self.link.send(counted(statement), (*values, expected))


class Rows:
    """The rows of a query, read during iteration."""

    def __init__(self, rows: Generator[Row, None, None]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Row]:
        return self._rows

    def close(self, _force: bool = False) -> None:
        """Stops reading."""
        self._rows.close()


def counted(statement: str) -> str:
    """Returns the statement extended so that it fails unless it changes as many rows as its last value says."""
    return f"WITH done AS ({statement} RETURNING 1) SELECT expect((SELECT count(*) FROM done), ?)"


def size(rows: list[Row]) -> int:
    """Returns about how many bytes of messages these rows hold; other rows are small."""
    return sum(len(value) for row in rows for value in row if isinstance(value, bytes))


def _has_rows(statement: str) -> bool:
    return statement.lstrip().startswith("SELECT") or "RETURNING" in statement
