"""Look-up of messages: which statements a selection runs, and in which order it reads their rows."""

from __future__ import annotations

import heapq
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from itertools import islice

from msgspec.structs import replace

from trigmon.checksum import crc32
from trigmon.mq.descriptors import NO_ID, MessageDescriptor
from trigmon.rules.model.group_completeness import START, Whole, has_message, reach
from trigmon.rules.model.group_position import SEGMENT
from trigmon.rules.model.stored_messages import (
    AsStored,
    Cursor,
    Form,
    Found,
    Reserved,
    ReservedNumbers,
    Selection,
    StoredMessage,
    follows,
)
from trigmon.store.sql import statements as sql
from trigmon.store.sql.group_progress import Place, items_from
from trigmon.store.sql.leftovers import LOOKS
from trigmon.store.sql.picked_messages import LOST, Picked, Row, is_locked, message_of
from trigmon.store.sql.reserved_ranges import Range, numbers_of, parts_of
from trigmon.store.sql.row_stream import OpenRows, RowStream, Statement

_PLAIN = ["plain"]
_RESTS = ("rest", "rest of whole")


class Look:
    """One look-up of messages. ``queue`` is the queue's number.

    ``locks``: locked messages and the handles that locked them. ``has_groups``: the queue may hold messages of groups.
    ``has_own``: the unit of work has put to the queue. ``available``: the units of work with available messages that
    are not rewritten yet (none of a group), and what they had done to them. ``ranges``: what is reserved of the queue
    without marks of its rows; ``open_rows`` leaves those out where available messages are looked for.
    """

    def __init__(
        self,
        open_rows: OpenRows,
        selection: Selection,
        queue: int,
        locks: Mapping[int, int],
        *,
        has_groups: bool,
        has_own: bool,
        available: Sequence[tuple[str, int]] = (),
        ranges: Sequence[Range] = (),
    ) -> None:
        self._open_rows = open_rows
        self._locks = locks
        self._selection = selection
        self._queue = queue
        self._kinds = _kinds(selection, has_groups, has_own)
        self._has_own = has_own
        self._available = available
        self._ranges = ranges
        # The result for a logical message or a group holds for all its parts.
        self._known: dict[tuple[bytes, int, int], bool] = {}
        self._marks_hold: bool | None = None

    def found(self) -> Found:
        """Returns the messages that match the selection, in get order."""
        if (summary := self._selection.summary) is not None:
            if summary.lists_expired:
                return self._expired()
            if summary.skip:
                return Found(place=self._place_behind(summary.skip))
            oldest = self._firsts(summary.oldest_of, sql.FIND_FIRST_OF)[:1]
            newest = self._firsts(summary.newest_of, sql.FIND_LAST_OF)[-1:]
            return Found(oldest + newest, expired_count=self._count_expired(summary.counts_expired))
        if (wanted := self._selection.reserved) is not None:
            if self._selection.form is Form.NUMBERS:
                return Found(numbers=self._numbers(wanted))
            stored = self._as_stored(wanted) if self._selection.form is Form.AS_STORED else None
            return self._reserved(wanted) if stored is None else Found(as_stored=stored)
        picked = Picked(self._selection, self._locks, self._is_whole)
        streams = self._with_available(self._streams())
        if len(streams) == 1:
            self._pick(streams[0], picked)
        else:
            self._pick_merged([self._rows(stream) for stream in streams], picked)
        if self._has_own:
            picked.start_own()
            self._pick([(sql.FIND_OWN, (self._selection.unit_id, self._queue))], picked)
            picked.merge()
        found = picked.found
        return self._gathered(found) if self._selection.form is Form.GATHERED and found.messages else found

    def _expired(self) -> Found:
        """Returns expired messages, locked ones included: a lock keeps no message alive (seed 003, note 6).

        Look-ups of this kind begin when all deferred rows of units of work are rewritten.
        """
        picked = Picked(self._selection, {}, self._is_whole)
        self._pick([(sql.FIND_EXPIRED, (self._queue, self._selection.now))], picked)
        found = picked.found
        # PostgreSQL gives messages that expire at one moment in any order; their reports go in the order of the puts.
        return replace(found, expired=tuple(sorted(found.expired, key=lambda it: (it.expires_ms, it.number))))

    def _reserved(self, wanted: Reserved) -> Found:
        """Returns the messages of a reservation with these ordinals, in their order."""
        selection = self._selection
        messages: list[StoredMessage] = []
        damaged: list[StoredMessage] = []
        size = 0
        with closing(self._rows(self._reserved_statements(wanted, sql.RESERVED, sql.RESERVED_STRETCH))) as rows:
            for row in rows:
                message = message_of(row, selection.q_name, row[-1])
                if message is None:
                    lost = StoredMessage(row[0], selection.q_name, row[1], bool(row[2]), LOST, b"", ordinal=row[-1])
                    damaged.append(lost)
                else:
                    messages.append(message)
                    size += len(message.data)
                if len(messages) + len(damaged) >= selection.limit or size >= selection.limit_bytes:
                    break
        return Found(tuple(messages), damaged=tuple(damaged))

    def _as_stored(self, wanted: Reserved) -> AsStored | None:
        """Returns these messages as they are stored; None if one of them is damaged, expires, or was backed out."""
        limit, limit_bytes = self._selection.limit, self._selection.limit_bytes
        stored = AsStored([], [], [])
        ordinals, descriptors, bodies = stored
        size = 0
        rows = self._rows(self._reserved_statements(wanted, sql.STORED, sql.STORED_STRETCH))
        with closing(rows), suppress(TypeError):  # of a damaged row
            for descriptor, data, checksum, ordinal, other in rows:
                if other != 0 or crc32(data, crc32(descriptor)) != checksum:
                    return None
                ordinals.append(ordinal)
                descriptors.append(descriptor)
                bodies.append(data)
                size += len(data)
                if len(ordinals) >= limit or size >= limit_bytes:
                    break
            return stored
        return None

    def _numbers(self, wanted: Reserved) -> ReservedNumbers:
        """Returns the numbers of these messages; those of ranges without a look at any row."""

        def marked(first: int, end: int, most: int) -> list[tuple[int, int]]:
            with closing(self._rows([(sql.NUMBERS, (wanted.reservation, first, end))])) as rows:
                return list(islice(rows, most))

        return numbers_of(wanted, self._ranges, self._selection.limit, marked)

    def _reserved_statements(self, wanted: Reserved, marked: str, stretch: str) -> list[Statement]:
        """Returns the statements for these ordinals: ``stretch`` for those of a range, ``marked`` for the others."""
        statements: list[Statement] = []
        for first, end, of in parts_of(wanted, self._ranges):
            by = of.ordinal - of.first if of else 0
            values = (by, first - by, end - 1 - by, of.queue) if of else (wanted.reservation, first, end)
            statements.append((stretch if of else marked, values))
        return statements

    def _place_behind(self, skip: int) -> Cursor | None:
        """Returns the place so many messages further on; None where the queue has groups.

        Where this priority has not so many, they are counted from the lower ones on. Rows that are not rewritten yet
        are not counted.
        """
        after, rest = self._selection.after, skip - 1
        if self._kinds != _PLAIN:
            return None
        if self._ranges:
            return self._place_among_ranges(skip)
        statements: list[Statement] = [(sql.PLACE_FIRST, (self._queue, rest))]
        if after is not None:
            statements = [
                (sql.PLACE_AFTER_SAME, (self._queue, after.priority, after.number, rest)),
                (sql.PLACE_AFTER_LOWER, (self._queue, after.priority, rest)),
            ]
        with closing(self._rows(statements)) as rows:
            return next((Cursor(priority, number) for priority, number in rows), None)

    def _place_among_ranges(self, skip: int) -> Cursor | None:
        """Returns the same place where rows are reserved that are not marked: the entries of the index are counted."""
        after = self._selection.after
        parts: list[list[Statement]] = [[(sql.PASS_FIRST, (self._queue,))]]
        if after is not None:
            parts = [
                [(sql.PASS_AFTER_SAME, (self._queue, after.priority, after.number))],
                [(sql.PASS_AFTER_LOWER, (self._queue, after.priority))],
            ]
        for statements in parts:
            with closing(self._rows(statements)) as rows:
                for number, priority in islice(rows, skip - 1, None):
                    return Cursor(priority, number)
        return None

    def _count_expired(self, most: int) -> int:
        if not most:
            return 0
        streams = self._with_available([[(sql.EXPIRED, (self._queue, self._selection.now))]])
        with closing(self._rows([statement for stream in streams for statement in stream])) as rows:
            return sum(1 for _ in islice(rows, most))

    def _firsts(self, priorities: Iterable[int], finds: Mapping[str, str]) -> tuple[StoredMessage, ...]:
        """Returns the first committed message that a statement finds of each priority, in the order of arrival."""
        firsts: list[StoredMessage] = []
        for priority in priorities:
            of_kinds: list[list[Statement]] = [[(finds[kind], (self._queue, priority))] for kind in self._kinds]
            for stream in self._with_available(of_kinds):
                picked = Picked(self._selection, {}, self._is_whole)  # without locks: a locked message counts, too
                self._pick(stream, picked)
                firsts += picked.messages
        return tuple(sorted(firsts, key=lambda message: message.number))

    def _pick(self, statements: list[Statement], picked: Picked) -> None:
        """Reads rows, one statement after the other, until enough are found; reads no row more."""
        with closing(self._rows(statements)) as rows:
            if picked.takes_all:
                picked.take_all(rows)
                return
            for row in rows:
                if not picked.take(row):
                    return

    def _pick_merged(self, streams: list[RowStream], picked: Picked) -> None:
        """Reads rows of several streams, each in get order, merged until enough are found."""
        try:
            for row in heapq.merge(*streams, key=lambda row: (-row[1], row[0])):
                if not picked.take(row):
                    break
        finally:
            for stream in streams:
                stream.close()

    def _streams(self) -> list[list[Statement]]:
        """Returns the statements for committed rows that may match: one list, or a list for each kind of message."""
        selection = self._selection
        if selection.at is not None:
            return [[(sql.FIND_AT, (self._queue, selection.at.priority, selection.at.number))]]
        if selection.group_id not in (None, NO_ID):  # those in no group are not listed by it
            return [self._of_group()]
        named = self._by_ids()
        if named is not None:
            return [self._behind(*named)]
        return [self._behind(*self._narrowed(kind)) for kind in self._kinds]

    def _with_available(self, streams: list[list[Statement]]) -> list[list[Statement]]:
        """Returns these look-ups, and the same ones among the deferred rows of units of work."""
        return streams + [
            [(LOOKS[what][statement], (queue, unit, *others)) for statement, (queue, *others) in stream]
            for what, unit in self._available
            for stream in streams
            if all(statement in LOOKS[what] for statement, _ in stream)
        ]

    def _narrowed(self, kind: str) -> tuple[str, tuple[object, ...]]:
        """Returns a kind narrowed by columns, so that fewer messages are read, and the values of its statement."""
        selection = self._selection
        place = selection.msg_seq_number, selection.offset
        values: tuple[object, ...] = (self._queue,)
        if kind in _RESTS and place != (None, None):
            kind, values = f"{kind} at", (self._queue, *place)
        return (f"{kind} alone" if selection.correl_id == NO_ID else kind), values

    def _of_group(self) -> list[Statement]:
        """Returns the statements for one group: all items, those of a logical message, or those at one place."""
        selection, queue = self._selection, self._queue
        named = queue, selection.group_id
        if selection.msg_seq_number is None:
            return self._behind("group", named)
        offset = 0 if selection.starts is Whole.MESSAGE else selection.offset
        if offset is not None:
            return [(sql.FIND_ITEM, (*named, selection.msg_seq_number, offset))]
        with closing(self._rows([(sql.PLACES_OF, (*named, selection.msg_seq_number))])) as rows:
            places = sorted((-priority, number) for priority, number in rows)
        return [(sql.FIND_AT, (queue, -priority, number)) for priority, number in places]

    def _by_ids(self) -> tuple[str, tuple[object, ...]] | None:
        """Returns the kind of look-up for messages named by ids, and the ids; None if no id is named."""
        selection, queue = self._selection, self._queue
        if selection.msg_id is not None and selection.correl_id is not None:
            correl_id = None if selection.correl_id == NO_ID else selection.correl_id
            return "both ids", (queue, selection.msg_id, correl_id)
        if selection.msg_id is not None:
            return "msg_id", (queue, selection.msg_id)
        if selection.correl_id not in (None, NO_ID):
            return "correl_id", (queue, selection.correl_id)
        return None

    def _behind(self, kind: str, values: tuple[object, ...]) -> list[Statement]:
        """Returns the statements of a kind, from the first message or from behind the selection's place."""
        after = self._selection.after
        if after is None:
            return [(sql.FIND_FIRST[kind], values)]
        return [
            (sql.FIND_AFTER_SAME[kind], (*values, after.priority, after.number)),
            (sql.FIND_AFTER_LOWER[kind], (*values, after.priority)),
        ]

    def _rows(self, statements: list[Statement]) -> RowStream:
        return RowStream(self._open_rows, statements)

    def _is_whole(self, descriptor: MessageDescriptor, now: int) -> bool:
        """Returns whether this message's group is as complete as the selection asks for."""
        if self._is_marked():
            return True
        whole = self._selection.whole
        seq = START[0] if whole is Whole.GROUP else descriptor.msg_seq_number
        key = descriptor.group_id, seq, now
        if key not in self._known:
            self._known[key] = self._has_all(descriptor.group_id, seq, now)
        return self._known[key]

    def _is_marked(self) -> bool:
        """Returns whether each group found is whole by its mark alone.

        That is so where only marked groups are looked for, and nothing is there that a mark does not know of: an own
        put, a lock, an expired item.
        """
        if self._marks_hold is None:
            selection = self._selection
            by_kind = selection.at is None and selection.group_id in (None, NO_ID) and self._by_ids() is None
            is_as_marked = by_kind and selection.whole is Whole.GROUP and not self._has_own and not self._locks
            self._marks_hold = is_as_marked and not self._count_expired(1)
        return self._marks_hold

    def _has_all(self, group_id: bytes, seq: int, now: int) -> bool:
        """Returns whether a group, or its logical message of this number, is complete."""

        def rows_from(place: Place) -> Generator[Row, None, None]:
            values = (self._queue, self._selection.unit_id, now, group_id, *place)
            with closing(self._rows([(sql.GROUP_FROM, values)])) as rows:
                yield from (row for row in rows if not is_locked(row[4], self._selection, self._locks))

        with closing(items_from(rows_from, (seq, 0))) as items:
            if self._selection.whole is Whole.GROUP:
                return reach(items)[1] is Whole.GROUP
            return has_message(items, seq)

    def _gathered(self, found: Found) -> Found:
        """Returns the logical message found: its segments in their order, from the first one found."""
        first = found.messages[0]
        descriptor = first.descriptor
        if not descriptor.msg_flags & SEGMENT:
            return found
        selection = self._selection
        values = (self._queue, selection.unit_id, selection.now, descriptor.group_id, descriptor.msg_seq_number)
        segments = [first]
        with closing(self._rows([(sql.SEGMENTS, values)])) as rows:
            for row in rows:
                if is_locked(row[0], selection, self._locks):
                    continue
                segment = message_of(row, selection.q_name)
                if segment is None:
                    damaged = StoredMessage(row[0], selection.q_name, row[1], bool(row[2]), LOST, b"")
                    return replace(found, messages=(), damaged=(*found.damaged, damaged))
                if follows(segments[-1], segment):
                    segments.append(segment)
        return replace(found, messages=tuple(segments))


def _kinds(selection: Selection, has_groups: bool, has_own: bool) -> list[str]:
    """Returns the kinds of messages that a selection reads.

    With uncommitted puts of the own unit more groups may be complete than are marked. Messages in no group and first
    items are at the first place of a group, all other items elsewhere.
    """
    is_elsewhere = selection.msg_seq_number not in (None, START[0]) or selection.offset not in (None, START[1])
    if not has_groups:
        return [] if is_elsewhere else _PLAIN
    lowest = Whole.NOTHING if has_own else selection.whole
    rest = _RESTS[lowest is Whole.GROUP]
    if is_elsewhere:
        return [rest]
    firsts = [*_PLAIN, *(f"head {whole:d}" for whole in Whole if whole >= lowest)]
    is_first = selection.starts is Whole.GROUP or (selection.msg_seq_number, selection.offset) == START
    return firsts if is_first else [*firsts, rest]
