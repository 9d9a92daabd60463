"""Completeness of message groups, kept on each group's first item, so that one look-up finds the next complete group.

Only committed messages that nobody has got count. A put or a commit continues at the first missing place, so a group of
any length is walked once; a message that leaves a group sets the mark back to its place.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from trigmon.mq.descriptors import NO_ID
from trigmon.rules.model.group_completeness import START, Item, Whole, reach
from trigmon.rules.model.stored_messages import StoredMessage
from trigmon.store.sql import statements as sql

Group = tuple[int, bytes]
"""The number of its queue, and its id."""
Place = tuple[int, int]
Mark = tuple[int, int]
"""How much of a group is whole from its first item on, and the place that is missing, in one number."""
Order = tuple[int, int]
"""Get order: the counted priority, negated, and the arrival number."""
_PLACES = 1 << 30
"""Offsets are below 1 000 000 000, so a place is one number in the order of places."""
FEW = 8
"""So many items at one place are read one by one; the others at that place are skipped."""


def items_from(rows_from: Callable[[Place], Iterable[tuple[Any, ...]]], start: Place) -> Generator[Item, None, None]:
    """Yields the items of a group in the order of their places, one for each place: the first.

    ``rows_from`` returns the rows of ``statements.GROUP_FROM`` from a place on. Programs may put any number of messages
    to one place of a group; they do not slow down the walk.
    """
    begins: Place | None = start
    while begins is not None:
        rows, begins = rows_from(begins), None
        before, times = (0, 0), 0
        for row in rows:
            if row[:2] != before:
                before, times = row[:2], 1
                yield Item._make(row[:4])
                continue
            times += 1
            if times > FEW:
                begins = before[0], before[1] + 1
                break


def _one_a_place(items: Iterable[tuple[Order, Item]]) -> Iterator[Item]:
    """Yields these items as :func:`items_from`."""
    before: Place | None = None
    for _, item in sorted(items, key=lambda it: (it[1][:2], it[0])):
        if item[:2] != before:
            before = item[:2]
            yield item


def _mark(missing: Place, is_whole: Whole) -> Mark:
    return int(is_whole), missing[0] * _PLACES + missing[1]


class AtPlace(NamedTuple):
    """An item of a group; ``head`` and ``whole`` are valid only in the first item of the group."""

    order: Order
    head: int
    whole: int


class Groups:
    """The groups of all queues. ``execute`` runs a statement and returns its rows."""

    def __init__(self, execute: Callable[..., Iterable[Any]]) -> None:
        self._execute = execute
        self.queues: set[int] = set()
        self._units: set[int] = set()

    def start(self) -> list[Group]:
        """Reads which queues have groups; returns the groups that recovery will change."""
        self.queues = {number for (number,) in self._execute(sql.QUEUES_WITH_GROUPS)}
        return list(self._execute(sql.GROUPS_TO_RECOVER)) if self.queues else []

    def resume(self) -> None:
        """Reads which queues have groups, and which units of work have put or got messages of groups."""
        self.start()
        self._units = {unit for (unit,) in self._execute(sql.UNITS_WITH_GROUPS)} if self.queues else set()

    def has_groups(self, queue: int) -> bool:
        """Returns whether this queue has, or had since the start, messages of groups or segments."""
        return queue in self.queues

    def has_any_of(self, unit_id: int) -> bool:
        """Returns whether this unit of work has put or got messages of groups, or may have."""
        return unit_id in self._units

    def came(self, queue: int, group_id: bytes, order: Order, place: Place, unit_id: int) -> None:
        """Records that an item was put. In a unit of work it counts from the commit on."""
        self.queues.add(queue)
        if unit_id:
            self._units.add(unit_id)
            return
        group = queue, group_id
        if place != START:
            self.changed(group, place, order)
            return
        first, *others = self._first_at(group, START)
        if first.order == order:
            self.changed(group, has_new_heads=bool(others))
        else:
            self._execute(sql.SET_WHOLE, (first.head, first.whole, order[1]))

    def mark_of_new(self, group: Group, items: Iterable[tuple[Order, Item]]) -> Mark | None:
        """Returns the mark of a group's first items where all messages of the group are these, which get rows now.

        None where it has others: then :meth:`changed` is to be called when these have rows.
        """
        self.queues.add(group[0])
        if list(self._execute(sql.HAS_GROUP, group)):
            return None
        return _mark(*reach(_one_a_place(items)))

    def took(self, queue: int, message: StoredMessage, unit_id: int) -> None:
        """Records that a message was got or removed."""
        descriptor = message.descriptor
        if descriptor.group_id == NO_ID or queue not in self.queues:
            return
        if unit_id:
            self._units.add(unit_id)
        place = descriptor.msg_seq_number, descriptor.offset
        self.changed((queue, descriptor.group_id), place, (-message.priority, message.number))

    def took_many(self, queue: int, messages: Iterable[StoredMessage]) -> None:
        """Records that messages were reserved, when all of them are."""
        firsts: dict[bytes, Place] = {}
        for message in messages:
            descriptor = message.descriptor
            if (group_id := descriptor.group_id) != NO_ID:
                place = descriptor.msg_seq_number, descriptor.offset
                firsts[group_id] = min(firsts.get(group_id, place), place)
        for group_id, place in firsts.items():
            self.changed((queue, group_id), place)

    def _first_at(self, group: Group, place: Place) -> list[AtPlace]:
        """Returns the first item at a place of a group, if any, and the second, if there are several."""
        return [
            AtPlace((-priority, number), head, whole)
            for number, priority, head, whole in self._execute(sql.FIRST_AT, (*group, *place))
        ]

    def carried(self, unit_id: int) -> None:
        """Records that a message already got, perhaps one of a group, now belongs to this unit of work."""
        self._units.add(unit_id)

    def set_aside(self, queue: int, number: int) -> None:
        """Records that a damaged message, of which only the number is known, has left its queue."""
        if queue in self.queues:
            for group_id, msg_seq_number, offset in list(self._execute(sql.GROUP_OF, (number,))):
                self.changed((queue, group_id), (msg_seq_number, offset))

    def returned(self, queue: int, number: int) -> None:
        """Records that a message is back on its queue."""
        if queue in self.queues:
            for group_id, *place in list(self._execute(sql.GROUP_OF, (number,))):
                found = place[0], place[1]
                self.changed((queue, group_id), found, has_new_heads=found == START)

    def before_end(self, unit_id: int, *, is_commit: bool) -> dict[Group, Place]:
        """Returns the groups that gain items when this unit of work ends, each with the first place of these items."""
        if unit_id not in self._units:
            return {}
        self._units.discard(unit_id)
        firsts: dict[Group, Place] = {}
        for queue, group_id, *place in self._execute(sql.PUT_BY if is_commit else sql.TAKEN_BY, (unit_id,)):
            group, found = (queue, group_id), (place[0], place[1])
            firsts[group] = min(firsts.get(group, found), found)
        return firsts

    def changed(
        self, group: Group, place: Place = START, order: Order | None = None, *, has_new_heads: bool = False
    ) -> None:
        """Computes a group's completeness again from this place on, where an item was added or removed.

        All first items of a group have the same mark; ``has_new_heads``: some may not have it yet. An item whose
        ``order`` is behind that of another item at its place changes nothing.
        """
        heads = self._first_at(group, START)
        if not heads:
            return
        head, whole = heads[0].head, heads[0].whole
        reached = divmod(whole, _PLACES) if whole else START
        if not has_new_heads and (place > reached or (place == reached and head == Whole.GROUP)):
            return
        if order is not None and place < reached and any(each.order < order for each in self._first_at(group, place)):
            return
        # The walk always meets the first segment of a logical message; the later places depend on the items.
        start = reached if place == reached else (place[0], 0)
        missing, is_whole = reach(items_from(partial(self._rows_from, group), start), start)
        if not has_new_heads and (missing, is_whole) == (reached, head):
            return
        mark = _mark(missing, is_whole)
        if len(heads) > 1:
            self._execute(sql.SET_WHOLE_OF, (*mark, *group, *mark))
        else:
            self._execute(sql.SET_WHOLE, (*mark, heads[0].order[1]))

    def _rows_from(self, group: Group, place: Place) -> Iterable[tuple[Any, ...]]:
        return self._execute(sql.GROUP_FROM, (group[0], 0, 0, group[1], *place))
