"""How far each group is there, kept on its first item, so that the next whole group is one look-up away.

Only what is committed and not got counts. A put or a commit goes on from the place that was missing, so a group of
any length is walked once; whatever leaves a group sets its mark back to the hole.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any, NamedTuple

from trigmon.mq.descriptors import NO_ID
from trigmon.rules.model.group_completeness import START, Item, Whole, reach
from trigmon.rules.model.stored_messages import StoredMessage
from trigmon.store.sql import statements as sql

Group = tuple[int, bytes]
Place = tuple[int, int]
Order = tuple[int, int]
"""Get order: the counted priority, negated, and the arrival number."""
_PLACES = 1 << 30
"""Offsets are below 1 000 000 000, so a place is one number in the order of places."""
FEW = 8
"""So many items at one place are read one by one; the rest of them is stepped over."""


def items_from(rows_from: Callable[[Place], Iterable[tuple[Any, ...]]], start: Place) -> Generator[Item, None, None]:
    """The items of a group in the order of their places, of several at one place the first.

    ``rows_from`` gives the rows of ``statements.GROUP_FROM`` from a place on. Anybody may put any number of messages to
    one place of a group; who goes through the group does not pay for them.
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


class AtPlace(NamedTuple):
    """An item of a group; the marks of one that is not the first of its group mean nothing."""

    order: Order
    head: int
    whole: int


class Groups:
    """The groups of all queues. ``execute`` runs a statement and gives its rows."""

    def __init__(self, execute: Callable[..., Iterable[Any]]) -> None:
        self._execute = execute
        self.queues: set[int] = set()
        self._units: set[int] = set()

    def start(self) -> list[Group]:
        """Notes which queues have groups; returns the groups that recovery will change."""
        self.queues = {number for (number,) in self._execute(sql.QUEUES_WITH_GROUPS)}
        return list(self._execute(sql.GROUPS_TO_RECOVER)) if self.queues else []

    def has_groups(self, queue: int) -> bool:
        """Whether this queue has, or had since the start, messages of groups or segments."""
        return queue in self.queues

    def has_any_of(self, unit_id: int) -> bool:
        """Whether this unit of work has put or got messages of groups, or may have."""
        return unit_id in self._units

    def came(self, queue: int, group_id: bytes, order: Order, place: Place, unit_id: int) -> None:
        """An item was put. In a unit of work nobody sees it before the commit."""
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

    def took(self, queue: int, message: StoredMessage, unit_id: int) -> None:
        """A message was got or removed."""
        descriptor = message.descriptor
        if descriptor.group_id == NO_ID or queue not in self.queues:
            return
        if unit_id:
            self._units.add(unit_id)
        place = descriptor.msg_seq_number, descriptor.offset
        self.changed((queue, descriptor.group_id), place, (-message.priority, message.number))

    def _first_at(self, group: Group, place: Place) -> list[AtPlace]:
        """The item that counts at a place of a group, if there is one, and the one behind it, if there are several."""
        return [
            AtPlace((-priority, number), head, whole)
            for number, priority, head, whole in self._execute(sql.FIRST_AT, (*group, *place))
        ]

    def carried(self, unit_id: int) -> None:
        """A message that was got, perhaps one of a group, belongs to this unit of work from now on."""
        self._units.add(unit_id)

    def set_aside(self, queue: int, number: int) -> None:
        """A message of which no more than its number is known has left its queue."""
        if queue in self.queues:
            for group_id, msg_seq_number, offset in list(self._execute(sql.GROUP_OF, (number,))):
                self.changed((queue, group_id), (msg_seq_number, offset))

    def returned(self, queue: int, number: int) -> None:
        """A message is back on its queue."""
        if queue in self.queues:
            for group_id, *place in list(self._execute(sql.GROUP_OF, (number,))):
                found = place[0], place[1]
                self.changed((queue, group_id), found, has_new_heads=found == START)

    def before_end(self, unit_id: int, *, is_commit: bool) -> dict[Group, Place]:
        """The groups that get new items, or get items back, when this unit of work ends, and the first of those."""
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
        """Something came to this place of a group, or left it: how far the group is there is looked at from there.

        All its first items have the same mark; ``has_new_heads`` says that some may not have it yet. What stands, by
        its ``order``, behind another item at its place changes nothing.
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
        # Where a logical message begins is on the way in any case, within it that depends on what lies there.
        start = reached if place == reached else (place[0], 0)
        missing, is_whole = reach(items_from(partial(self._rows_from, group), start), start)
        if not has_new_heads and (missing, is_whole) == (reached, head):
            return
        mark = int(is_whole), missing[0] * _PLACES + missing[1]
        if len(heads) > 1:
            self._execute(sql.SET_WHOLE_OF, (*mark, *group, *mark))
        else:
            self._execute(sql.SET_WHOLE, (*mark, heads[0].order[1]))

    def _rows_from(self, group: Group, place: Place) -> Iterable[tuple[Any, ...]]:
        return self._execute(sql.GROUP_FROM, (group[0], 0, 0, group[1], *place))
