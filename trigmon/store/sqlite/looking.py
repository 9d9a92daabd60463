"""Looking for messages: which statement answers a selection, and what is picked from its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from zlib import crc32

import msgspec
from msgspec.structs import replace

from trigmon.mq.descriptors import NO_ID, MessageDescriptor
from trigmon.rules.facts import SLICE, Selection, StoredMessage
from trigmon.store.sqlite import statements as sql

LOST = MessageDescriptor()
NO_LOCKS: Mapping[int, int] = {}
_decode = msgspec.msgpack.Decoder(MessageDescriptor).decode


def look_ups(selection: Selection, number: int) -> Iterable[tuple[str, tuple[object, ...]]]:
    """The statements that answer a selection among committed messages, in get order."""
    if selection.at is not None:
        yield sql.FIND_AT, (number, selection.at.priority, selection.at.number)
    elif selection.msg_id is not None and selection.correl_id is not None:
        correl_id = None if selection.correl_id == NO_ID else selection.correl_id
        yield sql.FIND_BOTH_IDS, (number, selection.msg_id, correl_id)
    elif selection.msg_id is not None:
        yield sql.FIND_MSG_ID, (number, selection.msg_id)
    elif selection.correl_id == NO_ID:
        yield sql.FIND_NO_CORREL_ID, (number,)
    elif selection.correl_id is not None:
        yield sql.FIND_CORREL_ID, (number, selection.correl_id)
    elif selection.after is not None:
        yield sql.FIND_AFTER_SAME, (number, selection.after.priority, selection.after.number)
        yield sql.FIND_AFTER_LOWER, (number, selection.after.priority)
    else:
        yield sql.FIND_FIRST, (number,)


class Picked:
    """The messages picked so far: what the statement's index could not decide is checked here, row by row."""

    def __init__(self, selection: Selection, locks: Mapping[int, int] = NO_LOCKS) -> None:
        self._selection = selection
        self._locks = locks
        self._is_own = False
        self._size = 0
        self._own: list[StoredMessage] = []
        self.messages: list[StoredMessage] = []
        self.expired: list[StoredMessage] = []
        self.damaged: list[StoredMessage] = []

    @property
    def is_full(self) -> bool:
        """Whether the look has what it wanted, or met as many expired messages as one slice may hold."""
        return len(self.messages) >= self._selection.limit or len(self.expired) >= SLICE

    def start(self, is_own: bool) -> None:
        """The rows that follow are the unit's own uncommitted puts, or committed messages."""
        self._is_own = is_own
        self._size = 0

    def take(self, row: tuple[Any, ...]) -> bool:
        """Picks a row if it fits; says whether further rows are wanted."""
        if self._is_hidden(row):
            return True
        message = _message(row, self._selection.q_name)
        if message is None:
            if self._is_own:
                return True
            self.damaged.append(StoredMessage(row[0], self._selection.q_name, row[1], bool(row[2]), LOST, b""))
            return len(self.damaged) < SLICE
        if not self._fits(message):
            return True
        if message.expires_ms and message.expires_ms <= self._selection.now:
            if not self._is_own:
                self.expired.append(message)
            return len(self.expired) < SLICE
        picked = self._own if self._is_own else self.messages
        picked.append(message)
        self._size += len(message.data)
        return len(picked) < self._selection.limit and self._size < self._selection.limit_bytes

    def merge(self) -> None:
        """The unit's own messages take their places among the committed ones."""
        own = self._own
        if len(self.expired) >= SLICE:
            # The look ended at the last of these, and what lies behind it may come before our own.
            own = [message for message in own if _place(message) < _place(self.expired[-1])]
        if own:
            self.messages = sorted([*self.messages, *own], key=_place)[: self._selection.limit]

    def _is_hidden(self, row: tuple[Any, ...]) -> bool:
        """Whether another handle has locked it, or it is an own one of which only the persistent are asked for."""
        mine = self._selection.handle
        if self._locks.get(row[0], mine) != mine:
            return True
        return self._is_own and self._selection.own_persistent and not row[2]

    def _fits(self, message: StoredMessage) -> bool:
        selection, descriptor = self._selection, message.descriptor
        if selection.msg_id is not None and descriptor.msg_id != selection.msg_id:
            return False
        if selection.correl_id is not None and descriptor.correl_id != selection.correl_id:
            return False
        place = _place(message)
        if selection.after is not None and place <= (-selection.after.priority, selection.after.number):
            return False
        at = selection.at
        return at is None or place == (-at.priority, at.number)


def _place(message: StoredMessage) -> tuple[int, int]:
    return -message.priority, message.number


def _message(row: tuple[Any, ...], q_name: str) -> StoredMessage | None:
    """A row as a message, None when it is not what was written."""
    number, priority, persistent, expires_ms, backout_count, head, data, checksum = row[:8]
    if crc32(data, crc32(head)) != checksum:
        return None
    try:
        descriptor = _decode(head)
    except msgspec.MsgspecError:
        return None
    if backout_count != descriptor.backout_count:
        descriptor = replace(descriptor, backout_count=backout_count)
    return StoredMessage(number, q_name, priority, bool(persistent), descriptor, data, expires_ms)
