"""The messages that a look-up picks from rows: decodes each row and checks the conditions that no index decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from trigmon.checksum import crc32
from trigmon.mq.descriptors import NO_ID, MessageDescriptor
from trigmon.rules.model.group_completeness import Whole
from trigmon.rules.model.stored_messages import SLICE, Found, Selection, StoredMessage, fits

Row = tuple[Any, ...]
LOST = MessageDescriptor()
"""Stands for the descriptor of a damaged message."""
_decode = msgspec.msgpack.Decoder(MessageDescriptor).decode


class Picked:
    """The messages picked so far, of one look-up."""

    def __init__(
        self,
        selection: Selection,
        locks: Mapping[int, int],
        is_whole: Callable[[MessageDescriptor, int], bool] = lambda descriptor, now: True,
    ) -> None:
        self._selection = selection
        self._locks = locks
        self._group_is_whole = is_whole
        self._takes_any = selection.is_anything
        until = selection.until
        self._end = (-until.priority, until.number) if until is not None else None
        lists_expired = selection.summary is not None and selection.summary.lists_expired
        self._most_expired = selection.limit if lists_expired else SLICE
        self._is_own = False
        self._size = 0
        self._own: list[StoredMessage] = []
        self.messages: list[StoredMessage] = []
        self.expired: list[StoredMessage] = []
        self.damaged: list[StoredMessage] = []

    @property
    def found(self) -> Found:
        """The result of the look-up."""
        return Found(tuple(self.messages), tuple(self.expired), damaged=tuple(self.damaged))

    def start_own(self) -> None:
        """Begins the rows of the unit's own uncommitted puts, after those of committed messages."""
        self._is_own = True
        self._size = 0

    @property
    def takes_all(self) -> bool:
        """Whether a row is picked by its own columns alone, without locks or further conditions."""
        return self._takes_any and not self._locks and not self._is_own

    def take_all(self, rows: Iterable[Row]) -> None:
        """Picks each row as :meth:`take` does, until enough are found. The fast path, a microsecond a row."""
        selection, messages = self._selection, self.messages
        q_name, now, limit, limit_bytes = selection.q_name, selection.now, selection.limit, selection.limit_bytes
        for row in rows:
            message = message_of(row, q_name)
            if message is None or message.has_expired(now):
                if not self.take(row):
                    return
                continue
            messages.append(message)
            self._size += len(message.data)
            if len(messages) >= limit or self._size >= limit_bytes:
                return

    def take(self, row: Row) -> bool:
        """Picks a row if it matches; returns whether more rows are wanted."""
        if (self._locks or self._is_own) and self._is_hidden(row):
            return True
        message = message_of(row, self._selection.q_name)
        if message is None:
            if self._is_own:
                return True
            self.damaged.append(StoredMessage(row[0], self._selection.q_name, row[1], bool(row[2]), LOST, b""))
            return len(self.damaged) < SLICE
        return self._take(message)

    def take_known(self, message: StoredMessage) -> bool:
        """Picks a committed message that was read before, as :meth:`take` does."""
        if self._locks and is_locked(message.number, self._selection, self._locks):
            return True
        return self._take(message)

    def _take(self, message: StoredMessage) -> bool:
        if self._end is not None and _place(message) > self._end:
            return False
        if not self._takes_any and not self._fits(message):
            return True
        if message.has_expired(self._selection.now):
            if not self._is_own:
                self.expired.append(message)
            return len(self.expired) < self._most_expired
        picked = self._own if self._is_own else self.messages
        picked.append(replace(message, is_own=True) if self._is_own else message)
        self._size += len(message.data)
        return len(picked) < self._selection.limit and self._size < self._selection.limit_bytes

    def merge(self) -> None:
        """Sorts the unit's own messages among the committed ones."""
        own = self._own
        if len(self.expired) >= SLICE:
            # The look-up ended at the last of these; unread messages behind it may come before the own ones.
            own = [message for message in own if _place(message) < _place(self.expired[-1])]
        if own:
            self.messages = sorted([*self.messages, *own], key=_place)[: self._selection.limit]
            if len(self.messages) == self._selection.limit:
                # This look-up does not discard messages that expired behind its last one.
                last = _place(self.messages[-1])
                self.expired = [message for message in self.expired if _place(message) < last]

    def _is_hidden(self, row: Row) -> bool:
        """Returns whether another handle locked the row, or it is an own nonpersistent put that is not wanted."""
        if is_locked(row[0], self._selection, self._locks):
            return True
        return self._is_own and self._selection.own_persistent and not row[2]

    def _fits(self, message: StoredMessage) -> bool:
        selection, descriptor = self._selection, message.descriptor
        if not fits(selection, descriptor) or not self._is_whole(message):
            return False
        place = _place(message)
        if selection.after is not None and place <= (-selection.after.priority, selection.after.number):
            return False
        at = selection.at
        return at is None or place == (-at.priority, at.number)

    def _is_whole(self, message: StoredMessage) -> bool:
        """Returns whether its group is complete enough.

        For an expired message the expired items of its group count, too: it is found and discarded.
        """
        descriptor = message.descriptor
        if self._selection.whole is Whole.NOTHING or descriptor.group_id == NO_ID:
            return True
        now = self._selection.now
        return self._group_is_whole(descriptor, 0 if message.has_expired(now) else now)


def is_locked(number: int, selection: Selection, locks: Mapping[int, int]) -> bool:
    """Returns whether another handle has locked the message."""
    return locks.get(number, selection.handle) != selection.handle


def _place(message: StoredMessage) -> tuple[int, int]:
    return -message.priority, message.number


def message_of(row: Row, q_name: str, ordinal: int = -1) -> StoredMessage | None:
    """Returns a row as a message; None if the row is damaged."""
    number, priority, persistent, expires_ms, backout_count, head, data, checksum = row[:8]
    if not (type(priority) is type(expires_ms) is type(backout_count) is int):
        return None
    try:
        if crc32(data, crc32(head)) != checksum:
            return None
        descriptor = _decode(head)
    except (msgspec.MsgspecError, TypeError):
        return None
    if backout_count != descriptor.backout_count:
        descriptor = replace(descriptor, backout_count=backout_count)
    return StoredMessage(number, q_name, priority, bool(persistent), descriptor, data, expires_ms, False, ordinal)
