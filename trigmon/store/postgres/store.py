"""The store in PostgreSQL: every turn is one transaction, and nothing is kept on the queue manager's machine.

Writes wait in memory and go with the next query or the end of the turn; most turns are one round trip. A call that may
be undone needs a savepoint only if it queries after a write. After an error, or when the session is lost, the outcome
is unknown: StoreBroken is raised and the process ends, as with SQLite. Clients ask the next process for the outcome of
the last turn: units of work and their outcomes are written in one transaction.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from trigmon.rules.model import changes as c
from trigmon.rules.model.change import SYNCED, VOLATILE
from trigmon.store.base import durability_of
from trigmon.store.port import StoreBroken
from trigmon.store.postgres import lease
from trigmon.store.postgres.chunk_reader import ChunkReader
from trigmon.store.postgres.connection import Place, bring_up, connect
from trigmon.store.postgres.pipeline import Failed, Link, Row
from trigmon.store.postgres.turn import Rows, Turn
from trigmon.store.sql import statements as sql
from trigmon.store.sql.row_writes import WRITE
from trigmon.store.sql.store import RowStore

MOST_DEFERRED = 1000
"""So many writes, or turns, may wait in memory for a commit."""
DEFERRED_BYTES = 1 << 20
BEATS = 5
"""Heartbeats in the time of a lease."""
UNSURE = 0.6
"""So much of the lease after the last heartbeat, a turn checks the fence before it answers anything."""


class PostgresStore(RowStore):
    """One schema, one session. The store can be used once :meth:`take` has succeeded; :meth:`open` calls it."""

    error = Failed

    def __init__(self, place: Place) -> None:
        self._place = place
        self._connection = connect(place)
        super().__init__(self._execute_one, str(place), lambda *place: self._chunks.read(*place))
        self._turn: Turn
        self._chunks: ChunkReader
        self._who: tuple[str, int] = ("", 0)
        self._must_sync = False
        self.must_commit = False
        self._is_unsynced = False
        self._deferred = 0
        self._beaten_s = 0.0

    # -- life -------------------------------------------------------------------------------------------

    def take(self, q_mgr_name: str) -> bool:
        """Makes this process the one that serves this queue manager; returns False while another one does."""
        if self._who[1]:
            return True
        before_s = time.monotonic()
        epoch = lease.take(self._connection, q_mgr_name, self._place.lease_ms)
        if epoch is None:
            return False
        bring_up(self._connection, self._place)
        self._who = q_mgr_name, epoch
        self._beaten_s = before_s
        self._turn = Turn(Link(self._connection), (("BEGIN", ()), (lease.FENCE, self._who)), (lease.CHECK, self._who))
        self._chunks = ChunkReader(self._turn)
        return True

    def holder(self, q_mgr_name: str) -> str:
        """Returns the process that serves this queue manager, as text."""
        return lease.holder(self._connection, q_mgr_name)

    def open(self, q_mgr_name: str, now: int) -> int:
        """See the port. Waits until the lease of a previous process has expired."""
        lease.wait_to_take(lambda: self.take(q_mgr_name), self._place, lambda: self.holder(q_mgr_name))
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
        """Sends a heartbeat, so that no other process takes over. Raises Fenced if one has."""
        if self._turn.is_open:
            return
        before_s = time.monotonic()
        for statement, values in (
            ("BEGIN", ()),
            ("SET LOCAL synchronous_commit = off", ()),
            (lease.BEAT, self._who),  # first: its row lock prevents a takeover before the commit
            (lease.CHECK, self._who),
        ):
            self._turn.link.send(statement, values)
        self._turn.link.commit()
        self._beaten_s = before_s

    @property
    def beat_s(self) -> float:
        """How often :meth:`beat` is to be called."""
        return self._place.lease_ms / 1000 / BEATS

    def keep_time(self, text: str, *, must: bool = False) -> bool:
        """See the port."""
        goes_anyway = self._turn.is_open or self._turn.writes.count > 0
        if must or goes_anyway:
            self._turn.writes.add(sql.SET_META, ("own_time", text))
        return must or goes_anyway

    def begin(self) -> None:
        """See the port. If the last heartbeat is long ago, checks first that this process still serves."""
        if time.monotonic() - self._beaten_s > UNSURE * self._place.lease_ms / 1000:
            self.beat()

    def mark(self) -> None:
        """See the port."""
        self._turn.release()
        self.standing.mark()
        self.ahead.mark()

    def prepare(self) -> None:
        """Commits everything written so far, durably; units of work in flight stay in flight."""
        self._turn.release()
        if self._is_unsynced and not self._turn.is_open and not self._turn.writes.count:
            self._turn.writes.add(
                sql.SET_META, ("synced", "1")
            )  # a commit without a write makes no earlier one durable
        self._must_sync = True
        self._commit()

    def undo(self) -> None:
        """See the port."""
        was_written = self._turn.undo()
        self.standing.undo()
        self.ahead.undo(self.standing.units)
        if was_written:
            self._forget_call()

    def end(self) -> None:
        """See the port. A few writes that a crash undoes anyway wait for a later turn's commit."""
        self._turn.release()
        self._deferred += 1
        writes = self._turn.writes
        is_much = max(writes.count, self._deferred) >= MOST_DEFERRED or writes.bytes >= DEFERRED_BYTES
        if self._turn.is_open or self.must_commit or is_much:
            self._commit()

    def idle(self) -> None:
        """See the port. Commits the waiting writes."""
        self._commit()

    def close(self) -> None:
        """See the port. Ends the lease, so that the next process need not wait."""
        self._turn.release()
        self._must_sync = True
        self._commit()
        self._turn.link.ask(lease.LEAVE, self._who)
        self.abandon()

    def abandon(self) -> None:
        """See the port."""
        self._connection.close()

    def _commit(self) -> None:
        turn = self._turn
        if turn.writes.count or turn.is_open:
            turn.commit(lasts=self._must_sync)
            self._is_unsynced = not self._must_sync
        self._must_sync = self.must_commit = False
        self._deferred = 0

    def _execute_one(self, statement: str, values: tuple[object, ...] = ()) -> Iterable[Row]:
        return self._turn.execute(statement, values)

    def many(self, statement: str, values: Iterable[tuple[object, ...]]) -> None:
        """See :class:`RowStore`."""
        for each in values:
            self._execute_one(statement, each)

    # -- looking ----------------------------------------------------------------------------------------

    def _open_rows(self, statement: str, values: tuple[object, ...]) -> Rows:
        return self._turn.open_rows(statement, values)

    # -- writing ----------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[c.AnyChange], can_be_undone: bool) -> None:
        """See the port."""
        durability = durability_of(changes)
        self._must_sync = self._must_sync or durability is SYNCED
        self.must_commit = self.must_commit or durability is not VOLATILE
        if can_be_undone:
            self._turn.save()
        try:
            for change in changes:
                if type(change) in WRITE:
                    WRITE[type(change)](self, change)
                    self.ahead.follow(change)
                self.standing.follow(change)
        except StoreBroken:
            raise
        except Exception as error:
            if self._turn.can_undo:
                raise  # the writes of this call are undone
            raise StoreBroken(f"{type(error).__name__}: {error}") from error

    def _keep_block(self, number: int) -> None:
        self._must_sync = True
        self._turn.save()
        self._block_end = 0
        self.keep_ids_behind(number)
