"""The part of a store that SQLite and PostgreSQL share: rows of an SQL database, without its transactions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain
from typing import Any, ClassVar, cast

import msgspec
from msgspec.structs import replace

from trigmon.mq.attributes import KINDS, AnyDefinition, LocalQueue
from trigmon.mq.enums import DefinitionType, ObjectType, UnitOutcome
from trigmon.mq.run import Run
from trigmon.rules.model import changes as c
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.reservation import Reservation
from trigmon.rules.model.run_facts import Paused
from trigmon.rules.model.state import Standing
from trigmon.rules.model.stored_messages import SLICE, Found, Selection, StoredMessage
from trigmon.rules.model.transitions import causes_of, pause_of
from trigmon.store.base import ID_BLOCK, KEPT_RESERVATIONS, BaseStore
from trigmon.store.port import AnothersStore, StoreBroken
from trigmon.store.sql import statements as sql
from trigmon.store.sql.leftovers import Leftovers
from trigmon.store.sql.message_rows import Messages
from trigmon.store.sql.run_rows import BEHIND_ALL, LEDGER_WRITES, Ledger
from trigmon.store.sql.select import Look

WEEK_MS = 7 * 86_400_000

Execute = Callable[..., Any]


class RowStore(BaseStore):
    """The base class of SQL stores: which statements a read or a change runs.

    Subclasses run the statements in their transactions. ``execute`` runs one, returns its rows and raises ``error``;
    ``where`` is the place of the data, for error texts.
    """

    error: ClassVar[type[Exception]]

    def __init__(self, execute: Execute, where: str) -> None:
        super().__init__()
        self._execute = execute
        self._where = where
        self._messages = Messages(execute)
        self._ledger = Ledger(execute, self._rows, self._open_rows)
        self._numbers: dict[str, int] = {}
        self._block_end = 0
        self._leftovers = Leftovers(self._run_sql, self._rows)
        self._looked_to = ""

    # -- what a database does ---------------------------------------------------------------------------

    @abstractmethod
    def _many(self, statement: str, values: Iterable[tuple[object, ...]]) -> None:
        """Runs the same write with each of the values."""

    @abstractmethod
    def _open_rows(self, statement: str, values: tuple[object, ...]) -> Any:
        """Returns the rows of a statement, read as they are iterated over; ``close(True)`` ends that early."""

    # -- life -------------------------------------------------------------------------------------------
    def _recover(self, q_mgr_name: str, now: int) -> int:
        """Recovers the data within one transaction; returns the first free number."""
        self.standing = Standing(q_mgr_name)
        owner = self._meta("q_mgr_name")
        if owner not in (None, q_mgr_name):
            raise AnothersStore(f"{self._where} holds the data of queue manager {owner}, not of {q_mgr_name}")
        self._execute(sql.SET_META, ("q_mgr_name", q_mgr_name))
        changed = self._messages.groups.start()
        self._leftovers.recover()
        for each in self.decided:
            changed += dict.fromkeys(self._rows(sql.GROUPS_OF_PUTS, (each.unit_id,)))
            self._execute(sql.COMMIT_GETS, (each.unit_id,))
            self._execute(sql.COMMIT_PUTS, (each.unit_id,))
            self._execute(sql.RECORD_OUTCOME, (each.client_id, each.number, int(UnitOutcome.COMMITTED), now))
        for statement in (sql.RECOVER_PUTS, sql.RECOVER_VOLATILE, sql.RECOVER_GETS):
            self._execute(statement)
        for group in changed:
            self._messages.groups.changed(group, has_new_heads=True)
        for kind, text in self._rows(sql.OBJECTS):
            definition = _definition(kind, text)
            if isinstance(definition, LocalQueue) and definition.definition_type is DefinitionType.TEMPORARY_DYNAMIC:
                self._execute(sql.DROP_OBJECT, (kind, definition.name))
        self._execute(sql.SET_DELETED_DROPPED)
        self._execute(sql.DROP_PAUSES_OF_NOTHING)
        self._execute(sql.FORGET_OLD_RESERVATIONS, (now - WEEK_MS,))
        self._execute(sql.DROP_RESERVATIONS_OF_NOTHING)
        first = int(self._meta("next_id") or 1)
        self._block_end = first + ID_BLOCK
        self._execute(sql.SET_META, ("next_id", str(self._block_end)))
        return first

    def _load(self) -> None:
        """Loads the facts from the rows."""
        names = self._read_numbers()
        depths: dict[str, list[int]] = {}
        for number, priority, count in chain.from_iterable(map(self._rows, sql.DEPTHS.values())):
            if number not in names:
                raise StoreBroken(f"messages lie on queue number {number}, which does not exist")
            depths.setdefault(names[number], [0] * 10)[priority] += count
        standing = self.standing
        for kind, text in self._rows(sql.OBJECTS):
            definition = _definition(kind, text)
            if isinstance(definition, LocalQueue):
                counted = tuple(depths.get(definition.name, [0] * 10))
                standing.queues[definition.name] = QueueFacts(definition, counted)
            else:
                standing.define(definition)
        for pause in (Paused(*row) for row in self._rows(sql.PAUSES)):
            standing.pauses[pause.what, pause.name] = pause
        self._ledger.load(standing)
        for (text,) in self._rows(sql.RESERVATIONS_LEFT):
            standing.follow(c.SetReservation(_reservation(text)))
        standing.mark()

    def _read_numbers(self) -> dict[int, str]:
        """Returns the queues' names by number, including deleted queues that still have rows."""
        names: dict[int, str] = dict(self._rows(sql.QUEUES))
        dropped = self._leftovers.read(names)
        self._numbers = {name: number for number, name in names.items() if number not in dropped}
        return names

    def is_new(self) -> bool:
        """Returns whether the store is new. Called before :meth:`open`."""
        return self._meta("q_mgr_name") is None

    def kept_time(self) -> str:
        """Returns the clock's state written last; empty for a new store. Called before :meth:`open`."""
        return str(self._meta("own_time") or "")

    def _run_sql(self, statement: str, values: tuple[object, ...] = ()) -> None:
        try:
            self._execute(statement, values)
        except self.error as error:
            raise StoreBroken(f"{statement.split()[0]}: {error}") from error

    def _rows(self, statement: str, values: tuple[object, ...] = ()) -> list[Any]:
        try:
            return list(self._execute(statement, values))
        except self.error as error:
            raise StoreBroken(f"{statement.split()[0]}: {error}") from error

    def _meta(self, key: str) -> Any:
        rows = self._rows(sql.GET_META, (key,))
        return rows[0][0] if rows else None

    def _forget_call(self) -> None:
        """Reads what is known of the rows again, after writes of a call were undone."""
        self._read_numbers()
        # The record of the current block may have been undone as well.
        self._block_end = 0

    # -- looking ----------------------------------------------------------------------------------------

    def find(self, selection: Selection) -> Found:
        """See the port."""
        number = self._numbers.get(selection.q_name)
        if number is None:
            return Found()
        try:
            return self._look(selection, number, None).found()
        except self.error as error:
            raise StoreBroken(str(error)) from error

    def _look(self, selection: Selection, number: int, ahead: Iterable[StoredMessage] | None) -> Look:
        return Look(
            self._open_rows,
            selection,
            number,
            self.standing.locks,
            has_groups=self._messages.groups.has_groups(number),
            has_own=bool(selection.unit_id) and self._has_own(selection),
            ahead=ahead,
            available=self._leftovers.available.get(number, ()),
        )

    def _ended(self, reservation: int) -> Reservation | None:
        rows = self._rows(sql.RESERVATION, (reservation,)) if 0 < reservation < BEHIND_ALL else []
        return _reservation(rows[0][0]) if rows else None

    def _has_own(self, selection: Selection) -> bool:
        unit = self.standing.units.get(selection.unit_id)
        return unit is not None and any(q_name == selection.q_name for q_name, _ in unit.puts)

    def _recorded(self, client_id: str) -> dict[int, UnitOutcome]:
        return {number: UnitOutcome(outcome) for number, outcome in self._rows(sql.OUTCOMES, (client_id,))}

    def _run(self, run_id: str) -> Run | None:
        return self._ledger.run(run_id)

    def _runs(self, where: dict[str, object], before: str, limit: int) -> Sequence[Run]:
        try:
            return self._ledger.runs(where, before, limit)
        except self.error as error:
            raise StoreBroken(str(error)) from error

    def _held(self, line: tuple[str, str, str], limit: int, *, from_last: bool = False) -> Sequence[str]:
        return self._ledger.held(line, limit, from_last=from_last)

    def _outdated(self, keep_count: int, ended_before_ms: int) -> Sequence[str]:
        return self._ledger.outdated(keep_count, ended_before_ms)

    # -- writing ----------------------------------------------------------------------------------------

    def _write(self, change: c.AnyChange) -> None:
        _WRITE[type(change)](self, change)

    def _add(self, change: c.AddMessage) -> None:
        self._keep_ids_behind(change.number)
        self._messages.add(change, self._numbers[change.q_name], change.number, change.unit_id)

    def _take(self, change: c.TakeMessage) -> None:
        self._rewrite(change.message)
        self._messages.take(change.message, self._numbers[change.message.q_name], change.unit_id)

    def _carry_over(self, change: c.CarryOver) -> None:
        self._messages.carry_over(change.message.number, change.unit_id)

    def _remove(self, change: c.RemoveMessage) -> None:
        self._messages.remove(change.message, self._numbers[change.message.q_name])

    def _set_aside(self, change: c.SetAside) -> None:
        self._messages.set_aside(change.message, self._numbers[change.message.q_name])

    def _rewrite(self, message: StoredMessage) -> None:
        if self._leftovers.available:
            self._leftovers.rewrite(self._numbers[message.q_name], message.number)

    def _reserve_messages(self, change: c.ReserveMessages) -> None:
        for message in change.messages:
            self._rewrite(message)
        self._mark_reserved(change.reservation, change.first, [message.number for message in change.messages])
        queue = self._numbers[change.messages[0].q_name]
        for message in change.messages if self._messages.groups.has_groups(queue) else ():
            self._messages.groups.took(queue, message, 0)

    def _mark_reserved(self, reservation: int, first: int, numbers: Sequence[int]) -> None:
        """Marks the rows of these messages as reserved, with the ordinals from ``first`` on."""
        self._many(sql.RESERVE_MESSAGE, ((reservation, ordinal, n) for ordinal, n in enumerate(numbers, first)))

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
        self._many(sql.REMOVE_MESSAGE, ((message.number,) for message in change.messages))

    def _return_reserved(self, change: c.ReturnReserved) -> None:
        self._many(sql.RETURN_RESERVED, ((change.adds, message.number) for message in change.messages))
        queue = self._numbers[change.messages[0].q_name]
        for message in change.messages:
            self._messages.groups.returned(queue, message.number)

    def _keep_ids_behind(self, number: int) -> None:
        if number >= self._block_end:
            self._block_end = number + ID_BLOCK
            self._execute(sql.SET_META, ("next_id", str(self._block_end)))
            self._must_commit = True

    def use_number(self, number: int) -> None:
        """Records that a number is in use that no row here has; starts a new block long before this one is used up."""
        if number >= self._block_end - ID_BLOCK // 2:
            self._keep_block(number)

    @abstractmethod
    def _keep_block(self, number: int) -> None:
        """Records a block of numbers behind this one; durable when the turn has ended."""

    def _begin_unit(self, change: c.BeginUnit) -> None:
        self._keep_ids_behind(change.unit_id)
        # Every ended unit of this connection has a recorded outcome. Before the first unit, or behind a gap, there is
        # none, and a unit that was cut off could not be recognized without this record.
        before = self.standing.connections[change.connection].unit_number
        if not before or before != change.number - 1:
            self._execute(sql.RECORD_BEFORE_FIRST, (change.client_id, change.number - 1, change.now))
            self._must_commit = True

    def _end_unit(self, change: c.EndUnit) -> None:
        unit = change.unit
        if not change.is_decided:
            is_commit = change.outcome is UnitOutcome.COMMITTED
            has_groups = self._messages.groups.has_any_of(unit.unit_id)
            left = self._leftovers.of_unit(unit, self._numbers, is_commit=is_commit, has_groups=has_groups)
            self._messages.end_unit(unit, unit.unit_id, is_commit=is_commit, left=left)
            if left:
                self._leftovers.leave(unit, unit.unit_id, left, self._numbers)
        self._record(unit.client_id, unit.number, change.outcome, change.now)

    def _skip_unit(self, change: c.SkipUnit) -> None:
        self._record(change.client_id, change.number, change.outcome, change.now)

    def _record(self, client_id: str, number: int, outcome: UnitOutcome, now: int) -> None:
        self._execute(sql.RECORD_OUTCOME, (client_id, number, int(outcome), now))
        self._execute(sql.FORGET_OUTCOMES, (client_id, number - 1))

    def forget_outcomes(self, before_ms: int) -> None:
        """See the port. A connected client keeps its outcomes, however old."""
        clients = self._rows(sql.CLIENTS_WITH_OUTCOMES, (self._looked_to, SLICE))
        self._looked_to = clients[-1][0] if len(clients) == SLICE else ""
        there = {connection.client_id for connection in self.standing.connections.values()}
        old = [client for client, at_ms in clients if at_ms < before_ms and client not in there]
        if old:
            self._will_write()
        for client in old:
            self._run_sql(sql.FORGET_CLIENT, (client,))

    @property
    def has_leftovers(self) -> bool:
        """See the port."""
        return bool(self._leftovers)

    def remove_leftovers(self) -> None:
        """See the port."""
        self._will_write()
        self._leftovers.remove()

    def _will_write(self) -> None:
        """Prepares the turn for a write that no call asked for and that need not be durable."""

    def _set_definition(self, change: c.SetDefinition) -> None:
        definition = change.definition
        text = msgspec.json.encode(definition).decode()
        self._execute(sql.SET_OBJECT, (change.object_type.name, definition.name, text))
        if isinstance(definition, LocalQueue) and definition.name not in self._numbers:
            self._numbers[definition.name] = self._rows(sql.ADD_QUEUE, (definition.name,))[0][0]

    def _drop_definition(self, change: c.DropDefinition) -> None:
        self._execute(sql.DROP_OBJECT, (change.object_type.name, change.name))
        self._execute(sql.DROP_PAUSE, pause_of(change))
        for cause in causes_of(change, self.standing.causes):
            self._execute(sql.DROP_CAUSE, cause)
        if change.object_type is ObjectType.QLOCAL:
            number = self._numbers.pop(change.name)
            self._execute(sql.DROP_RESERVATIONS, (number,))
            if self._leftovers or self.standing.queues[change.name].depth > SLICE:
                self._leftovers.of_queue(number)
            else:
                self._execute(sql.CLEAR_QUEUE, (number,))
                self._execute(sql.DROP_QUEUE, (number,))

    def _delete_logically(self, change: c.DeleteLogically) -> None:
        """Removes the definition. Rows stay for open handles; a start removes rows without a definition."""
        self._execute(sql.DROP_OBJECT, (ObjectType.QLOCAL.name, change.q_name))

    def _set_pause(self, change: c.SetPause) -> None:
        self._execute(sql.SET_PAUSE, msgspec.structs.astuple(change.pause))

    def _drop_pause(self, change: c.DropPause) -> None:
        self._execute(sql.DROP_PAUSE, (change.what, change.name))


def _in_ledger(write: Callable[[Ledger, Any], None], store: RowStore, change: c.AnyChange) -> None:
    write(store._ledger, change)


_WRITE: dict[type[c.AnyChange], Any] = {
    c.AddMessage: RowStore._add,
    c.TakeMessage: RowStore._take,
    c.CarryOver: RowStore._carry_over,
    c.RemoveMessage: RowStore._remove,
    c.SetAside: RowStore._set_aside,
    c.BeginUnit: RowStore._begin_unit,
    c.EndUnit: RowStore._end_unit,
    c.SkipUnit: RowStore._skip_unit,
    c.SetDefinition: RowStore._set_definition,
    c.DropDefinition: RowStore._drop_definition,
    c.DeleteLogically: RowStore._delete_logically,
    c.SetPause: RowStore._set_pause,
    c.DropPause: RowStore._drop_pause,
    c.ReserveMessages: RowStore._reserve_messages,
    c.SetReservation: RowStore._set_reservation,
    c.SettleReserved: RowStore._settle_reserved,
    c.ReturnReserved: RowStore._return_reserved,
}
_WRITE |= {kind: partial(_in_ledger, write) for kind, write in LEDGER_WRITES.items()}

WRITTEN = frozenset(_WRITE)
"""The changes that are written to the database; the others change only facts in memory."""


def _reservation(text: str) -> Reservation:
    try:
        return msgspec.json.decode(text, type=Reservation)
    except msgspec.MsgspecError as error:
        raise StoreBroken(f"a reservation cannot be read: {error}") from error


def _definition(kind: str, text: str) -> AnyDefinition:
    try:
        return cast("AnyDefinition", msgspec.json.decode(text, type=KINDS[ObjectType[kind]]))
    except (KeyError, msgspec.MsgspecError) as error:
        raise StoreBroken(f"the definition of a {kind} cannot be read: {error}") from error
