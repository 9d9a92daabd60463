"""The durable turns of a SQLite store: their number, the pages of the write-ahead log (WAL), and checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw

from trigmon.store.port import StoreBroken
from trigmon.store.sqlite.checksums import SET_TURN, row_sum
from trigmon.store.sqlite.last_turn import LastTurn, log_salt

CHECKPOINT_PAGES = 4096
SHORT_PAGES = 128
"""The same on a nearly full disk: the file may have to grow by all that the log holds."""


class TurnLog:
    """Counts the turns of one database, and moves its WAL into the file.

    ``turn``: the number of the last durable turn. ``pages``: the length of the WAL. ``synced_pages``: its length at the
    last durable turn. ``last`` is the file last_turn; ``vfs`` as in :func:`trigmon.store.sqlite.connection.connect`.
    """

    def __init__(self, path: Path, vfs: str | None, last: LastTurn, turn: int) -> None:
        self._path = path
        self._vfs = vfs
        self._last = last
        self.turn = turn
        self.pages = self.synced_pages = 0

    def follow(self, db: apsw.Connection) -> None:
        """Follows the WAL of this database from now on."""
        self._db = db
        self.pages = self.synced_pages = 0
        db.set_wal_hook(self._note_pages)

    def shorten(self, is_disk_nearly_full: bool) -> None:
        """Moves the WAL into the file if it is long."""
        if self.pages >= (SHORT_PAGES if is_disk_nearly_full else CHECKPOINT_PAGES):
            self.checkpoint()

    def _note_pages(self, _db: apsw.Connection, _name: str, pages: int) -> int:
        self.pages = pages
        return apsw.SQLITE_OK

    def count(self, run_sql: Callable[[str, tuple[object, ...]], None]) -> None:
        """Writes the next turn's number, in its transaction."""
        turn = self.turn + 1
        run_sql(SET_TURN, (turn, row_sum("turn", turn)))
        self.turn = turn

    def stamp(self) -> None:
        """Records the durable turn: a start that finds fewer turns reports the loss."""
        self.synced_pages = self.pages
        self._last.set_turn(self.turn)

    def checkpoint(self) -> None:
        """Moves the WAL into the file. Raises StoreBroken."""
        if self.synced_pages:
            self._last.set_moving(log_salt(self._path, self._vfs or ""), self.synced_pages)
        try:
            self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.FullError:
            # All of it is safe in the WAL; a later checkpoint moves it when there is space.
            return
        except apsw.Error as error:
            raise StoreBroken(str(error)) from error
        self.pages = self.synced_pages = 0
        self._last.set_moving(0, 0)
