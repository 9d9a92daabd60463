"""The store in a SQLite file: its rows are written call by call, each call a savepoint.

:class:`trigmon.store.sqlite.durable_turns.DurableTurns` makes a turn durable. Ids come from blocks: none is used again
after a crash, and no put writes a counter to disk. After any SQLite error the outcome is unknown: StoreBroken is raised
and the process ends.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from trigmon.journal.entries import RecoverStore, SetMeta
from trigmon.journal.journal import Journal
from trigmon.mq.errors import ObjectDamaged
from trigmon.rules.model import changes as c
from trigmon.rules.model.alike_puts import WithAlikePuts
from trigmon.rules.model.change import STORED, SYNCED
from trigmon.rules.model.stored_messages import Cursor, Found, Selection, Stretch
from trigmon.store.base import durability_of
from trigmon.store.port import StoreBroken
from trigmon.store.sql import statements as sql
from trigmon.store.sql.available_rows import open_available
from trigmon.store.sql.picked_messages import Row
from trigmon.store.sql.reserved_ranges import marks, ranges_of
from trigmon.store.sql.row_writes import WRITE
from trigmon.store.sql.store import RowStore
from trigmon.store.sqlite import put_rows
from trigmon.store.sqlite.checksums import SUMMED
from trigmon.store.sqlite.connection import guarded, lock_directory, mark_lock
from trigmon.store.sqlite.durable_turns import DurableTurns
from trigmon.store.sqlite.first_rows import first_rows
from trigmon.store.sqlite.got_rows import GotRows
from trigmon.store.sqlite.held_file import HeldFile
from trigmon.store.sqlite.inspection import Tell
from trigmon.store.sqlite.journal_archive import JournalArchive
from trigmon.store.sqlite.kept_gets import CONCERN_NO_GET, KeptGets
from trigmon.store.sqlite.kept_outcomes import KeptOutcomes
from trigmon.store.sqlite.repair import can_be_put_aside, mend
from trigmon.store.sqlite.restoration import finish_restore
from trigmon.store.sqlite.salvage import DAMAGE, WRONG_VALUES, is_damage
from trigmon.store.sqlite.spare_file import Spare
from trigmon.store.sqlite.start_check import whole
from trigmon.store.sqlite.store_start import open_and_replay, roll_back
from trigmon.store.sqlite.turn_log import LastTurn, TurnLog, VfsJournalFile
from trigmon.store.sqlite.unit_puts import UnitPuts

FILE_NAME = "qm.db"


class SqliteStore(RowStore):
    """One directory, one file, one connection. ``vfs`` as in :func:`trigmon.store.sqlite.connection.connect`.

    ``spare`` is the reserve file. ``accept_loss``: the store opens although acknowledged data is missing. ``tell`` is
    called with each report about damage and repair. ``archive`` keeps the turns of the journal. ``clock`` returns the
    time of a turn, in milliseconds since 1970.
    Raises DirectoryInUse, AnothersStore, UnsupportedVersion, StoreLost, StoreBroken.
    """

    error = apsw.Error
    reserves_ranges = True
    outcomes: KeptOutcomes

    def __init__(
        self,
        directory: Path,
        vfs: str | None = None,
        *,
        accept_loss: bool = False,
        tell: Tell = lambda text: None,
        archive: JournalArchive | None = None,
    ) -> None:
        self._path = directory / FILE_NAME
        self._vfs = vfs
        self._tell = tell
        self._lock = lock_directory(directory)
        self.spare = Spare(directory)
        self.spare.give_up_where_short()
        self.clock: Callable[[], int] = lambda: time.time_ns() // 1_000_000
        try:
            finish_restore(self._path, tell)
            self.last_turn = LastTurn(directory, vfs or "")
            file = VfsJournalFile(self._path, vfs or "")
            self._journal = Journal(file, partial(secrets.randbits, 32), lambda: self.clock())
            self._log = TurnLog(self._path, vfs, self.last_turn)
            add_rows = partial(put_rows.add_rows, self, unit_id=0)
            self.turns = DurableTurns(self._run_sql, add_rows, self._journal, self._log, self.last_turn, archive)
            self.copy: HeldFile = HeldFile(self._path, vfs, self._log, self.turns.hold)
            super().__init__(self._execute_sql, str(directory), self._first_rows)
            self.unit_puts = UnitPuts(partial(put_rows.add_puts, self), self.keep_ids_behind, self.turns.note)
            self.gets = KeptGets(GotRows(self), self.turns.note)
            self.outcomes = KeptOutcomes(self._run_sql, self.rows, self.turns.note)
            self.turns.due += [self.gets.write_all, self.outcomes.write_all]
            open_and_replay(self, directory, accept_loss=accept_loss)
        except BaseException:
            _close_files(self)
            raise
        self._closed: dict[str, str] = {}
        self._is_to_mend = False
        self.must_commit = False

    def _use(self, db: apsw.Connection) -> None:
        self._db = db
        self._cursor = db.cursor()
        self._log.follow(db)

    def _execute_sql(self, statement: str, values: tuple[object, ...] = ()) -> apsw.Cursor:
        self.turns.save_call()
        return self._cursor.execute(SUMMED.get(statement, statement), values)

    # -- life -------------------------------------------------------------------------------------------

    def open(self, q_mgr_name: str, now: int) -> int:
        """See the port."""
        try:
            first = self._take_up(q_mgr_name, now)
        except (apsw.Error, StoreBroken, *WRONG_VALUES) as error:
            if not is_damage(error) and not isinstance(error, WRONG_VALUES):
                raise StoreBroken(f"{self._path}: {error}") from error
            self._make_whole(self._journal.number, everything=True)
            try:
                first = self._take_up(q_mgr_name, now)
            except (apsw.Error, *WRONG_VALUES) as again:
                raise StoreBroken(f"{self._path}: {again!r}") from again
        self._journal.clear()
        self.last_turn.set_damaged(False)
        self.last_turn.begin(self._journal.number)
        if self._vfs is None:
            mark_lock(self._lock, q_mgr_name)
        return first

    def _take_up(self, q_mgr_name: str, now: int) -> int:
        self.turns.settle()  # what was replayed: the journal is free for the turn that recovers the rows
        self.turns.begin()
        try:
            first = self._recover(q_mgr_name, now)
            self.turns.add(RecoverStore(q_mgr_name, now, tuple(self.decided)))
            self.turns.settle()
            self._load()
        except BaseException:
            roll_back(self)
            raise
        return first

    def _make_whole(self, turn: int, *, everything: bool) -> None:
        """Checks and repairs the database before the queue manager serves. Raises StoreBroken, StoreLost."""
        db = whole(self._db, self._path, self.last_turn, turn, self._tell, self._vfs, everything=everything)
        if db is not self._db:
            self._use(db)

    def keep_time(self, text: str, *, must: bool = False) -> bool:
        """See the port."""
        if must or self._journal.entries:
            self.turns.begin()
        if self.turns.is_open:
            self._run_sql(sql.SET_META, ("own_time", text))
            self.turns.add(SetMeta("own_time", text))
        return self.turns.is_open

    def begin(self) -> None:
        """See the port. The transaction itself begins with the first write."""

    def mark(self) -> None:
        """See the port. The savepoint itself is set before the first write of a call that can be undone."""
        self.turns.end_call()
        if self._is_to_mend:
            self._mend()
        self.standing.mark()
        self.ahead.mark()

    def prepare(self) -> None:
        """Makes everything so far durable; units of work in flight stay in flight, and have rows."""
        self.turns.end_call()
        guarded(self.unit_puts.write_all)
        self.turns.prepare()

    def undo(self) -> None:
        """See the port."""
        if self.turns.undo_call():
            self._forget_call()
        self.standing.undo()
        self.ahead.undo(self.standing.units)

    def end(self) -> None:
        """See the port. What a crash undoes anyway waits for a later turn's record."""
        if self.must_commit:
            self.turns.must_last(STORED)
            self.must_commit = False
        self.turns.end()

    def idle(self) -> None:
        """See the port."""
        self.turns.idle()

    def reusable_bytes(self) -> int:
        """Returns the size of the file's free pages in bytes; SQLite reuses them before the file grows."""
        return guarded(lambda: int(self._db.pragma("freelist_count")) * int(self._db.pragma("page_size")))

    def close(self) -> None:
        """See the port."""
        self.copy.end()
        guarded(self.turns.rest)
        self.last_turn.sync()
        self._journal.clear()
        guarded(self.abandon)

    def abandon(self) -> None:
        """See the port."""
        self._cursor.close(True)
        self._db.close(True)
        self.last_turn.close()
        self._journal.close()
        os.close(self._lock)

    def _open_rows(self, statement: str, values: tuple[object, ...]) -> apsw.Cursor:
        self.turns.young.write_all()
        self.gets.write_all()
        return self._db.cursor().execute(SUMMED.get(statement, statement), values)

    def _first_rows(self, number: int, after: Cursor | None) -> tuple[list[Row], bool]:
        return first_rows(partial(open_available, self._open_rows, self.ranges), number, after)

    def many(self, statement: str, values: Iterable[tuple[object, ...]]) -> None:
        """See :class:`RowStore`."""
        self.turns.save_call()
        self._cursor.executemany(SUMMED.get(statement, statement), values)

    def mark_reserved(self, queue: int, reservation: int, first: int, numbers: Sequence[int]) -> None:
        """Marks reserved messages, one statement for each range of consecutive numbers."""
        self.many(sql.RESERVE_STRETCH, map(marks, ranges_of(queue, reservation, first, numbers)))

    def remove_stretches(self, parts: Iterable[Stretch]) -> None:
        """Removes rows, by one statement for each stretch."""
        self.many(sql.REMOVE_STRETCH, parts)

    # -- damage -----------------------------------------------------------------------------------------

    def find(self, selection: Selection) -> Found:
        """See the port. Repairs damage if possible; otherwise closes this queue alone. Raises ObjectDamaged."""
        if selection.q_name in self._closed:
            raise ObjectDamaged(self._closed[selection.q_name])
        if selection.unit_id:
            guarded(partial(self.unit_puts.write_for, selection.unit_id, selection.q_name))
        found = self._find(selection)
        if found is None and self.turns.in_call:
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
            if not found.damaged:
                return found
            if self.leftovers.available:
                self._will_write()
                damaged = [each.number for each in found.damaged]
                self.leftovers.rewrite(self.numbers[selection.q_name], damaged)
            if selection.reserved is not None or all(can_be_put_aside(self._db, each.number) for each in found.damaged):
                return found
        except (StoreBroken, *WRONG_VALUES, *DAMAGE) as error:
            if isinstance(error, StoreBroken) and not is_damage(error):
                raise
            self.last_turn.set_damaged(True)
            if self.turns.has_written and is_damage(error):
                raise StoreBroken(f"damage was found in the middle of a turn: {error}") from error
        return None

    def _mend(self) -> None:
        """Commits and syncs the turn so far, then repairs what it can."""
        self._is_to_mend = False
        self.ahead.forget_all()
        self.turns.settle()
        for from_nothing in (False, True):
            self.turns.begin()
            try:
                mend(self._db, self._tell, from_nothing=from_nothing)
                self.turns.settle()
            except apsw.Error as error:
                roll_back(self)
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
                self.last_turn.set_damaged(True)  # the next start checks everything
            raise

    # -- writing ----------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[c.AnyChange], can_be_undone: bool) -> None:
        """See the port. Raises ObjectDamaged for a put to a closed queue, before anything is written."""
        for change in changes if self._closed else ():
            if isinstance(change, c.AddMessage) and change.q_name in self._closed:
                raise ObjectDamaged(self._closed[change.q_name])
        single, puts = (changes.before, changes.puts) if isinstance(changes, WithAlikePuts) else (changes, [])
        self.turns.must_last(durability_of([*single, *puts[:1]] if puts else single))
        try:
            for change in single:
                if type(change) in WRITE:
                    if can_be_undone:
                        self.turns.begin_call()
                    self.write(change)
                    self.ahead.follow(change)
                self.standing.follow(change)
            if puts:
                put_rows.apply_alike(self, puts, can_be_undone)
        except Exception as error:
            if self.turns.in_call and not isinstance(error, apsw.Error):
                raise  # the writes of this call are undone
            if is_damage(error):
                self.last_turn.set_damaged(True)  # the next start checks everything
            raise StoreBroken(f"{type(error).__name__}: {error}") from error

    def write(self, change: c.AnyChange) -> None:
        """See :class:`PutStore`."""
        due: c.AnyChange | None = change
        is_put = type(change) is c.AddMessage and change.unit_id
        if is_put or self.unit_puts.by_unit:
            due = self.unit_puts.to_write(change, self.leftovers.at_once)
        if due is None:
            return
        rest: c.AnyChange | None = due
        if type(due) not in CONCERN_NO_GET:
            rest = self.gets.to_write(due, may_keep=not self.leftovers.available)
        if rest is None:
            pass  # the journal has it
        elif not self.turns.young.takes(rest):
            self.turns.begin()
            self.turns.has_written = True
            WRITE[type(rest)](self, rest)
        elif type(rest) is c.AddMessage:
            self.keep_ids_behind(rest.number)
        self.turns.add(due)

    def keep_ids_behind(self, number: int) -> None:
        """See :class:`RowStore`. The journal has the block, since a put of a unit of work is not in it yet."""
        if number >= self._block_end:
            self.turns.begin()
            super().keep_ids_behind(number)
            self.turns.add(SetMeta("next_id", str(self._block_end)))

    def _will_write(self) -> None:
        guarded(self.turns.note_upkeep)

    def _keep_block(self, number: int) -> None:
        self.turns.must_last(SYNCED)
        self.turns.begin_call()
        self._block_end = 0
        self.keep_ids_behind(number)


def _close_files(store: SqliteStore) -> None:
    """Closes what a start that failed had opened."""
    if hasattr(store, "_db"):
        with suppress(apsw.Error):  # the first error is the cause, not an error of closing
            store._db.close(True)
    for name in ("last_turn", "_journal"):
        if hasattr(store, name):
            getattr(store, name).close()
    os.close(store._lock)
