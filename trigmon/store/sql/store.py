"""The part of a store that SQLite and PostgreSQL share: rows of an SQL database, without its transactions."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, ClassVar, cast

import msgspec

from trigmon.mq.attributes import KINDS, AnyDefinition, LocalQueue
from trigmon.mq.enums import DefinitionType, ObjectType, UnitOutcome
from trigmon.mq.run import Run
from trigmon.rules.model import reservation_changes as r
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.reservation import Reservation
from trigmon.rules.model.run_facts import Paused
from trigmon.rules.model.state import Standing
from trigmon.rules.model.stored_messages import SLICE, Found, Selection, Stretch, numbers_in
from trigmon.store.base import ID_BLOCK, BaseStore
from trigmon.store.port import AnothersStore, StoreBroken
from trigmon.store.sql import statements as sql
from trigmon.store.sql.leftovers import Leftovers
from trigmon.store.sql.message_finder import MessageFinder
from trigmon.store.sql.outcomes import Outcomes
from trigmon.store.sql.queue_heads import QueueHeads, ReadRows
from trigmon.store.sql.read_ahead import Ahead
from trigmon.store.sql.reserved_ranges import ReservedRanges
from trigmon.store.sql.row_writes import Messages
from trigmon.store.sql.run_rows import BEHIND_ALL, Ledger

WEEK_MS = 7 * 86_400_000

Execute = Callable[..., Any]


class QueueGoneError(KeyError):
    """A change is of a queue that has no number."""


class QueueNumbers(dict[str, int]):
    """The numbers of queues by name. Raises QueueGoneError for a queue that has none."""

    def __missing__(self, q_name: str) -> int:
        raise QueueGoneError(q_name)


class RowStore(BaseStore):
    """The base class of SQL stores: which statements a read runs; :mod:`trigmon.store.sql.row_writes` has the writes.

    Subclasses run the statements in their transactions. ``execute`` runs one, returns its rows and raises ``error``;
    ``where`` is the place of the data, for error texts. ``read_rows`` reads a queue's first rows, many at a time.
    ``reserves_ranges``: simple messages are reserved by a record of ranges, and their rows are not marked.
    """

    error: ClassVar[type[Exception]]
    reserves_ranges: ClassVar[bool] = False

    def __init__(self, execute: Execute, where: str, read_rows: ReadRows) -> None:
        super().__init__()
        self.execute = execute
        self._where = where
        self.messages = Messages(execute)
        self.ledger = Ledger(execute, self.rows, self._open_rows)
        self._ended_runs = self.ledger.history
        self.numbers = QueueNumbers()
        self._block_end = 0
        self.leftovers = Leftovers(self._run_sql, self.rows)
        self.ranges = ReservedRanges(self._run_sql, self.rows)
        self.outcomes = Outcomes(execute, self.rows)
        self.ahead = Ahead()
        heads = QueueHeads(self.ahead, read_rows)
        self._finder = MessageFinder(
            self._open_rows,
            heads,
            self.ranges,
            self.leftovers,
            self.messages.groups,
            reserves_ranges=self.reserves_ranges,
        )
        self._looked_to = ""

    # -- what a database does ---------------------------------------------------------------------------

    @abstractmethod
    def many(self, statement: str, values: Iterable[tuple[object, ...]]) -> None:
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
        self.execute(sql.SET_META, ("q_mgr_name", q_mgr_name))
        changed = self.messages.groups.start()
        self.leftovers.recover()
        if self.reserves_ranges:
            self.ranges.recover()
        for each in self.decided:
            changed += dict.fromkeys(self.rows(sql.GROUPS_OF_PUTS, (each.unit_id,)))
            self.execute(sql.COMMIT_GETS, (each.unit_id,))
            self.execute(sql.COMMIT_PUTS, (each.unit_id,))
            self.execute(sql.RECORD_OUTCOME, (each.client_id, each.number, int(UnitOutcome.COMMITTED), now))
        for statement in (sql.RECOVER_PUTS, sql.RECOVER_VOLATILE, sql.RECOVER_GETS):
            self.execute(statement)
        for group in changed:
            self.messages.groups.changed(group, has_new_heads=True)
        for kind, text in self.rows(sql.OBJECTS):
            definition = definition_of(kind, text)
            if isinstance(definition, LocalQueue) and definition.definition_type is DefinitionType.TEMPORARY_DYNAMIC:
                self.execute(sql.DROP_OBJECT, (kind, definition.name))
        self.execute(sql.SET_DELETED_DROPPED)
        self.execute(sql.DROP_PAUSES_OF_NOTHING)
        self.execute(sql.FORGET_OLD_RESERVATIONS, (now - WEEK_MS,))
        self.execute(sql.DROP_RESERVATIONS_OF_NOTHING)
        first = int(self._meta("next_id") or 1)
        self._block_end = first + ID_BLOCK
        self.execute(sql.SET_META, ("next_id", str(self._block_end)))
        return first

    def _load(self) -> None:
        """Loads the facts from the rows."""
        names = self._read_numbers()
        depths: dict[str, list[int]] = {}
        for number, priority, count in chain.from_iterable(map(self.rows, sql.DEPTHS.values())):
            if number not in names:
                raise StoreBroken(f"messages lie on queue number {number}, which does not exist")
            depths.setdefault(names[number], [0] * 10)[priority] += count
        standing = self.standing
        for kind, text in self.rows(sql.OBJECTS):
            definition = definition_of(kind, text)
            if isinstance(definition, LocalQueue):
                counted = tuple(depths.get(definition.name, [0] * 10))
                standing.queues[definition.name] = QueueFacts(definition, counted)
            else:
                standing.define(definition)
        for pause in (Paused(*row) for row in self.rows(sql.PAUSES)):
            standing.pauses[pause.what, pause.name] = pause
        self.ledger.load(standing)
        for (text,) in self.rows(sql.RESERVATIONS_LEFT):
            standing.follow(r.SetReservation(_reservation(text)))
        standing.mark()

    def _read_numbers(self) -> dict[int, str]:
        """Returns the queues' names by number, including deleted queues that still have rows."""
        names: dict[int, str] = dict(self.rows(sql.QUEUES))
        dropped = self.leftovers.read(names)
        self.numbers = QueueNumbers((name, number) for number, name in names.items() if number not in dropped)
        return names

    def is_new(self) -> bool:
        """Returns whether the store is new. Called before :meth:`open`."""
        return self._meta("q_mgr_name") is None

    def kept_time(self) -> str:
        """Returns the clock's state written last; empty for a new store. Called before :meth:`open`."""
        return str(self._meta("own_time") or "")

    def _run_sql(self, statement: str, values: tuple[object, ...] = ()) -> None:
        try:
            self.execute(statement, values)
        except self.error as error:
            raise StoreBroken(f"{statement.split()[0]}: {error}") from error

    def rows(self, statement: str, values: tuple[object, ...] = ()) -> list[Any]:
        """Returns all rows of a statement. Raises StoreBroken."""
        try:
            return list(self.execute(statement, values))
        except self.error as error:
            raise StoreBroken(f"{statement.split()[0]}: {error}") from error

    def _meta(self, key: str) -> Any:
        rows = self.rows(sql.GET_META, (key,))
        return rows[0][0] if rows else None

    def _forget_call(self) -> None:
        """Reads what is known of the rows again, after writes of a call were undone."""
        self._read_numbers()
        if self.reserves_ranges:
            self.ranges.load()
        # The record of the current block may have been undone as well.
        self._block_end = int(self._meta("next_id") or 0)

    # -- looking ----------------------------------------------------------------------------------------

    def find(self, selection: Selection) -> Found:
        """See the port. A queue's first messages come from the read-ahead cache."""
        number = self.numbers.get(selection.q_name)
        if number is None:
            return Found()
        try:
            return self._finder.found(selection, number, self.standing)
        except self.error as error:
            raise StoreBroken(str(error)) from error

    def _ended(self, reservation: int) -> Reservation | None:
        rows = self.rows(sql.RESERVATION, (reservation,)) if 0 < reservation < BEHIND_ALL else []
        return _reservation(rows[0][0]) if rows else None

    def _recorded(self, client_id: str) -> dict[int, UnitOutcome]:
        return self.outcomes.of(client_id)

    def _run(self, run_id: str) -> Run | None:
        return self.ledger.run(run_id)

    def _runs(self, where: dict[str, object], before: str, limit: int) -> Sequence[Run]:
        try:
            return self.ledger.runs(where, before, limit)
        except self.error as error:
            raise StoreBroken(str(error)) from error

    def _held(self, line: tuple[str, str, str], limit: int, *, from_last: bool = False) -> Sequence[str]:
        return self.ledger.held(line, limit, from_last=from_last)

    def _outdated(self, keep_count: int, ended_before_ms: int) -> Sequence[str]:
        return self.ledger.outdated(keep_count, ended_before_ms)

    # -- writing ----------------------------------------------------------------------------------------

    def remove_stretches(self, parts: Iterable[Stretch]) -> None:
        """Removes the rows of all messages of these numbers."""
        self.many(sql.REMOVE_MESSAGE, ((number,) for number in numbers_in(parts)))

    def mark_reserved(self, queue: int, reservation: int, first: int, numbers: Sequence[int]) -> None:
        """Marks the rows of these messages as reserved, with the ordinals from ``first`` on."""
        self.many(sql.RESERVE_MESSAGE, ((reservation, ordinal, n) for ordinal, n in enumerate(numbers, first)))

    def keep_ids_behind(self, number: int) -> None:
        """Records the next block of numbers if this one is behind the present block."""
        if number >= self._block_end:
            self._block_end = number + ID_BLOCK
            self.execute(sql.SET_META, ("next_id", str(self._block_end)))
            self.must_commit = True

    def use_number(self, number: int) -> None:
        """Records that a number is in use that no row here has; starts a new block long before this one is used up."""
        if number >= self._block_end - ID_BLOCK // 2:
            self._keep_block(number)

    @abstractmethod
    def _keep_block(self, number: int) -> None:
        """Records a block of numbers behind this one; durable when the turn has ended."""

    def forget_outcomes(self, before_ms: int) -> None:
        """See the port. A connected client keeps its outcomes, however old."""
        self.outcomes.write_all()
        clients = self.rows(sql.CLIENTS_WITH_OUTCOMES, (self._looked_to, SLICE))
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
        return bool(self.leftovers)

    def remove_leftovers(self) -> None:
        """See the port."""
        self._will_write()
        self.leftovers.remove()

    def _will_write(self) -> None:
        """Prepares the turn for a write that no call asked for and that need not be durable."""


def _reservation(text: str) -> Reservation:
    try:
        return msgspec.json.decode(text, type=Reservation)
    except msgspec.MsgspecError as error:
        raise StoreBroken(f"a reservation cannot be read: {error}") from error


def definition_of(kind: str, text: str) -> AnyDefinition:
    """Returns the definition that a row of the table object holds. Raises StoreBroken."""
    try:
        return cast("AnyDefinition", msgspec.json.decode(text, type=KINDS[ObjectType[kind]]))
    except (KeyError, msgspec.MsgspecError) as error:
        raise StoreBroken(f"the definition of a {kind} cannot be read: {error}") from error
