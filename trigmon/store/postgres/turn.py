"""The statements of a turn: writes wait in memory and go with the next question, or with the end of the transaction.

A call that may be taken back keeps its writes apart; it becomes a savepoint only where it asks in the middle.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence

from trigmon.store.postgres.pipeline import Link, Row
from trigmon.store.postgres.write_batch import Write, Writes
from trigmon.store.sql import statements as sql

Statement = tuple[str, Sequence[object]]
CHUNKS = (16, 128, 1024)
"""Rows that are read at a time, by how many were read before; as few again while they are large."""
LARGE_CHUNK = 1 << 20
_CHUNKED = frozenset({sql.GROUP_FROM})


class Turn:
    """Transactions on a link, one after the other: ``opening`` begins each.

    ``check`` goes before a question that needs none.
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
        """The rows of a statement that has rows, now; another waits, and has to change as many rows as expected."""
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
        """Rows as they are behind everything that was written so far."""
        does_write = "INSERT" in statement
        if self.writes.count or self._of_call or self.is_open or does_write:
            self.begin()
            self._send_writes(does_more=does_write)
        else:
            self.link.send(*self._check)
        return self.link.ask(statement, values)

    def open_rows(self, statement: str, values: tuple[object, ...]) -> Rows:
        """Rows that are read a few at a time."""
        return Rows(self._chunks(statement, values))

    def _chunks(self, statement: str, values: tuple[object, ...]) -> Generator[Row, None, None]:
        """The rows of a statement, a few at first: most looks end with the first row. Nobody writes meanwhile."""
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
        """So many rows of a statement."""
        return self.ask(f"{statement} LIMIT {limit} OFFSET ?", (*values, offset))

    # -- a call -----------------------------------------------------------------------------------------

    def save(self) -> None:
        """What follows is of a call that may be taken back, until :meth:`release`."""
        if self._of_call is None:
            self._of_call = []

    @property
    def can_undo(self) -> bool:
        """Whether a call is going on that may be taken back."""
        return self._of_call is not None

    def release(self) -> None:
        """The call is over, and cannot be undone any more."""
        of_call, self._of_call = self._of_call, None
        for write in of_call or ():
            self.writes.add(*write)
        if self._is_saved:
            self._is_saved = False
            self.writes.add("RELEASE SAVEPOINT call", ())

    def undo(self) -> bool:
        """Takes the call back; whether it had written anything."""
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
        """The transaction begins, if it has not."""
        if not self.is_open:
            self.is_open = True
            for statement in self._opening:
                self.link.send(*statement)

    def commit(self, *, lasts: bool, then: str = "") -> None:
        """Writes what waits and ends the transaction; it ``lasts`` when this returns, whatever happens to the server.

        ``then`` is a statement that follows in the same trip.
        """
        self.begin()
        self._send_writes()
        if not lasts:
            self.link.send("SET LOCAL synchronous_commit = off")
        self.is_open = False
        self.link.commit(then)

    def _send_writes(self, *, does_more: bool = False) -> None:
        """``does_more``: what follows writes, too, and is of the call that may be taken back."""
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
    """Rows that are read as they are iterated over."""

    def __init__(self, rows: Generator[Row, None, None]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Row]:
        return self._rows

    def close(self, _force: bool = False) -> None:
        """No more are read."""
        self._rows.close()


def counted(statement: str) -> str:
    """The statement, which fails unless it changes as many rows as its last value says."""
    return f"WITH done AS ({statement} RETURNING 1) SELECT expect((SELECT count(*) FROM done), ?)"


def size(rows: list[Row]) -> int:
    """About how many bytes of messages these rows are; rows of anything else are small."""
    return sum(len(value) for row in rows for value in row if isinstance(value, bytes))


def _has_rows(statement: str) -> bool:
    return statement.lstrip().startswith("SELECT") or "RETURNING" in statement
