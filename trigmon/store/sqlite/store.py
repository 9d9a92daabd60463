"""The store of a queue manager on one machine: every turn is one SQLite transaction, every call a savepoint in it.

A turn that holds nothing durable commits without a sync; the first durable change of a turn decides for all behind
it. Ids come from blocks, so that none is used again after a crash and no put pays for a counter on disk. Any error
of SQLite means that the outcome is unknown: StoreBroken goes up to the top and the process ends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, cast
from zlib import crc32

import apsw
import msgspec
from msgspec.structs import replace

from trigmon.mq.attributes import KINDS, AnyDefinition, LocalQueue
from trigmon.mq.descriptors import NO_ID
from trigmon.mq.enums import DefinitionType, ObjectType, UnitOutcome
from trigmon.rules import changes as c
from trigmon.rules.facts import Found, Paused, QueueFacts, Selection
from trigmon.rules.following import causes_of, pause_of
from trigmon.rules.order.wholeness import START
from trigmon.rules.reserved import Reservation
from trigmon.rules.world import Standing
from trigmon.store.base import ID_BLOCK, KEPT_RESERVATIONS, BaseStore, can_wait, must_last
from trigmon.store.port import AnothersStore, StoreBroken
from trigmon.store.sqlite import statements as sql
from trigmon.store.sqlite.connection import connect, lock_directory
from trigmon.store.sqlite.grouping import Groups
from trigmon.store.sqlite.ledger import BEHIND_ALL, LEDGER_WRITES, Ledger
from trigmon.store.sqlite.looking import Look

FILE_NAME = "qm.db"
CHECKPOINT_PAGES = 4096
MOST_DEFERRED = 1000
"""Turns whose writes may wait in memory for a commit."""
WEEK_MS = 7 * 86_400_000
ENOUGH_CLIENTS = 10_000

_encode = msgspec.msgpack.Encoder().encode


class SqliteStore(BaseStore):
    """One directory, one file, one connection. ``vfs`` as in :func:`trigmon.store.sqlite.connection.connect`."""

    def __init__(self, directory: Path, vfs: str | None = None) -> None:
        super().__init__()
        self._directory = directory
        self._lock = lock_directory(directory)
        try:
            self._db = connect(directory / FILE_NAME, vfs)
        except BaseException:
            os.close(self._lock)
            raise
        self._cursor = self._db.cursor()
        self._execute = self._cursor.execute
        self._groups = Groups(self._execute)
        self._ledger = Ledger(self._execute, self._rows, self._open_rows)
        self._numbers: dict[str, int] = {}
        self._is_full = True
        self._must_sync = False
        self._must_commit = False
        self._deferred = 0
        self._in_turn = False
        self._in_call = False
        self._begun: dict[str, int] = {}
        self._block_end = 0
        self._wal_pages = 0
        self._db.set_wal_hook(self._note_wal)

    # -- life -------------------------------------------------------------------------------------------

    def open(self, q_mgr_name: str, now: int) -> int:
        """See the port."""
        try:
            return self._open(q_mgr_name, now)
        except apsw.Error as error:
            raise StoreBroken(f"{self._directory / FILE_NAME}: {error}") from error

    def _open(self, q_mgr_name: str, now: int) -> int:
        self.standing = Standing(q_mgr_name)
        owner = self._meta("q_mgr_name")
        if owner not in (None, q_mgr_name):
            raise AnothersStore(f"{self._directory} holds the data of queue manager {owner}, not of {q_mgr_name}")
        self._execute("BEGIN IMMEDIATE")
        self._execute(sql.SET_META, ("q_mgr_name", q_mgr_name))
        changed = self._groups.start()
        for each in self.decided:
            changed += self._rows(sql.GROUPS_OF_PUTS, (each.unit_id,))
            self._execute(sql.COMMIT_GETS, (each.unit_id,))
            self._execute(sql.COMMIT_PUTS, (each.unit_id,))
            self._execute(sql.RECORD_OUTCOME, (each.client_id, each.number, int(UnitOutcome.COMMITTED), now))
        for statement in (sql.RECOVER_PUTS, sql.RECOVER_VOLATILE, sql.RECOVER_GETS):
            self._execute(statement)
        for group in changed:
            self._groups.changed(group, has_new_heads=True)
        self._execute(sql.DROP_TEMPORARY, (int(DefinitionType.TEMPORARY_DYNAMIC),))
        self._execute(sql.CLEAR_DELETED)
        self._execute(sql.DROP_DELETED)
        self._execute(sql.DROP_PAUSES_OF_NOTHING)
        self._execute(sql.FORGET_OLD_OUTCOMES, (now - WEEK_MS,))
        self._execute(sql.FORGET_OLD_RESERVATIONS, (now - WEEK_MS,))
        self._execute(sql.DROP_RESERVATIONS_OF_NOTHING)
        first = self._meta("next_id") or 1
        self._block_end = first + ID_BLOCK
        self._execute(sql.SET_META, ("next_id", self._block_end))
        self._execute("COMMIT")
        self._numbers = {name: number for number, name in self._rows(sql.QUEUES)}
        self._load()
        return first

    def _load(self) -> None:
        names = {number: name for name, number in self._numbers.items()}
        depths: dict[str, list[int]] = {}
        for number, priority, count in chain.from_iterable(map(self._rows, sql.DEPTHS.values())):
            if number not in names:
                raise StoreBroken(f"messages lie on queue number {number}, which does not exist")
            depths.setdefault(names[number], [0] * 10)[priority] += count
        standing = self.standing
        for kind, text in self._rows(sql.OBJECTS):
            try:
                definition = msgspec.json.decode(text, type=KINDS[ObjectType[kind]])
            except (KeyError, msgspec.MsgspecError) as error:
                raise StoreBroken(f"the definition of a {kind} cannot be read: {error}") from error
            if isinstance(definition, LocalQueue):
                counted = tuple(depths.get(definition.name, [0] * 10))
                standing.queues[definition.name] = QueueFacts(definition, counted)
            else:
                standing.define(cast(AnyDefinition, definition))
        for pause in (Paused(*row) for row in self._rows(sql.PAUSES)):
            standing.pauses[pause.what, pause.name] = pause
        self._ledger.load(standing)
        for (text,) in self._rows(sql.RESERVATIONS_LEFT):
            standing.follow(c.SetReservation(_reservation(text)))
        standing.mark()

    def kept_time(self) -> str:
        """What was last kept of the queue manager's own time; empty for a new store. Asked before :meth:`open`."""
        return str(self._meta("own_time") or "")

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
        """Commits what was written so far, with a sync; units of work in flight stay in flight."""
        self._release()
        if self._in_turn:
            self._must_sync = True
            self._commit()

    def undo(self) -> None:
        """See the port."""
        if self._in_call:
            self._run_sql("ROLLBACK TO call")
            self._run_sql("RELEASE call")
            self._in_call = False
            self._numbers = {name: number for number, name in self._rows(sql.QUEUES)}
            self._begun.clear()
        self.standing.undo()

    def end(self) -> None:
        """See the port. What a crash undoes anyway waits for a later turn's commit: its pages are written once."""
        self._release()
        self._deferred += 1
        if self._in_turn and (self._must_commit or self._deferred >= MOST_DEFERRED):
            self._commit()
            if self._wal_pages >= CHECKPOINT_PAGES:
                self._checkpoint()

    def _commit(self) -> None:
        self._in_turn = False
        self._run_sql("COMMIT")
        if self._must_sync and not self._is_full:
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

    def _run_sql(self, statement: str, values: tuple[object, ...] = ()) -> None:
        try:
            self._execute(statement, values)
        except apsw.Error as error:
            raise StoreBroken(f"{statement.split()[0]}: {error}") from error

    def _rows(self, statement: str, values: tuple[object, ...] = ()) -> list[Any]:
        try:
            return self._execute(statement, values).fetchall()
        except apsw.Error as error:
            raise StoreBroken(f"{statement.split()[0]}: {error}") from error

    def _meta(self, key: str) -> Any:
        rows = self._rows(sql.GET_META, (key,))
        return rows[0][0] if rows else None

    # -- looking ----------------------------------------------------------------------------------------

    def find(self, selection: Selection) -> Found:
        """See the port."""
        number = self._numbers.get(selection.q_name)
        if number is None:
            return Found()
        look = Look(
            self._open_rows,
            selection,
            number,
            self.standing.locks,
            has_groups=self._groups.has_groups(number),
            has_own=bool(selection.unit_id) and self._has_own(selection),
        )
        try:
            if selection.oldest_from is not None or selection.counts_expired:
                oldest = look.oldest(selection.oldest_from) if selection.oldest_from is not None else ()
                return Found(oldest, expired_count=self._count_expired(selection, number))
            return look.found()
        except apsw.Error as error:
            raise StoreBroken(str(error)) from error

    def _open_rows(self, statement: str, values: tuple[object, ...]) -> apsw.Cursor:
        return self._db.cursor().execute(statement, values)

    def _ended(self, reservation: int) -> Reservation | None:
        rows = self._rows(sql.RESERVATION, (reservation,)) if 0 < reservation < BEHIND_ALL else []
        return _reservation(rows[0][0]) if rows else None

    def _count_expired(self, selection: Selection, number: int) -> int:
        if not selection.counts_expired:
            return 0
        return len(self._rows(sql.EXPIRED, (number, selection.now, selection.counts_expired)))

    def _has_own(self, selection: Selection) -> bool:
        unit = self.standing.units.get(selection.unit_id)
        return unit is not None and any(q_name == selection.q_name for q_name, _ in unit.puts)

    def _recorded(self, client_id: str) -> dict[int, UnitOutcome]:
        return {number: UnitOutcome(outcome) for number, outcome in self._rows(sql.OUTCOMES, (client_id,))}

    def _run(self, run_id: str) -> dict[str, object] | None:
        return self._ledger.run(run_id)

    def _runs(self, where: dict[str, object], before: str, limit: int) -> Sequence[dict[str, object]]:
        return self._ledger.runs(where, before, limit)

    def _held(self, line: tuple[str, str, str], limit: int, *, from_last: bool = False) -> Sequence[str]:
        return self._ledger.held(line, limit, from_last=from_last)

    def _outdated(self, keep_count: int, ended_before_ms: int) -> Sequence[str]:
        return self._ledger.outdated(keep_count, ended_before_ms)

    # -- writing ----------------------------------------------------------------------------------------

    def apply(self, changes: Sequence[c.AnyChange], can_be_undone: bool) -> None:
        """See the port."""
        lasts = must_last(changes)
        self._must_sync = self._must_sync or lasts
        self._must_commit = self._must_commit or lasts or not all(map(can_wait, changes))
        try:
            for change in changes:
                write = _WRITE.get(type(change))
                if write is not None:
                    if not self._in_turn:
                        self._begin_turn(is_full=lasts)
                    if can_be_undone and not self._in_call:
                        self._execute("SAVEPOINT call")
                        self._in_call = True
                    write(self, change)
                self.standing.follow(change)
        except Exception as error:
            if self._in_call and not isinstance(error, apsw.Error):
                raise  # what was written of this call is taken back
            raise StoreBroken(f"{type(error).__name__}: {error}") from error

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
            self._execute(sql.SET_META, ("synced", 1))
            self._execute("COMMIT")
        except apsw.Error as error:
            raise StoreBroken(f"the sync of a turn: {error}") from error
        self._in_turn = False

    def _add(self, change: c.AddMessage) -> None:
        descriptor = change.descriptor
        head = _encode(descriptor)
        if change.number >= self._block_end:
            self._keep_ids_behind(change.number)
        held = (2 if change.on_backout else 1) if change.is_held else 0
        queue = self._numbers[change.q_name]
        row = (
            change.number,
            queue,
            change.priority,
            change.is_persistent,
            change.unit_id or None,
            held,
            change.expires_ms,
            descriptor.backout_count,
            descriptor.msg_id,
            None if descriptor.correl_id == NO_ID else descriptor.correl_id,
            head,
            change.data,
            crc32(change.data, crc32(head)),
        )
        if descriptor.group_id == NO_ID:
            self._execute(sql.ADD_MESSAGE, row)
            return
        seq, offset = descriptor.msg_seq_number, descriptor.offset
        item = (descriptor.group_id, seq, offset, descriptor.msg_flags, int((seq, offset) == START))
        self._execute(sql.ADD_ITEM, (*row, *item))
        order = -change.priority, change.number
        self._groups.came(queue, descriptor.group_id, order, (seq, offset), change.unit_id)

    def _take(self, change: c.TakeMessage) -> None:
        message = change.message
        self._execute(sql.TAKE_MESSAGE, (change.unit_id, message.number))
        self._groups.took(self._numbers[message.q_name], message, change.unit_id)

    def _carry_over(self, change: c.CarryOver) -> None:
        self._execute(sql.TAKE_MESSAGE, (change.unit_id, change.message.number))
        self._groups.carried(change.unit_id)

    def _remove(self, change: c.RemoveMessage) -> None:
        message = change.message
        self._execute(sql.REMOVE_MESSAGE, (message.number,))
        self._groups.took(self._numbers[message.q_name], message, 0)

    def _set_aside(self, change: c.SetAside) -> None:
        message = change.message
        self._execute(sql.SET_ASIDE, (message.number,))
        self._groups.set_aside(self._numbers[message.q_name], message.number)

    def _reserve_messages(self, change: c.ReserveMessages) -> None:
        marks = ((change.reservation, o, m.number) for o, m in enumerate(change.messages, change.first))
        self._cursor.executemany(sql.RESERVE_MESSAGE, marks)
        queue = self._numbers[change.messages[0].q_name]
        for message in change.messages:
            self._groups.took(queue, message, 0)

    def _set_reservation(self, change: c.SetReservation) -> None:
        if not change.is_stored:
            return
        reservation = replace(change.reservation, holder=0, readers=())
        number, queue = reservation.number, self._numbers[reservation.q_name]
        self._keep_ids_behind(number)
        ended_ms = (reservation.ended_ms or 1) if reservation.is_over else None
        text = msgspec.json.encode(reservation).decode()
        self._execute(sql.SET_RESERVATION, (number, queue, reservation.consumer, ended_ms, text))
        if ended_ms is not None:
            own = queue, reservation.consumer
            self._execute(sql.FORGET_RESERVATIONS, (*own, *own, KEPT_RESERVATIONS - 1))

    def _settle_reserved(self, change: c.SettleReserved) -> None:
        self._cursor.executemany(sql.REMOVE_MESSAGE, ((message.number,) for message in change.messages))

    def _return_reserved(self, change: c.ReturnReserved) -> None:
        self._cursor.executemany(sql.RETURN_RESERVED, ((change.adds, message.number) for message in change.messages))
        queue = self._numbers[change.messages[0].q_name]
        for message in change.messages:
            self._groups.returned(queue, message.number)

    def _keep_ids_behind(self, number: int) -> None:
        if number >= self._block_end:
            self._block_end = number + ID_BLOCK
            self._execute(sql.SET_META, ("next_id", self._block_end))
            self._must_commit = True

    def _begin_unit(self, change: c.BeginUnit) -> None:
        self._keep_ids_behind(change.unit_id)
        if len(self._begun) > ENOUGH_CLIENTS:
            self._begun.clear()
        last = self._begun.get(change.client_id)
        if last != change.number - 1:
            self._execute(sql.RECORD_BEFORE_FIRST, (change.client_id, change.number - 1, change.now))
            self._must_commit = True

    def _end_unit(self, change: c.EndUnit) -> None:
        unit = change.unit
        key = (unit.unit_id,)
        ends: tuple[str, ...]
        is_commit = change.outcome is UnitOutcome.COMMITTED
        groups = self._groups.before_end(unit.unit_id, is_commit=is_commit)
        if is_commit:
            ends = (sql.COMMIT_GETS if unit.gets else "", sql.COMMIT_PUTS if unit.puts else "")
        else:
            ends = (
                sql.BACK_OUT_PUTS if unit.puts else "",
                sql.RELEASE_HELD if unit.held else "",
                sql.BACK_OUT_GETS if unit.gets else "",
            )
        for statement in ends:
            if statement:
                self._execute(statement, key)
        for group, place in groups.items():
            self._groups.changed(group, place, has_new_heads=place == START)
        self._execute(sql.RECORD_OUTCOME, (unit.client_id, unit.number, int(change.outcome), change.now))
        self._execute(sql.FORGET_OUTCOMES, (unit.client_id, unit.number - 1))
        self._begun[unit.client_id] = unit.number

    def _set_definition(self, change: c.SetDefinition) -> None:
        definition = change.definition
        text = msgspec.json.encode(definition).decode()
        self._execute(sql.SET_OBJECT, (change.object_type.name, definition.name, text))
        if isinstance(definition, LocalQueue) and definition.name not in self._numbers:
            self._execute(sql.ADD_QUEUE, (definition.name,))
            self._numbers[definition.name] = self._db.last_insert_rowid()

    def _drop_definition(self, change: c.DropDefinition) -> None:
        self._execute(sql.DROP_OBJECT, (change.object_type.name, change.name))
        self._execute(sql.DROP_PAUSE, pause_of(change))
        for cause in causes_of(change, self.standing.causes):
            self._execute(sql.DROP_CAUSE, cause)
        if change.object_type is ObjectType.QLOCAL:
            number = self._numbers.pop(change.name)
            self._execute(sql.CLEAR_QUEUE, (number,))
            self._execute(sql.DROP_RESERVATIONS, (number,))
            self._execute(sql.DROP_QUEUE, (number,))

    def _delete_logically(self, change: c.DeleteLogically) -> None:
        """Its rows stay for those who still use it; a start finds them without a definition and removes them."""
        self._execute(sql.DROP_OBJECT, (ObjectType.QLOCAL.name, change.q_name))

    def _set_pause(self, change: c.SetPause) -> None:
        self._execute(sql.SET_PAUSE, msgspec.structs.astuple(change.pause))

    def _drop_pause(self, change: c.DropPause) -> None:
        self._execute(sql.DROP_PAUSE, (change.what, change.name))


def _in_ledger(write: Callable[[Ledger, Any], None], store: SqliteStore, change: c.Change) -> None:
    write(store._ledger, change)


_WRITE: dict[type[c.Change], Any] = {
    c.AddMessage: SqliteStore._add,
    c.TakeMessage: SqliteStore._take,
    c.CarryOver: SqliteStore._carry_over,
    c.RemoveMessage: SqliteStore._remove,
    c.SetAside: SqliteStore._set_aside,
    c.BeginUnit: SqliteStore._begin_unit,
    c.EndUnit: SqliteStore._end_unit,
    c.SetDefinition: SqliteStore._set_definition,
    c.DropDefinition: SqliteStore._drop_definition,
    c.DeleteLogically: SqliteStore._delete_logically,
    c.SetPause: SqliteStore._set_pause,
    c.DropPause: SqliteStore._drop_pause,
    c.ReserveMessages: SqliteStore._reserve_messages,
    c.SetReservation: SqliteStore._set_reservation,
    c.SettleReserved: SqliteStore._settle_reserved,
    c.ReturnReserved: SqliteStore._return_reserved,
}
_WRITE |= {kind: partial(_in_ledger, write) for kind, write in LEDGER_WRITES.items()}


def _reservation(text: str) -> Reservation:
    try:
        return msgspec.json.decode(text, type=Reservation)
    except msgspec.MsgspecError as error:
        raise StoreBroken(f"a reservation cannot be read: {error}") from error
