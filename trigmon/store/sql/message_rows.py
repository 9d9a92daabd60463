"""Writes of message rows: the statements that each change of a message runs. Counts of queues are kept elsewhere.

Queues, units of work and handles are given by the numbers of the store that keeps the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any
from zlib import crc32

import msgspec

from trigmon.mq.descriptors import NO_ID
from trigmon.rules.model import changes as c
from trigmon.rules.model.group_completeness import START
from trigmon.rules.model.handles import UnitFacts
from trigmon.rules.model.stored_messages import StoredMessage
from trigmon.store.sql import statements as sql
from trigmon.store.sql.group_progress import Groups
from trigmon.store.sql.leftovers import COMMITTED, GOT, PUT, RETURNED

_encode = msgspec.msgpack.Encoder().encode


def row_of(change: c.AddMessage, queue: int, number: int, unit: int) -> tuple[object, ...]:
    """Returns the values of :data:`sql.ADD_MESSAGE`; ``unit`` 0 is none."""
    descriptor = change.descriptor
    head = _encode(descriptor)
    return (
        number,
        queue,
        change.priority,
        int(change.is_persistent),
        unit or None,
        (2 if change.on_backout else 1) if change.is_held else 0,
        change.expires_ms,
        descriptor.backout_count,
        descriptor.msg_id,
        None if descriptor.correl_id == NO_ID else descriptor.correl_id,
        head,
        change.data,
        crc32(change.data, crc32(head)),
    )


def stretches(first: int, numbers: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yields ranges of consecutive numbers: what makes ordinals of them (from ``first`` on), the first, the last."""
    begin = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            yield first + begin - numbers[begin], numbers[begin], numbers[at - 1]
            begin = at


class Messages:
    """Writes messages, and the completeness of their groups. ``execute`` runs a statement and returns its rows."""

    def __init__(self, execute: Callable[..., Iterable[Any]]) -> None:
        self._execute = execute
        self.groups = Groups(execute)

    def add(self, change: c.AddMessage, queue: int, number: int, unit: int) -> None:
        """Adds a message."""
        descriptor, row = change.descriptor, row_of(change, queue, number, unit)
        if descriptor.group_id == NO_ID:
            self._execute(sql.ADD_MESSAGE, row)
            return
        seq, offset = descriptor.msg_seq_number, descriptor.offset
        item = (descriptor.group_id, seq, offset, descriptor.msg_flags, int((seq, offset) == START))
        self._execute(sql.ADD_ITEM, (*row, *item))
        self.groups.came(queue, descriptor.group_id, (-change.priority, number), (seq, offset), unit)

    def take(self, message: StoredMessage, queue: int, unit: int) -> None:
        """Marks a message as got under a unit of work."""
        self._execute(sql.TAKE_MESSAGE, (unit, message.number))
        self.groups.took(queue, message, unit)

    def carry_over(self, number: int, unit: int) -> None:
        """Moves a marked message (skip backout) to another unit of work."""
        self._execute(sql.TAKE_MESSAGE, (unit, number))
        self.groups.carried(unit)

    def remove(self, message: StoredMessage, queue: int) -> None:
        """Removes a message."""
        self._execute(sql.REMOVE_MESSAGE, (message.number,))
        self.groups.took(queue, message, 0)

    def set_aside(self, message: StoredMessage, queue: int) -> None:
        """Takes a damaged message off its queue; its row stays."""
        self._execute(sql.SET_ASIDE, (message.number,))
        self.groups.set_aside(queue, message.number)

    def end_unit(self, unit: UnitFacts, number: int, *, is_commit: bool, left: Container[str] = ()) -> None:
        """Commits or backs out a unit's puts and gets, except the parts ``left`` for later; releases held messages."""
        ends: tuple[str, ...]
        groups = self.groups.before_end(number, is_commit=is_commit)
        if is_commit:
            ends = (
                sql.COMMIT_GETS if unit.gets and GOT not in left else "",
                sql.COMMIT_PUTS if unit.puts and COMMITTED not in left else "",
            )
        else:
            ends = (
                sql.BACK_OUT_PUTS if unit.puts and PUT not in left else "",
                sql.RELEASE_HELD if unit.held and PUT not in left else "",
                sql.BACK_OUT_GETS if unit.gets and RETURNED not in left else "",
            )
        for statement in filter(None, ends):
            self._execute(statement, (number,))
        for group, place in groups.items():
            self.groups.changed(group, place, has_new_heads=place == START)
