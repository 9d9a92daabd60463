"""The store of a queue manager that keeps nothing on its own machine: every turn is one transaction of PostgreSQL.

Writes wait in memory and go with the next question or the end of the turn; most turns are one trip to the server. A
call that may be taken back becomes a savepoint only where it asks in the middle. An error, or a session that is lost,
means that the outcome is unknown: StoreBroken goes up to the top and the process ends, as on SQLite. What became of its
last turn its clients ask for when the next one serves: units of work and their outcomes are written in one transaction.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing

from trigmon.rules import changes as c
from trigmon.rules.facts import Cursor, Found, Selection, StoredMessage
from trigmon.store.base import can_wait, must_last
from trigmon.store.port import DirectoryInUse, StoreBroken
from trigmon.store.postgres import member
from trigmon.store.postgres.ahead import Ahead
from trigmon.store.postgres.connection import Place, connect
from trigmon.store.postgres.link import Failed, Link, Row
from trigmon.store.postgres.writes import Writes
from trigmon.store.sql import statements as sql
from trigmon.store.sql.looking import message_of
from trigmon.store.sql.store import WRITTEN, RowStore

MOST_DEFERRED = 1000
"""Writes that may wait in memory for a commit, and turns."""
DEFERRED_BYTES = 1 << 20
CHUNKS = (16, 128, 1024)
"""Rows that are read at a time, by how many were read before; as few again while they are large."""
LARGE_CHUNK = 1 << 20
BEATS = 5
"""In the time of a lease."""
UNSURE = 0.6
"""The part of a lease behind whose last beat nothing is answered before the fence has been asked."""
_AGAIN_S = 0.02


class PostgresStore(RowStore):
    """One schema, one session. It serves nobody before :meth:`take` succeeded; :meth:`open` takes by itself."""

    error = Failed

    def __init__(self, place: Place) -> None:
        self._place = place
        self._connection = connect(place)
        super().__init__(self._execute_one, str(place))
        self._link: Link
        self._who: tuple[str, int] = ("", 0)
        self._ahead = Ahead()
        self._writes = Writes()
        self._of_call: list[tuple[str, tuple[object, ...]]] | None = None
        self._is_saved = False
        self._in_turn = False
        self._must_sync = False
        self._must_commit = False
        self._deferred = 0
        self._beaten_s = 0.0
        self._sizes: dict[str, int] = {}

    # -- life -------------------------------------------------------------------------------------------

    def take(self, q_mgr_name: str) -> bool:
        """Makes this process the one that serves this queue manager; False while another does."""
        if self._who[1]:
            return True
        before_s = time.monotonic()
        epoch = member.take(self._connection, q_mgr_name, self._place.lease_ms)
        if epoch is None:
            return False
        self._who = q_mgr_name, epoch
        self._beaten_s = before_s
        self._link = Link(self._connection)
        return True

    def holder(self, q_mgr_name: str) -> str:
        """Who serves this queue manager, for a person."""
        return member.holder(self._connection, q_mgr_name)

    def open(self, q_mgr_name: str, now: int) -> int:
        """See the port. Who served before and is gone, or says nothing, is waited for."""
        until = time.monotonic() + 2 * self._place.lease_ms / 1000
        while not self.take(q_mgr_name):
            if time.monotonic() > until:
                raise DirectoryInUse(f"{self._place} is in use by {self.holder(q_mgr_name)}")
            time.sleep(_AGAIN_S)
        try:
            first = self._recover(q_mgr_name, now)
            self._must_sync = True
            self._commit()
            self._load()
        except BaseException:
            self.abandon()
            raise
        return first

    def beat(self) -> None:
        """Says that this process lives, so that nobody takes over. Raises Fenced when somebody has."""
        if self._in_turn:
            return
        before_s = time.monotonic()
        for statement, values in (
            ("BEGIN", ()),
            ("SET LOCAL synchronous_commit = off", ()),
            (member.BEAT, self._who),  # first: behind it nobody takes over before the commit
            (member.CHECK, self._who),
        ):
            self._link.send(statement, values)
        self._link.commit()
        self._beaten_s = before_s

    @property
    def beat_s(self) -> float:
        """How often :meth:`beat` is to be called."""
        return self._place.lease_ms / 1000 / BEATS

    def keep_time(self, said: str, *, must: bool = False) -> bool:
        """See the port."""
        goes_anyway = self._in_turn or self._writes.count > 0
        if must or goes_anyway:
            self._writes.add(sql.SET_META, ("own_time", said))
        return must or goes_anyway

    def begin(self) -> None:
        """See the port. Who has not said for long that he lives asks first whether he still serves."""
        if time.monotonic() - self._beaten_s > UNSURE * self._place.lease_ms / 1000:
            self.beat()

    def mark(self) -> None:
        """See the port."""
        self._release()
        self.standing.mark()
        self._ahead.mark()

    def prepare(self) -> None:
        """Commits what was written so far, and waits until it lasts; units of work in flight stay in flight."""
        self._release()
        self._must_sync = True
        self._commit()

    def undo(self) -> None:
        """See the port."""
        was_written = bool(self._of_call)
        self._of_call = None
        if self._is_saved:
            self._is_saved = False
            self._writes.add("ROLLBACK TO SAVEPOINT call", ())
            self._writes.add("RELEASE SAVEPOINT call", ())
            was_written = True
        self.standing.undo()
        self._ahead.undo(self.standing.units)
        if was_written:
            self._forget_call()

    def _release(self) -> None:
        """The call is over, and cannot be undone any more."""
        of_call, self._of_call = self._of_call, None
        for statement, values in of_call or ():
            self._writes.add(statement, values)
        if self._is_saved:
            self._is_saved = False
            self._writes.add("RELEASE SAVEPOINT call", ())

    def end(self) -> None:
        """See the port. What a crash undoes anyway waits for a later turn's commit, while it is little."""
        self._release()
        self._deferred += 1
        writes = self._writes
        is_much = max(writes.count, self._deferred) >= MOST_DEFERRED or writes.bytes >= DEFERRED_BYTES
        if self._in_turn or self._must_commit or is_much:
            self._commit()

    def idle(self) -> None:
        """See the port. What waits is written."""
        self._commit()

    def close(self) -> None:
        """See the port. The next need not wait for the lease."""
        self._release()
        self._must_sync = True
        self._commit()
        self._link.ask(member.LEAVE, self._who)
        self.abandon()

    def abandon(self) -> None:
        """See the port."""
        self._connection.close()

    # -- transactions -----------------------------------------------------------------------------------

    def _begin_turn(self) -> None:
        """Nobody else takes over until this transaction has ended."""
        if not self._in_turn:
            self._in_turn = True
            self._link.send("BEGIN")
            self._link.send(member.FENCE, self._who)

    def _commit(self) -> None:
        if self._writes.count or self._in_turn:
            self._begin_turn()
            self._send_writes()
            if not self._must_sync:
                self._link.send("SET LOCAL synchronous_commit = off")
            self._in_turn = False
            self._link.commit()
        self._must_sync = self._must_commit = False
        self._deferred = 0

    def _send_writes(self) -> None:
        for statement, values in self._writes.drain():
            self._link.send(statement, values)
        if self._of_call:
            if not self._is_saved:
                self._link.send("SAVEPOINT call")
                self._is_saved = True
            for statement, values in self._of_call:
                self._link.send(statement, values)
            self._of_call.clear()

    def _execute_one(self, statement: str, values: tuple[object, ...] = ()) -> Iterable[Row]:
        """The rows of a statement that has rows, now; another waits for the next trip."""
        if statement in _CHUNKED:
            return self._open_rows(statement, values)
        if _has_rows(statement):
            return self._ask(statement, values)
        if self._of_call is None:
            self._writes.add(statement, values)
        else:
            self._of_call.append((statement, values))
        return ()

    def _ask(self, statement: str, values: tuple[object, ...]) -> list[Row]:
        """Rows as they are behind everything that was written so far."""
        if self._writes.count or self._of_call or self._in_turn or "INSERT" in statement:
            self._begin_turn()
            self._send_writes()
        else:
            self._link.send(member.CHECK, self._who)
        return self._link.ask(statement, values)

    def _many(self, statement: str, values: Iterable[tuple[object, ...]]) -> None:
        for each in values:
            self._execute_one(statement, each)

    # -- looking ----------------------------------------------------------------------------------------

    def _open_rows(self, statement: str, values: tuple[object, ...]) -> Rows:
        return Rows(self._chunks(statement, values))

    def _chunks(self, statement: str, values: tuple[object, ...]) -> Generator[Row, None, None]:
        """The rows of a statement, a few at first: most looks end with the first row. Nobody writes meanwhile."""
        offset, step = 0, 0
        while True:
            limit = CHUNKS[step]
            rows = self._ask(f"{statement} LIMIT {limit} OFFSET ?", (*values, offset))
            yield from rows
            if len(rows) < limit:
                return
            offset += limit
            if step < len(CHUNKS) - 1 and _size(rows) < LARGE_CHUNK:
                step += 1

    def find(self, selection: Selection) -> Found:
        """See the port. The first of a queue are known ahead."""
        number = self._numbers.get(selection.q_name)
        if number is None or not _is_first(selection) or self._groups.has_groups(number):
            return super().find(selection)

        def read(after: Cursor | None) -> tuple[list[StoredMessage], bool]:
            return self._read_ahead(selection.q_name, number, after)

        try:
            with closing(self._known(selection.q_name, read)) as ahead:
                return self._look(selection, number, ahead).found()
        except _Unreadable:
            self._ahead.forget(selection.q_name)
            return super().find(selection)

    def _known(
        self, q_name: str, read: Callable[[Cursor | None], tuple[list[StoredMessage], bool]]
    ) -> Generator[StoredMessage, None, None]:
        yield from self._ahead.messages(q_name, read)

    def _read_ahead(self, q_name: str, number: int, after: Cursor | None) -> tuple[list[StoredMessage], bool]:
        """The next messages outside groups behind a place; fewer where the last were large."""
        limit = CHUNKS[0 if self._sizes.get(q_name, LARGE_CHUNK) * CHUNKS[1] > LARGE_CHUNK else 1]
        if after is None:
            rows = self._first_rows(sql.FIND_FIRST["plain"], (number,), limit)
        else:
            rows = self._first_rows(sql.FIND_AFTER_SAME["plain"], (number, after.priority, after.number), limit)
            if len(rows) < limit and after.priority > 0:
                lower = self._first_rows(sql.FIND_AFTER_LOWER["plain"], (number, after.priority), limit)
                return self._readable(q_name, rows + lower), len(lower) < limit
        return self._readable(q_name, rows), len(rows) < limit

    def _first_rows(self, statement: str, values: tuple[object, ...], limit: int) -> list[Row]:
        return self._ask(f"{statement} LIMIT {limit} OFFSET ?", (*values, 0))

    def _readable(self, q_name: str, rows: list[Row]) -> list[StoredMessage]:
        if rows:
            self._sizes[q_name] = _size(rows) // len(rows)
        messages = [message_of(row, q_name) for row in rows]
        if None in messages:
            raise _Unreadable
        return [message for message in messages if message is not None]

    # -- writing ----------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[c.AnyChange], can_be_undone: bool) -> None:
        """See the port."""
        lasts = must_last(changes)
        self._must_sync = self._must_sync or lasts
        self._must_commit = self._must_commit or lasts or not all(map(can_wait, changes))
        if can_be_undone and self._of_call is None:
            self._of_call = []
        try:
            for change in changes:
                if type(change) in WRITTEN:
                    self._write(change)
                    self._ahead.follow(change)
                self.standing.follow(change)
        except StoreBroken:
            raise
        except Exception as error:
            if self._of_call is not None:
                raise  # what was written of this call is taken back
            raise StoreBroken(f"{type(error).__name__}: {error}") from error


class Rows:
    """Rows that are read as they are iterated over."""

    def __init__(self, rows: Generator[Row, None, None]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Row]:
        return self._rows

    def close(self, _force: bool = False) -> None:
        """No more are read."""
        self._rows.close()


class _Unreadable(Exception):  # noqa: N818
    """A row is not what was written, so what lies ahead cannot be known; a look at the rows themselves finds it."""


_CHUNKED = frozenset({sql.GROUP_FROM})


def _has_rows(statement: str) -> bool:
    return statement.lstrip().startswith("SELECT") or "RETURNING" in statement


def _is_first(selection: Selection) -> bool:
    """Whether it asks for the first messages of a queue, whatever they are."""
    return (
        selection.is_anything
        and selection.oldest_from is None
        and not selection.counts_expired
        and not selection.is_expired
        and not selection.reserved_by
    )


def _size(rows: list[Row]) -> int:
    """About how many bytes of messages these rows are; rows of anything else are small."""
    return sum(len(value) for row in rows for value in row if isinstance(value, bytes))
