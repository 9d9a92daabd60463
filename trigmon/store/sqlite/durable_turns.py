"""The turns of a SQLite store: each is made durable by the journal, and many share one transaction of the database.

The transaction is committed without a sync each :data:`MOST_WAITING` writes. The database is synced, and the journal
begins anew, when the journal or the write-ahead log (WAL) is long, when no call waits, before a backup, and at the end.
Where the disk is nearly full each turn is synced that way, so that nothing grows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trigmon.journal.entries import JournalChange
from trigmon.journal.journal import SIZE, Journal
from trigmon.rules.model.change import SYNCED, VOLATILE, Durability
from trigmon.rules.model.changes import AddMessage
from trigmon.store.sql.row_writes import row_sum
from trigmon.store.sqlite.checksums import SET_TURN
from trigmon.store.sqlite.journal_archive import JournalArchive
from trigmon.store.sqlite.turn_log import LastTurn, TurnLog
from trigmon.store.sqlite.young_messages import AT_ONCE, YoungMessages

MOST_WAITING = 1000
"""So many turns, or writes, wait in memory for a commit: no call should wait for the pages of a large unit."""
MOST_BYTES = 4 << 20
"""So many bytes of volatile changes may wait for their record."""


LARGE_TURN = 1 << 20
"""Bytes."""
ARCHIVED_WITHIN_MS = 60_000
"""A turn is in the archive after this time, in milliseconds, whatever comes behind it."""


class DurableTurns:
    """The transaction, the journal and the log of one database.

    ``run`` runs a statement, ``add_rows`` writes rows of committed messages; both raise StoreBroken. ``last`` is the
    file last_turn. ``lasts``: how long the turn's most durable change must last. ``is_short``: the disk is nearly full.
    ``has_written``: the turn has written rows of its own. ``in_call``: the call can be undone. ``young``: the
    messages without rows. ``due``: each writes what is in memory and in the journal alone; a commit needs all of it,
    since the journal is replayed from there. ``archive``: where the turns of the journal are kept, if anywhere.
    """

    def __init__(
        self,
        run: Callable[..., None],
        add_rows: Callable[[Sequence[AddMessage]], None],
        journal: Journal,
        log: TurnLog,
        last: LastTurn,
        archive: JournalArchive | None,
    ) -> None:
        self._run = run
        self.young = YoungMessages(add_rows, self.note)
        self.due: list[Callable[[], None]] = [self.young.write_all]
        self.journal = journal
        self.log = log
        self._last = last
        self.archive = archive
        self.lasts: Durability = VOLATILE
        self.is_short = False
        self.is_open = self.in_call = self._is_saved = False
        self.has_written = False
        self._is_unsynced = True
        self._waiting = self._before = 0
        self._committed = 0
        self._call_began = journal.entries.place
        self._undo: list[Callable[[], object]] = []

    def begin(self) -> None:
        """Begins the transaction of this turn, and of later turns until a commit is due, unless it has begun."""
        if not self.is_open:
            self._run("BEGIN IMMEDIATE")
            self.is_open = True

    def begin_call(self) -> None:
        """Makes the call undoable from here on."""
        self.begin()
        if not self.in_call:
            self.in_call = True
            self._call_began = self.journal.entries.place

    def save_call(self) -> None:
        """Sets the savepoint of a call that can be undone, before its first statement: most calls have none."""
        if self.in_call and not self._is_saved:
            self._is_saved = True
            self._run("SAVEPOINT call")

    def end_call(self) -> None:
        """Ends the call: it cannot be undone any more."""
        if self._is_saved:
            self._run("RELEASE call")
        self.in_call = self._is_saved = False
        self._undo.clear()

    def note(self, undo: Callable[[], object]) -> None:
        """Notes what undoes a change in memory that the call has made, if the call can be undone."""
        if self.in_call:
            self._undo.append(undo)

    def undo_call(self) -> bool:
        """Undoes the writes of the call and the changes noted; returns whether the call could be undone."""
        if not self.in_call:
            return False
        if self._is_saved:
            self._run("ROLLBACK TO call")
        noted, self._undo = self._undo, []
        self.end_call()
        self.journal.entries.cut(self._call_began)
        for undo in reversed(noted):
            undo()
        return True

    def must_last(self, durability: Durability) -> None:
        """Records that the turn has a change that must last so long."""
        if durability > self.lasts:
            self.lasts = durability

    def add(self, change: JournalChange) -> None:
        """Adds a change that was written to rows."""
        self.journal.entries.add(change)
        self._waiting += 1

    def add_committed(self, puts: Sequence[AddMessage]) -> None:
        """Adds puts that are committed: of a unit of work that commits, or outside of one."""
        self.journal.entries.add_committed(puts)
        self._waiting += len(puts)

    def end(self) -> None:
        """Ends a turn: when this returns, it lasts as long as it must."""
        self.end_call()
        self.has_written = False
        self._waiting += 1
        if self.lasts is not VOLATILE or self.journal.entries.size > MOST_BYTES:
            self._make_durable(is_synced=self.lasts is SYNCED)
        if self._is_commit_due():
            self._commit()
        self._before = self._waiting
        if self.log.is_long(self.is_short) or self._is_archive_due():
            self.rest()

    def _is_commit_due(self) -> bool:
        """Returns whether the transaction is to be committed; until all rows are written each turn writes some."""
        if not self.is_open or self._waiting < MOST_WAITING:
            return False
        return self.young.write_oldest(AT_ONCE + self._waiting - self._before)

    def prepare(self) -> None:
        """Makes everything so far durable."""
        self.end_call()
        if not self.journal.is_durable:
            self._make_durable(is_synced=True)

    def _make_durable(self, *, is_synced: bool) -> None:
        self.lasts = VOLATILE
        # A large turn is written once, to the database: the journal saves the sync of many small ones.
        is_large = self.archive is None and self.journal.entries.size > LARGE_TURN
        if self.is_short or is_large or not self.journal.write(is_synced=is_synced):
            self.settle()
        elif is_synced:
            self._last.set_turn(self.journal.number)

    def _commit(self) -> None:
        """Commits the transaction without a sync; the journal has all of it."""
        if not self.journal.write(is_synced=False):
            self.settle()
            return
        self.write_due()
        self._end_transaction(self.journal.number)

    def write_due(self) -> None:
        """Writes what has no rows, or other ones, until now."""
        for write in self.due:
            write()

    def _end_transaction(self, number: int) -> None:
        """Commits, without a sync, as of the turn of this number."""
        self._run(SET_TURN, (number, row_sum("turn", number)))
        self._run("COMMIT")
        self._committed = number
        self.is_open = False
        self._is_unsynced = True
        self._waiting = self._before = 0

    def settle(self) -> None:
        """Commits and syncs the database: nothing in the journal is needed any more, and the archive has its turns."""
        self.end_call()
        if self.archive is not None and not self.is_short:
            self.journal.write(is_synced=True)
        self.write_due()
        if self.journal.entries or self.journal.number != self._committed:
            self.begin()  # also turns that touched no row have their number in the database
        if self.is_open:
            self._end_transaction(self.journal.number + bool(self.journal.entries))
        if self._is_unsynced:
            self.log.sync()
            self._is_unsynced = False
            self._last.set_turn(self._committed)
            if self.archive is not None:
                self.archive.add(self.journal, self._committed)
            self.journal.restart(self._committed)

    def hold(self) -> None:
        """Settles the database for a backup."""
        self.settle()
        if self.archive is not None:
            self.archive.begin_backup()

    def rest(self) -> None:
        """Settles the database, and moves its log into the file."""
        self.settle()
        if self.log.pages:
            self.log.checkpoint()

    def idle(self) -> None:
        """Settles the database; one whose turns are archived only as often as that is due: each time makes a file."""
        if self.archive is None or self._is_archive_due():
            self.rest()

    def _is_archive_due(self) -> bool:
        journal = self.journal
        if self.archive is None or not journal.size:
            return False
        # What is left must do for a large turn: one that does not fit is archived when it is in the database.
        return journal.size > SIZE // 2 or journal.now_ms() - journal.first_ms >= ARCHIVED_WITHIN_MS

    def end_replay(self, number: int, highest: int) -> None:
        """Commits what was replayed, up to this turn. The journal is still needed: :meth:`settle` makes it durable.

        The next number is behind ``highest``: a start that is killed before it has emptied the journal leaves records
        in it that the next one must not take for turns behind its own.
        Also where nothing was replayed: a killed process leaves a database that has all turns and was not synced.
        """
        self._committed = number
        self.write_due()
        if self.is_open:
            self._end_transaction(number)
        if self.archive is not None:
            self.log.sync()  # a power cut must not take from the store what the archive has
            highest = self.archive.take_up(self.journal, number, highest)
        self._is_unsynced = True
        self.journal.go_on(highest)

    def note_upkeep(self) -> None:
        """Prepares for many writes that no call asked for: they are committed with this turn, without a sync."""
        self.begin()
        self._waiting += MOST_WAITING

    def forget(self) -> None:
        """Forgets the transaction, and the changes since the last turn: it was rolled back."""
        self.journal.entries.clear()
        self.is_open = self.in_call = self._is_saved = False
        self._undo.clear()
