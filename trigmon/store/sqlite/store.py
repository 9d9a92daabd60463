"""The store of a queue manager on one machine: every turn is one SQLite transaction, every call a savepoint in it.

A turn that holds nothing durable commits without a sync; the first durable change of a turn decides for all behind
it. Ids come from blocks, so that none is used again after a crash and no put pays for a counter on disk. Any error
of SQLite means that the outcome is unknown: StoreBroken goes up to the top and the process ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import apsw

from trigmon.rules import changes as c
from trigmon.store.base import can_wait, must_last
from trigmon.store.port import StoreBroken
from trigmon.store.sql import statements as sql
from trigmon.store.sql.store import WRITTEN, RowStore
from trigmon.store.sqlite.connection import connect, lock_directory
from trigmon.store.sqlite.spare import Spare

FILE_NAME = "qm.db"
CHECKPOINT_PAGES = 4096
SHORT_PAGES = 128
"""Likewise on a disk with little room: what the log holds must fit into the file, which may have to grow for it."""

MOST_DEFERRED = 1000
"""Turns whose writes may wait in memory for a commit, and writes: nobody is to wait for a large unit's pages."""
TOUCH = "INSERT OR REPLACE INTO meta (key, value) VALUES ('synced', 1)"
"""A write for the sake of its sync. To update a row to what it is already writes nothing, and syncs nothing."""


class SqliteStore(RowStore):
    """One directory, one file, one connection. ``vfs`` as in :func:`trigmon.store.sqlite.connection.connect`.

    ``is_short`` says that the disk has little room: then the log is kept short. ``spare`` is what a start gives up.
    """

    error = apsw.Error

    def __init__(self, directory: Path, vfs: str | None = None) -> None:
        self._path = directory / FILE_NAME
        self._lock = lock_directory(directory)
        self.spare = Spare(directory)
        self.spare.give_up_where_short()
        self.is_short = False
        try:
            self._db = connect(self._path, vfs)
        except BaseException:
            os.close(self._lock)
            raise
        self._cursor = self._db.cursor()
        super().__init__(self._cursor.execute, str(directory))
        self._is_full = True
        self._must_sync = False
        self._must_commit = False
        self._is_unsynced = False
        self._deferred = 0
        self._in_turn = False
        self._in_call = False
        self._wal_pages = 0
        self._db.set_wal_hook(self._note_wal)

    # -- life -------------------------------------------------------------------------------------------

    def open(self, q_mgr_name: str, now: int) -> int:
        """See the port."""
        try:
            self._execute("BEGIN IMMEDIATE")
            first = self._recover(q_mgr_name, now)
            self._execute("COMMIT")
            self._load()
        except apsw.Error as error:
            raise StoreBroken(f"{self._path}: {error}") from error
        return first

    def keep_time(self, said: str, *, must: bool = False) -> bool:
        """See the port."""
        if must and not self._in_turn:
            self._begin_turn(is_full=False)
        if self._in_turn:
            self._run_sql(sql.SET_META, ("own_time", said))
        return self._in_turn

    def begin(self) -> None:
        """See the port. The transaction itself begins with the first write."""

    def mark(self) -> None:
        """See the port. The savepoint itself is set before the first write of a call that can be undone."""
        self._release()
        self.standing.mark()

    def prepare(self) -> None:
        """Commits what was written so far, with a sync, and syncs what was committed without; units stay in flight."""
        self._release()
        if self._in_turn:
            self._must_sync = True
            self._commit()
        elif self._is_unsynced:
            self._sync()

    def undo(self) -> None:
        """See the port."""
        if self._in_call:
            self._run_sql("ROLLBACK TO call")
            self._run_sql("RELEASE call")
            self._in_call = False
            self._forget_call()
        self.standing.undo()

    def end(self) -> None:
        """See the port. What a crash undoes anyway waits for a later turn's commit: its pages are written once."""
        self._release()
        self._deferred += 1
        if self._in_turn and (self._must_commit or self._deferred >= MOST_DEFERRED):
            self._commit()
            if self._wal_pages >= (SHORT_PAGES if self.is_short else CHECKPOINT_PAGES):
                self._checkpoint()

    def _commit(self) -> None:
        self._in_turn = False
        self._run_sql("COMMIT")
        self._is_unsynced = not self._is_full
        if self._must_sync and self._is_unsynced:
            self._sync()
        self._must_sync = self._must_commit = False
        self._deferred = 0

    def _release(self) -> None:
        """The call is over, and cannot be undone any more."""
        if self._in_call:
            self._run_sql("RELEASE call")
            self._in_call = False

    def idle(self) -> None:
        """Moves the WAL into the file while nobody waits."""
        if self._in_turn:
            self._commit()
        if self._wal_pages:
            self._checkpoint()

    def reusable_bytes(self) -> int:
        """Bytes of the file that hold nothing, and are written again before it grows."""
        try:
            pages, size = (self._db.pragma(name) for name in ("freelist_count", "page_size"))
        except apsw.Error as error:
            raise StoreBroken(str(error)) from error
        return int(pages) * int(size)

    def close(self) -> None:
        """See the port."""
        try:
            if self._in_turn:
                self._commit()
            self._checkpoint()
            self.abandon()
        except apsw.Error as error:
            raise StoreBroken(str(error)) from error

    def abandon(self) -> None:
        """See the port."""
        self._cursor.close(True)
        self._db.close(True)
        os.close(self._lock)

    def _checkpoint(self) -> None:
        try:
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.FullError:
            # All of it is safe in the WAL; it is moved when there is room.
            return
        except apsw.Error as error:
            raise StoreBroken(str(error)) from error
        self._wal_pages = 0

    def _note_wal(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _open_rows(self, statement: str, values: tuple[object, ...]) -> apsw.Cursor:
        return self._db.cursor().execute(statement, values)

    def _many(self, statement: str, values: Iterable[tuple[object, ...]]) -> None:
        self._cursor.executemany(statement, values)

    def _mark_reserved(self, reservation: int, first: int, numbers: Sequence[int]) -> None:
        """A statement for each stretch of consecutive numbers: what arrived together mostly is reserved together."""
        marks: list[tuple[int, int, int, int]] = []
        begin = 0
        for at in range(1, len(numbers) + 1):
            if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
                marks.append((reservation, first + begin - numbers[begin], numbers[begin], numbers[at - 1]))
                begin = at
        self._many(sql.RESERVE_STRETCH, marks)

    # -- writing ----------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[c.AnyChange], can_be_undone: bool) -> None:
        """See the port."""
        lasts = must_last(changes)
        self._must_sync = self._must_sync or lasts
        self._must_commit = self._must_commit or lasts or not all(map(can_wait, changes))
        try:
            for change in changes:
                if type(change) in WRITTEN:
                    if not self._in_turn:
                        self._begin_turn(is_full=lasts)
                    if can_be_undone and not self._in_call:
                        self._execute("SAVEPOINT call")
                        self._in_call = True
                    self._write(change)
                    self._deferred += 1
                self.standing.follow(change)
        except Exception as error:
            if self._in_call and not isinstance(error, apsw.Error):
                raise  # what was written of this call is taken back
            raise StoreBroken(f"{type(error).__name__}: {error}") from error

    def _will_write(self) -> None:
        self._must_commit = True
        try:
            if not self._in_turn:
                self._begin_turn(is_full=False)
        except apsw.Error as error:
            raise StoreBroken(str(error)) from error

    def _keep_block(self, number: int) -> None:
        self._must_sync = self._must_commit = True
        if not self._in_turn:
            self._begin_turn(is_full=True)
        if not self._in_call:
            self._run_sql("SAVEPOINT call")
            self._in_call = True
        self._block_end = 0
        self._keep_ids_behind(number)

    def _begin_turn(self, *, is_full: bool) -> None:
        """The transaction of this turn, and of later ones while nothing must be written yet.

        One whose first call need not last begins without sync.
        """
        if is_full is not self._is_full:
            self._execute("PRAGMA synchronous = FULL" if is_full else "PRAGMA synchronous = NORMAL")
            self._is_full = is_full
        self._execute("BEGIN IMMEDIATE")
        self._in_turn = True

    def _sync(self) -> None:
        """Makes last what was committed without sync: the next commit's sync covers what stands before it."""
        try:
            self._begin_turn(is_full=True)
            self._execute(TOUCH)
            self._execute("COMMIT")
        except apsw.Error as error:
            raise StoreBroken(f"the sync of a turn: {error}") from error
        self._in_turn = self._is_unsynced = False
