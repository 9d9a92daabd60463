"""The store in a SQLite file: every turn is one transaction, every call a savepoint in it.

A turn without durable changes commits without a sync; its first change decides. Ids come from blocks: none is used
again after a crash, and no put writes a counter to disk. After any SQLite error the outcome is unknown: StoreBroken is
raised and the process ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from trigmon.mq.errors import ObjectDamaged
from trigmon.rules.model import changes as c
from trigmon.rules.model.change import SYNCED, VOLATILE
from trigmon.rules.model.stored_messages import Found, Selection
from trigmon.store.base import durability_of
from trigmon.store.port import StoreBroken
from trigmon.store.sql import statements as sql
from trigmon.store.sql.row_writes import WRITE, row_of, stretches
from trigmon.store.sql.store import RowStore
from trigmon.store.sqlite.checksums import SUMMED
from trigmon.store.sqlite.connection import guarded, lock_directory, mark_lock, traces_in
from trigmon.store.sqlite.first_rows import first_rows
from trigmon.store.sqlite.held_file import HeldFile
from trigmon.store.sqlite.inspection import Tell
from trigmon.store.sqlite.open_database import open_database
from trigmon.store.sqlite.repair import can_be_put_aside, mend
from trigmon.store.sqlite.restoration import finish_restore
from trigmon.store.sqlite.salvage import DAMAGE, WRONG_VALUES, is_damage
from trigmon.store.sqlite.spare_file import Spare
from trigmon.store.sqlite.start_check import whole
from trigmon.store.sqlite.turn_log import LastTurn, TurnLog
from trigmon.store.sqlite.unit_puts import UnitPuts

FILE_NAME = "qm.db"
MOST_DEFERRED = 1000
"""So many turns, or writes, may wait in memory for a commit: no call should wait for the pages of a large unit."""


class SqliteStore(RowStore):
    """One directory, one file, one connection. ``vfs`` as in :func:`trigmon.store.sqlite.connection.connect`.

    ``is_short``: the disk is nearly full, so the log is kept short. ``spare`` is the reserve file. ``accept_loss``:
    the store opens although acknowledged data is missing. ``tell`` is called with each report about damage and repair.
    Raises DirectoryInUse, AnothersStore, UnsupportedVersion, StoreLost, StoreBroken.
    """

    error = apsw.Error

    def __init__(
        self, directory: Path, vfs: str | None = None, *, accept_loss: bool = False, tell: Tell = lambda text: None
    ) -> None:
        self._path = directory / FILE_NAME
        self._vfs = vfs
        self._tell = tell
        self._lock = lock_directory(directory)
        self.spare = Spare(directory)
        self.spare.give_up_where_short()
        self.is_short = False
        try:
            finish_restore(self._path, tell)
            self._last = LastTurn(directory, vfs or "")
            traces = traces_in(directory, self._lock)
            db, turn = open_database(self._path, vfs, self._last, traces, tell, accept_loss=accept_loss)
            self._log = TurnLog(self._path, vfs, self._last, turn)
            self.copy: HeldFile = HeldFile(self._path, vfs, self._log, self.prepare)
            self._use(db)
            super().__init__(self._execute_sql, str(directory), partial(first_rows, self._open_rows))
            self._make_whole(everything=self._last.is_damaged)
        except BaseException:
            if hasattr(self, "_db"):
                with suppress(apsw.Error):  # the first error is the cause, not an error of closing
                    self._db.close(True)
            if hasattr(self, "_last"):
                self._last.close()
            os.close(self._lock)
            raise
        self._closed: dict[str, str] = {}
        self._unit_puts = UnitPuts(partial(_add_rows, self), self.keep_ids_behind, lambda: self._in_call)
        self._is_to_mend = False
        self._is_full = True
        self._must_sync = False
        self.must_commit = False
        self._is_unsynced = False
        self._deferred = 0
        self._in_turn = self._in_call = False

    def _use(self, db: apsw.Connection) -> None:
        self._db = db
        self._cursor = db.cursor()
        self._log.follow(db)

    def _execute_sql(self, statement: str, values: tuple[object, ...] = ()) -> apsw.Cursor:
        return self._cursor.execute(SUMMED.get(statement, statement), values)

    # -- life -------------------------------------------------------------------------------------------

    def open(self, q_mgr_name: str, now: int) -> int:
        """See the port."""
        try:
            first = self._take_up(q_mgr_name, now)
        except (apsw.Error, StoreBroken, *WRONG_VALUES) as error:
            if not is_damage(error) and not isinstance(error, WRONG_VALUES):
                raise StoreBroken(f"{self._path}: {error}") from error
            self._make_whole(everything=True)
            try:
                first = self._take_up(q_mgr_name, now)
            except (apsw.Error, *WRONG_VALUES) as again:
                raise StoreBroken(f"{self._path}: {again!r}") from again
        self._last.set_damaged(False)
        self._last.begin(self._log.turn)
        if self._vfs is None:
            mark_lock(self._lock, q_mgr_name)
        return first

    def _take_up(self, q_mgr_name: str, now: int) -> int:
        self._begin_turn(is_full=True)
        try:
            first = self._recover(q_mgr_name, now)
            self._commit()
            self._load()
        except BaseException:
            self._in_turn = False
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        return first

    def _make_whole(self, *, everything: bool) -> None:
        """Checks and repairs the database before the queue manager serves. Raises StoreBroken, StoreLost."""
        db = whole(self._db, self._path, self._last, self._log.turn, self._tell, self._vfs, everything=everything)
        if db is not self._db:
            self._use(db)

    def keep_time(self, text: str, *, must: bool = False) -> bool:
        """See the port."""
        if must and not self._in_turn:
            self._begin_turn(is_full=False)
        if self._in_turn:
            self._run_sql(sql.SET_META, ("own_time", text))
        return self._in_turn

    def begin(self) -> None:
        """See the port. The transaction itself begins with the first write."""

    def mark(self) -> None:
        """See the port. The savepoint itself is set before the first write of a call that can be undone."""
        self._release()
        if self._is_to_mend:
            self._mend()
        if self._unit_puts.before:
            self._unit_puts.mark()
        self.standing.mark()
        self.ahead.mark()

    def prepare(self) -> None:
        """Commits and syncs everything written so far; units of work in flight stay in flight."""
        self._release()
        guarded(self._unit_puts.write_all)
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
        self._unit_puts.undo()
        self.standing.undo()
        self.ahead.undo(self.standing.units)

    def end(self) -> None:
        """See the port. What a crash undoes anyway waits for a later turn's commit: its pages are written once."""
        self._release()
        self._deferred += 1
        if self._in_turn and (self.must_commit or self._deferred >= MOST_DEFERRED):
            self._commit()
            self._log.shorten(self.is_short)

    def _commit(self) -> None:
        self._in_turn = False
        if self._is_full:
            self._log.count(self._run_sql)
        self._run_sql("COMMIT")
        self._is_unsynced = not self._is_full
        if self._is_full:
            self._log.stamp()
        if self._must_sync and self._is_unsynced:
            self._sync()
        self._must_sync = self.must_commit = False
        self._deferred = 0

    def _release(self) -> None:
        """Ends the call: it cannot be undone any more."""
        if self._in_call:
            self._run_sql("RELEASE call")
            self._in_call = False

    def idle(self) -> None:
        """See the port. Commits what waits, and moves the WAL into the file."""
        if self._in_turn:
            self._commit()
        if self._log.pages:
            self._log.checkpoint()

    def reusable_bytes(self) -> int:
        """Returns the size of the file's free pages in bytes; SQLite reuses them before the file grows."""
        return guarded(lambda: int(self._db.pragma("freelist_count")) * int(self._db.pragma("page_size")))

    def close(self) -> None:
        """See the port."""
        if self._in_turn:
            self._commit()
        self.copy.end()
        guarded(self._log.checkpoint)
        self._last.sync()
        guarded(self.abandon)

    def abandon(self) -> None:
        """See the port."""
        self._cursor.close(True)
        self._db.close(True)
        self._last.close()
        os.close(self._lock)

    def _open_rows(self, statement: str, values: tuple[object, ...]) -> apsw.Cursor:
        return self._db.cursor().execute(SUMMED.get(statement, statement), values)

    def many(self, statement: str, values: Iterable[tuple[object, ...]]) -> None:
        """See :class:`RowStore`."""
        self._cursor.executemany(SUMMED.get(statement, statement), values)

    def mark_reserved(self, reservation: int, first: int, numbers: Sequence[int]) -> None:
        """Marks reserved messages, one statement for each range of consecutive numbers.

        Messages that arrived together are mostly reserved together.
        """
        self.many(sql.RESERVE_STRETCH, ((reservation, *stretch) for stretch in stretches(first, numbers)))

    # -- damage -----------------------------------------------------------------------------------------

    def find(self, selection: Selection) -> Found:
        """See the port. Repairs damage if possible; otherwise closes this queue alone. Raises ObjectDamaged."""
        if selection.q_name in self._closed:
            raise ObjectDamaged(self._closed[selection.q_name])
        if selection.unit_id:
            guarded(partial(self._unit_puts.write_for, selection.unit_id, selection.q_name))
        found = self._find(selection)
        if found is None and self._in_call:
            self._is_to_mend = True
            raise ObjectDamaged(f"{selection.q_name}: damage was found and is being repaired: try again")
        if found is None:
            self._mend()
            found = self._find(selection)
        if found is None:
            self._closed[selection.q_name] = f"{selection.q_name} cannot be read: a restart salvages what can be"
            self._tell(f"queue {selection.q_name} is closed: {self._closed[selection.q_name]}")
            raise ObjectDamaged(self._closed[selection.q_name])
        return found

    def _find(self, selection: Selection) -> Found | None:
        """Returns the messages found; None if damage was found that needs a repair first.

        Raises StoreBroken if damage was met after a write of the turn: nothing of the turn can be committed.
        """
        try:
            found = super().find(selection)
            if found.damaged and self.leftovers.available:
                self._will_write()
                for each in found.damaged:
                    self.rewrite(each)
            if selection.reserved is not None or all(can_be_put_aside(self._db, each.number) for each in found.damaged):
                return found
        except (StoreBroken, *WRONG_VALUES, *DAMAGE) as error:
            if isinstance(error, StoreBroken) and not is_damage(error):
                raise
            self._last.set_damaged(True)
            if self._in_turn and is_damage(error):
                raise StoreBroken(f"damage was found in the middle of a turn: {error}") from error
        return None

    def _mend(self) -> None:
        """Commits and syncs the turn so far, then repairs what it can."""
        self._is_to_mend = False
        self.ahead.forget_all()
        self.prepare()
        for from_nothing in (False, True):
            self._begin_turn(is_full=True)
            try:
                mend(self._db, self._tell, from_nothing=from_nothing)
                self._commit()
            except apsw.Error as error:
                self._in_turn = False
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                if not isinstance(error, DAMAGE):
                    raise StoreBroken(str(error)) from error
                self._tell(f"the indexes of the messages cannot be rebuilt in this way: {error}")
            else:
                return

    def rows(self, statement: str, values: tuple[object, ...] = ()) -> list[Any]:
        """See :class:`RowStore`; records damage that shows."""
        try:
            return super().rows(statement, values)
        except StoreBroken as error:
            if is_damage(error):
                self._last.set_damaged(True)  # the next start checks everything
            raise

    # -- writing ----------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[c.AnyChange], can_be_undone: bool) -> None:
        """See the port. Raises ObjectDamaged for a put to a closed queue, before anything is written."""
        for change in changes if self._closed else ():
            if isinstance(change, c.AddMessage) and change.q_name in self._closed:
                raise ObjectDamaged(self._closed[change.q_name])
        durability = durability_of(changes)
        lasts = durability is SYNCED
        self._must_sync = self._must_sync or lasts
        self.must_commit = self.must_commit or durability is not VOLATILE
        try:
            for change in changes:
                if type(change) in WRITE:
                    if not self._in_turn:
                        self._begin_turn(is_full=lasts)
                    if can_be_undone and not self._in_call:
                        self.execute("SAVEPOINT call")
                        self._in_call = True
                    due: c.AnyChange | None = change
                    is_put = isinstance(change, c.AddMessage) and change.unit_id
                    if is_put or self._unit_puts.by_unit:
                        due = self._unit_puts.to_write(change, self.leftovers.at_once)
                    if due is not None:
                        WRITE[type(due)](self, due)
                    self._deferred += 1
                    self.ahead.follow(change)
                self.standing.follow(change)
        except Exception as error:
            if self._in_call and not isinstance(error, apsw.Error):
                raise  # the writes of this call are undone
            if is_damage(error):
                self._last.set_damaged(True)  # the next start checks everything
            raise StoreBroken(f"{type(error).__name__}: {error}") from error

    def _will_write(self) -> None:
        self.must_commit = True
        if not self._in_turn:
            guarded(partial(self._begin_turn, is_full=False))

    def _keep_block(self, number: int) -> None:
        self._must_sync = self.must_commit = True
        if not self._in_turn:
            self._begin_turn(is_full=True)
        if not self._in_call:
            self._run_sql("SAVEPOINT call")
            self._in_call = True
        self._block_end = 0
        self.keep_ids_behind(number)

    def _begin_turn(self, *, is_full: bool) -> None:
        """Begins the transaction of this turn, and of later turns as long as no commit is due.

        ``is_full``: its commit is synced.
        """
        if is_full is not self._is_full:
            self.execute("PRAGMA synchronous = FULL" if is_full else "PRAGMA synchronous = NORMAL")
            self._is_full = is_full
        self.execute("BEGIN IMMEDIATE")
        self._in_turn = True

    def _sync(self) -> None:
        """Makes earlier commits without sync durable: the sync of a later commit covers them."""
        try:
            self._begin_turn(is_full=True)
            self._log.count(self._run_sql)
            self.execute("COMMIT")
        except apsw.Error as error:
            raise StoreBroken(f"the sync of a turn: {error}") from error
        self._log.stamp()
        self._in_turn = self._is_unsynced = False


def _add_rows(store: SqliteStore, puts: Sequence[c.AddMessage], unit_id: int) -> None:
    """Writes puts of a unit of work, or (0) committed ones."""
    if not store._in_turn:
        store._begin_turn(is_full=False)
    store.many(sql.ADD_MESSAGE, [row_of(put, store.numbers[put.q_name], put.number, unit_id) for put in puts])
