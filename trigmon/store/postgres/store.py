"""The store of a queue manager that keeps nothing on its own machine: every turn is one transaction of PostgreSQL.

Writes wait in memory and go with the next question or the end of the turn; most turns are one trip to the server. A
call that may be taken back becomes a savepoint only where it asks in the middle. An error, or a session that is lost,
means that the outcome is unknown: StoreBroken goes up to the top and the process ends, as on SQLite. What became of its
last turn its clients ask for when the next one serves: units of work and their outcomes are written in one transaction.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial

from trigmon.rules.model import changes as c
from trigmon.rules.model.change import SYNCED, VOLATILE, durability_of
from trigmon.rules.model.stored_messages import Found, Selection
from trigmon.store.port import StoreBroken
from trigmon.store.postgres import lease
from trigmon.store.postgres.connection import Place, connect
from trigmon.store.postgres.pipeline import Failed, Link, Row
from trigmon.store.postgres.queue_heads import Known
from trigmon.store.postgres.read_ahead import Ahead
from trigmon.store.postgres.turn import Rows, Turn
from trigmon.store.sql import statements as sql
from trigmon.store.sql.store import WRITTEN, RowStore

MOST_DEFERRED = 1000
"""Writes that may wait in memory for a commit, and turns."""
DEFERRED_BYTES = 1 << 20
BEATS = 5
"""In the time of a lease."""
UNSURE = 0.6
"""The part of a lease behind whose last beat nothing is answered before the fence has been asked."""


class PostgresStore(RowStore):
    """One schema, one session. It serves nobody before :meth:`take` succeeded; :meth:`open` takes by itself."""

    error = Failed

    def __init__(self, place: Place) -> None:
        self._place = place
        self._connection = connect(place)
        super().__init__(self._execute_one, str(place))
        self._turn: Turn
        self._known: Known
        self._who: tuple[str, int] = ("", 0)
        self._ahead = Ahead()
        self._must_sync = False
        self._must_commit = False
        self._is_unsynced = False
        self._deferred = 0
        self._beaten_s = 0.0

    # -- life -------------------------------------------------------------------------------------------

    def take(self, q_mgr_name: str) -> bool:
        """Makes this process the one that serves this queue manager; False while another does."""
        if self._who[1]:
            return True
        before_s = time.monotonic()
        epoch = lease.take(self._connection, q_mgr_name, self._place.lease_ms)
        if epoch is None:
            return False
        self._who = q_mgr_name, epoch
        self._beaten_s = before_s
        self._turn = Turn(Link(self._connection), (("BEGIN", ()), (lease.FENCE, self._who)), (lease.CHECK, self._who))
        self._known = Known(self._ahead, self._turn)
        return True

    def holder(self, q_mgr_name: str) -> str:
        """Who serves this queue manager, for a person."""
        return lease.holder(self._connection, q_mgr_name)

    def open(self, q_mgr_name: str, now: int) -> int:
        """See the port. Who served before and is gone, or says nothing, is waited for."""
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
        """Says that this process lives, so that nobody takes over. Raises Fenced when somebody has."""
        if self._turn.is_open:
            return
        before_s = time.monotonic()
        for statement, values in (
            ("BEGIN", ()),
            ("SET LOCAL synchronous_commit = off", ()),
            (lease.BEAT, self._who),  # first: behind it nobody takes over before the commit
            (lease.CHECK, self._who),
        ):
            self._turn.link.send(statement, values)
        self._turn.link.commit()
        self._beaten_s = before_s

    @property
    def beat_s(self) -> float:
        """How often :meth:`beat` is to be called."""
        return self._place.lease_ms / 1000 / BEATS

    def keep_time(self, said: str, *, must: bool = False) -> bool:
        """See the port."""
        goes_anyway = self._turn.is_open or self._turn.writes.count > 0
        if must or goes_anyway:
            self._turn.writes.add(sql.SET_META, ("own_time", said))
        return must or goes_anyway

    def begin(self) -> None:
        """See the port. Who has not said for long that he lives asks first whether he still serves."""
        if time.monotonic() - self._beaten_s > UNSURE * self._place.lease_ms / 1000:
            self.beat()

    def mark(self) -> None:
        """See the port."""
        self._turn.release()
        self.standing.mark()
        self._ahead.mark()

    def prepare(self) -> None:
        """Commits what was written so far, and waits until it lasts; units of work in flight stay in flight."""
        self._turn.release()
        if self._is_unsynced and not self._turn.is_open and not self._turn.writes.count:
            self._turn.writes.add(sql.SET_META, ("synced", "1"))  # a commit that writes nothing makes nothing last
        self._must_sync = True
        self._commit()

    def undo(self) -> None:
        """See the port."""
        was_written = self._turn.undo()
        self.standing.undo()
        self._ahead.undo(self.standing.units)
        if was_written:
            self._forget_call()

    def end(self) -> None:
        """See the port. What a crash undoes anyway waits for a later turn's commit, while it is little."""
        self._turn.release()
        self._deferred += 1
        writes = self._turn.writes
        is_much = max(writes.count, self._deferred) >= MOST_DEFERRED or writes.bytes >= DEFERRED_BYTES
        if self._turn.is_open or self._must_commit or is_much:
            self._commit()

    def idle(self) -> None:
        """See the port. What waits is written."""
        self._commit()

    def close(self) -> None:
        """See the port. The next need not wait for the lease."""
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
        self._must_sync = self._must_commit = False
        self._deferred = 0

    def _execute_one(self, statement: str, values: tuple[object, ...] = ()) -> Iterable[Row]:
        return self._turn.execute(statement, values)

    def _many(self, statement: str, values: Iterable[tuple[object, ...]]) -> None:
        for each in values:
            self._execute_one(statement, each)

    # -- looking ----------------------------------------------------------------------------------------

    def _open_rows(self, statement: str, values: tuple[object, ...]) -> Rows:
        return self._turn.open_rows(statement, values)

    def find(self, selection: Selection) -> Found:
        """See the port. The first of a queue are known ahead."""
        number = self._numbers.get(selection.q_name)
        if number is None or self._messages.groups.has_groups(number) or number in self._leftovers.available:
            return super().find(selection)
        found = self._known.found(selection, number, partial(self._look, selection, number))
        return super().find(selection) if found is None else found

    # -- writing ----------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[c.AnyChange], can_be_undone: bool) -> None:
        """See the port."""
        durability = durability_of(changes)
        self._must_sync = self._must_sync or durability is SYNCED
        self._must_commit = self._must_commit or durability is not VOLATILE
        if can_be_undone:
            self._turn.save()
        try:
            for change in changes:
                if type(change) in WRITTEN:
                    self._write(change)
                    self._ahead.follow(change)
                self.standing.follow(change)
        except StoreBroken:
            raise
        except Exception as error:
            if self._turn.can_undo:
                raise  # what was written of this call is taken back
            raise StoreBroken(f"{type(error).__name__}: {error}") from error

    def _keep_block(self, number: int) -> None:
        self._must_sync = True
        self._turn.save()
        self._block_end = 0
        self._keep_ids_behind(number)
