"""Message rows in memory, by queue in get order. Units of work that put or got a message are given by number.

Plain dictionaries and sorted lists: the reference for every store, also used by the group in memory.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec
from msgspec.structs import replace

from trigmon.mq.descriptors import NO_ID
from trigmon.mq.enums import UnitOutcome
from trigmon.rules.model import changes as c
from trigmon.rules.model.group_completeness import Item, Whole, has_message, reach
from trigmon.rules.model.group_position import SEGMENT
from trigmon.rules.model.handles import Marked
from trigmon.rules.model.stored_messages import (
    SLICE,
    Cursor,
    Form,
    Found,
    Reserved,
    Selection,
    StoredMessage,
    fits,
    follows,
)

Key = tuple[int, int]


class Row(msgspec.Struct):
    """A stored message: ``put_by`` and ``taken_by`` are uncommitted units of work, 0 for none."""

    message: StoredMessage
    put_by: int = 0
    taken_by: int = 0
    is_held: bool = False
    on_backout: bool = False

    @property
    def key(self) -> Key:
        """The place in get order: highest priority first, then arrival."""
        return -self.message.priority, self.message.number


class Rows:
    """All messages, by queue in get order. ``locks``: message numbers and the handles that locked them."""

    def __init__(self, locks: Mapping[int, int]) -> None:
        self.locks = locks
        self.of: dict[str, dict[Key, Row]] = {}
        self.order: dict[str, list[Key]] = {}
        self.notes: list[tuple[str, Row, Row | None]] = []

    def set(self, row: Row) -> None:
        """Writes a row, new or changed."""
        rows = self.of.setdefault(row.message.q_name, {})
        before = rows.get(row.key)
        self.notes.append((row.message.q_name, row, before))
        if before is None:
            insort(self.order.setdefault(row.message.q_name, []), row.key)
        rows[row.key] = row

    def drop(self, row: Row) -> None:
        """Removes a row."""
        q_name = row.message.q_name
        self.notes.append((q_name, row, row))
        del self.of[q_name][row.key]
        order = self.order[q_name]
        del order[bisect_right(order, row.key) - 1]

    def undo(self) -> None:
        """Undoes all changes since the notes were last cleared."""
        for q_name, row, before in reversed(self.notes):
            rows = self.of.setdefault(q_name, {})
            was_there = row.key in rows
            if before is None:
                del rows[row.key]
                self.order[q_name].remove(row.key)
            else:
                rows[row.key] = before
                if not was_there:
                    insort(self.order.setdefault(q_name, []), row.key)
        self.notes.clear()

    def all(self) -> Iterator[Row]:
        """Yields every row of every queue."""
        for rows in self.of.values():
            yield from rows.values()

    def find(self, selection: Selection) -> Found:
        """See the port."""
        if (summary := selection.summary) is not None:
            if summary.lists_expired:
                return Found(expired=self._expired(selection, selection.limit))
            if summary.skip:
                return Found(place=self._place_behind(selection, summary.skip))
            expired_count = len(self._expired(selection, summary.counts_expired))
            ends = self._by_age(selection, summary.oldest_of)[:1] + self._by_age(selection, summary.newest_of)[-1:]
            return Found(ends, expired_count=expired_count)
        if selection.reserved is not None:
            return Found(self._reserved(selection, selection.reserved))
        messages: list[StoredMessage] = []
        expired: list[StoredMessage] = []
        size = 0
        until = selection.until
        for row in self._chosen(selection):
            if until is not None and row.key > (-until.priority, until.number):
                break
            if row.message.has_expired(selection.now):
                if not row.put_by:
                    expired.append(row.message)
                if len(expired) >= SLICE:
                    break
                continue
            messages.append(replace(row.message, is_own=True) if row.put_by else row.message)
            size += len(row.message.data)
            if len(messages) >= selection.limit or size >= selection.limit_bytes:
                break
        if selection.form is Form.GATHERED and messages:
            messages = self._segments(messages[0], selection)
        return Found(tuple(messages), tuple(expired))

    def _place_behind(self, selection: Selection, skip: int) -> Cursor | None:
        """Returns the place so many committed messages further on; None where the queue has groups.

        Where this priority has not so many, they are counted from the lower ones on.
        """
        rows = self.of.get(selection.q_name, {})
        if any(row.message.descriptor.group_id != NO_ID for row in rows.values()):
            return None
        after = selection.after
        there = [key for key in self.order.get(selection.q_name, ()) if not rows[key].put_by and not rows[key].taken_by]
        parts = [there]
        if after is not None:
            same = [key for key in there if key[0] == -after.priority and key[1] > after.number]
            parts = [same, [key for key in there if key[0] > -after.priority]]
        places = (part[skip - 1] for part in parts if len(part) >= skip)
        return next((Cursor(-place[0], place[1]) for place in places), None)

    def _chosen(self, selection: Selection) -> Iterator[Row]:
        """Yields the rows that match the selection, in get order, including expired ones."""
        rows = self.of.get(selection.q_name, {})
        keys = self.order.get(selection.q_name, [])
        if selection.at is not None:
            keys = [(-selection.at.priority, selection.at.number)]
        elif selection.after is not None:
            keys = keys[bisect_right(keys, (-selection.after.priority, selection.after.number)) :]
        for key in keys:
            row = rows.get(key)
            if row is None or not _is_chosen(row, selection) or self._is_locked(row.message.number, selection):
                continue
            if self._is_whole(row.message, selection):
                yield row

    def _is_locked(self, number: int, selection: Selection) -> bool:
        return self.locks.get(number, selection.handle) != selection.handle

    def _group(self, message: StoredMessage, selection: Selection, now: int) -> list[StoredMessage]:
        """Returns the visible items of a message's group, in the order of their places."""
        rows = self.of.get(selection.q_name, {}).values()
        group = [
            row.message
            for row in rows
            if _is_visible(row, selection)
            and not self._is_locked(row.message.number, selection)
            and row.message.descriptor.group_id == message.descriptor.group_id
            and not row.message.has_expired(now)
        ]
        return sorted(group, key=lambda m: (m.descriptor.msg_seq_number, m.descriptor.offset, -m.priority, m.number))

    def _is_whole(self, message: StoredMessage, selection: Selection) -> bool:
        """Returns whether its group is complete enough.

        For an expired message the expired items of its group count, too: it is found and discarded.
        """
        if selection.whole is Whole.NOTHING or message.descriptor.group_id == NO_ID:
            return True
        now = selection.now
        items = [_item(each) for each in self._group(message, selection, 0 if message.has_expired(now) else now)]
        if selection.whole is Whole.GROUP:
            return reach(items)[1] is Whole.GROUP
        return has_message(items, message.descriptor.msg_seq_number)

    def _segments(self, first: StoredMessage, selection: Selection) -> list[StoredMessage]:
        """Returns the segments of a logical message in their order, from this one on."""
        if not first.descriptor.msg_flags & SEGMENT:
            return [first]
        segments = [first]
        for each in self._group(first, selection, selection.now):
            if follows(segments[-1], each):
                segments.append(each)
        return segments

    def _reserved(self, selection: Selection, wanted: Reserved) -> tuple[StoredMessage, ...]:
        rows = self.of.get(selection.q_name, {}).values()
        of = [row.message for row in rows if row.taken_by == wanted.reservation]
        of.sort(key=lambda message: message.ordinal)
        messages: list[StoredMessage] = []
        size = 0
        for message in (message for message in of if wanted.first <= message.ordinal < wanted.end):
            messages.append(message)
            size += len(message.data)
            if len(messages) >= selection.limit or size >= selection.limit_bytes:
                break
        return tuple(messages)

    def _by_age(self, selection: Selection, priorities: Collection[int]) -> tuple[StoredMessage, ...]:
        messages = [
            row.message
            for row in self.of.get(selection.q_name, {}).values()
            if _is_chosen(row, selection)
            and row.message.priority in priorities
            and not row.message.has_expired(selection.now)
        ]
        return tuple(sorted(messages, key=lambda message: message.number))

    def _expired(self, selection: Selection, most: int) -> tuple[StoredMessage, ...]:
        messages = [
            row.message
            for row in self.of.get(selection.q_name, {}).values()
            if row.message.has_expired(selection.now) and not row.put_by and not row.taken_by
        ]
        messages.sort(key=lambda message: (message.expires_ms, message.number))
        return tuple(messages[:most])

    def add(self, change: c.AddMessage) -> None:
        """Adds a message."""
        self.set(Row(change.message, change.unit_id, 0, change.is_held, change.on_backout))

    def take(self, message: StoredMessage, unit_id: int) -> None:
        """Marks a message as got under a unit of work."""
        row = self.row(message)
        self.set(Row(row.message, row.put_by, unit_id, row.is_held, row.on_backout))

    def carry_over(self, marked: Marked, unit_id: int) -> None:
        """Moves a marked message (skip backout) to another unit of work."""
        row = self.row(marked)
        self.set(Row(row.message, row.put_by, unit_id))

    def row(self, message: StoredMessage | Marked) -> Row:
        """Returns the row of a message."""
        return self.at(message.q_name, message.priority, message.number)

    def at(self, q_name: str, priority: int, number: int) -> Row:
        """Returns the row at a place in get order."""
        return self.of[q_name][-priority, number]

    def of_unit(self, unit_id: int, q_names: Iterable[str]) -> Iterator[Row]:
        """Yields the rows on these queues that a unit of work put or got."""
        for q_name in q_names:
            yield from [row for row in self.of.get(q_name, {}).values() if unit_id in (row.put_by, row.taken_by)]

    def settle(self, row: Row, unit_id: int, outcome: UnitOutcome) -> Row | None:
        """Writes a row's state after the end of its unit of work and returns it; None: the row is removed."""
        committed = outcome is UnitOutcome.COMMITTED
        left: Row | None = None
        if committed and row.taken_by == unit_id:
            pass
        elif row.put_by == unit_id:
            if committed or row.on_backout:
                left = Row(row.message)
        else:
            left = Row(once_more(row.message), row.put_by)
        if left is None:
            self.drop(row)
        else:
            self.set(left)
        return left

    def drop_all(self, q_name: str) -> None:
        """Removes all rows of a queue."""
        for row in list(self.of.get(q_name, {}).values()):
            self.drop(row)


def _is_visible(row: Row, selection: Selection) -> bool:
    return not row.taken_by and not row.is_held and row.put_by in (0, selection.unit_id)


def _is_chosen(row: Row, selection: Selection) -> bool:
    if row.put_by and selection.own_persistent and not row.message.is_persistent:
        return False
    return _is_visible(row, selection) and fits(selection, row.message.descriptor)


def _item(message: StoredMessage) -> Item:
    descriptor = message.descriptor
    return Item(descriptor.msg_seq_number, descriptor.offset, len(message.data), descriptor.msg_flags)


def once_more(message: StoredMessage, by: int = 1) -> StoredMessage:
    """Returns the message with its backout count raised ``by`` so much."""
    descriptor = message.descriptor
    return replace(message, descriptor=replace(descriptor, backout_count=descriptor.backout_count + by))
