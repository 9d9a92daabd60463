"""Puts of a SQLite store, many at a time: those that are alike, those that a unit of work commits, and their rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import apsw

from trigmon.mq.descriptors import NO_ID
from trigmon.rules.model import changes as c
from trigmon.rules.model.state import Standing
from trigmon.rules.model.stored_messages import Stretch
from trigmon.rules.model.transitions import follow_alike_puts
from trigmon.store.port import StoreBroken
from trigmon.store.sql import statements as sql
from trigmon.store.sql.leftovers import Leftovers
from trigmon.store.sql.read_ahead import Ahead
from trigmon.store.sql.row_writes import Messages, row_of
from trigmon.store.sqlite.durable_turns import DurableTurns
from trigmon.store.sqlite.salvage import DAMAGE
from trigmon.store.sqlite.turn_log import LastTurn
from trigmon.store.sqlite.unit_puts import UnitPuts


class PutStore(Protocol):
    """The part of a store that its puts concern. ``last_turn`` is the file of that name."""

    turns: DurableTurns
    unit_puts: UnitPuts
    last_turn: LastTurn
    leftovers: Leftovers
    ahead: Ahead
    standing: Standing
    messages: Messages

    @property
    def numbers(self) -> Mapping[str, int]:
        """The numbers of the queues."""

    def write(self, change: c.AnyChange) -> None:
        """Writes a change: to rows, or to memory until its rows are due."""

    def keep_ids_behind(self, number: int) -> None:
        """Records that this number of a message is in use."""

    def many(self, statement: str, values: Iterable[tuple[object, ...]]) -> None:
        """Runs the same write with each of the values."""

    def remove_stretches(self, parts: Iterable[Stretch]) -> None:
        """Removes the rows of all messages of these numbers."""


def apply_alike(store: PutStore, puts: list[c.AddMessage], can_be_undone: bool) -> None:
    """Writes puts that are alike, many at a time where none of them needs a row now."""
    if can_be_undone:
        store.turns.begin_call()
    if puts[0].unit_id:
        are_kept = store.unit_puts.keeps(puts, store.leftovers.at_once)
    elif are_kept := store.turns.young.keep_all(puts):
        store.keep_ids_behind(puts[-1].number)
        store.turns.add_committed(puts)
    for put in () if are_kept else puts:
        store.write(put)
    store.ahead.follow_alike_puts(puts)
    follow_alike_puts(store.standing, puts)


def add_puts(store: PutStore, puts: Sequence[c.AddMessage], unit_id: int) -> None:
    """Adds the puts of a unit of work: with rows as uncommitted ones, or (0) as committed messages."""
    if unit_id:
        add_rows(store, puts, unit_id)
        for put in puts:
            store.turns.add(put)
        return
    plain, items = _by_kind(puts)
    if items:
        add_rows(store, items, 0)
    if not store.turns.young.keep_all(plain):
        for put in plain:
            if not store.turns.young.keep(put):
                add_rows(store, (put,), 0)
    store.turns.add_committed(puts)


def add_rows(store: PutStore, puts: Sequence[c.AddMessage], unit_id: int) -> None:
    """Writes the rows of puts: of a unit of work, or (0) of committed messages. Raises StoreBroken."""
    store.turns.begin()
    with only_in_journal(store):
        plain, items = _by_kind(puts)
        store.many(sql.ADD_MESSAGE, [row_of(put, store.numbers[put.q_name], put.number, unit_id) for put in plain])
        if unit_id:
            for put in items:
                store.messages.add(put, store.numbers[put.q_name], put.number, unit_id)
        elif items:
            store.messages.add_items(items, store.numbers, store.many)


@contextmanager
def only_in_journal(store: PutStore) -> Iterator[None]:
    """Ends the store where a write fails of what is nowhere but in the journal. Raises StoreBroken."""
    try:
        yield
    except apsw.Error as error:
        if isinstance(error, DAMAGE):
            store.last_turn.set_damaged(True)  # the next start checks everything
        # With its cause it would be taken for damage that can be mended.
        raise StoreBroken(f"{type(error).__name__}: {error}") from None


def _by_kind(puts: Sequence[c.AddMessage]) -> tuple[list[c.AddMessage], list[c.AddMessage]]:
    """Returns the messages outside groups, and those of groups."""
    plain: list[c.AddMessage] = []
    items: list[c.AddMessage] = []
    for put in puts:
        (plain if put.descriptor.group_id == NO_ID else items).append(put)
    return plain, items
