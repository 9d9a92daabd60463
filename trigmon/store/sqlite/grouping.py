"""How far each group is there, kept on its first item, so that the next whole group is one look-up away.

Only what is committed and not got counts. A put or a commit goes on from the place that was missing, so a group of
any length is walked once; whatever leaves a group sets its mark back to the hole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from trigmon.mq.descriptors import NO_ID
from trigmon.rules.facts import StoredMessage
from trigmon.rules.order.wholeness import START, Item, Whole, reach
from trigmon.store.sqlite import statements as sql

Group = tuple[int, bytes]
_PLACES = 1 << 30
"""Offsets are below 1 000 000 000, so a place is one number in the order of places."""


def place_number(msg_seq_number: int, offset: int) -> int:
    """A place in a group as one number."""
    return msg_seq_number * _PLACES + offset


class Groups:
    """The groups of all queues. ``execute`` runs a statement and gives its rows."""

    def __init__(self, execute: Callable[..., Iterable[Any]]) -> None:
        self._execute = execute
        self._queues: set[int] = set()
        self._units: set[int] = set()

    def start(self) -> list[Group]:
        """Notes which queues have groups; returns the groups that recovery will change."""
        self._queues = {number for (number,) in self._execute(sql.QUEUES_WITH_GROUPS)}
        return list(self._execute(sql.GROUPS_TO_RECOVER)) if self._queues else []

    def recovered(self, groups: Iterable[Group]) -> None:
        """Looks again how far these groups are there."""
        for group in groups:
            self._execute(sql.FORGET_WHOLE, group)
            self.advance(group)

    def has_groups(self, queue: int) -> bool:
        """Whether this queue has, or had since the start, messages of groups or segments."""
        return queue in self._queues

    def came(self, queue: int, group_id: bytes, unit_id: int) -> None:
        """An item was put. In a unit of work nobody sees it before the commit."""
        self._queues.add(queue)
        if unit_id:
            self._units.add(unit_id)
        else:
            self.advance((queue, group_id))

    def took(self, queue: int, message: StoredMessage, unit_id: int) -> None:
        """A message was got or removed."""
        descriptor = message.descriptor
        if descriptor.group_id == NO_ID or queue not in self._queues:
            return
        if unit_id:
            self._units.add(unit_id)
        self._recede(queue, descriptor.group_id, (descriptor.msg_seq_number, descriptor.offset), message.number)

    def carried(self, unit_id: int) -> None:
        """A message that was got, perhaps one of a group, belongs to this unit of work from now on."""
        self._units.add(unit_id)

    def leaves(self, queue: int, number: int) -> None:
        """A message of which no more than its number is known is about to leave its queue."""
        if queue in self._queues:
            for group_id, msg_seq_number, offset in list(self._execute(sql.GROUP_OF, (number,))):
                self._recede(queue, group_id, (msg_seq_number, offset), number)

    def before_end(self, unit_id: int, *, is_commit: bool) -> list[Group]:
        """The groups that get back or get new items when this unit of work ends."""
        if unit_id not in self._units:
            return []
        self._units.discard(unit_id)
        return list(dict.fromkeys(self._execute(sql.GROUPS_PUT_BY if is_commit else sql.GROUPS_TAKEN_BY, (unit_id,))))

    def advance(self, group: Group) -> None:
        """Moves the marks of a group's first items on as far as the group is there."""
        for number, head, whole in list(self._execute(sql.HEADS_OF, group)):
            if head == Whole.GROUP:
                continue
            start = divmod(whole, _PLACES) if whole else START
            rows = self._execute(sql.GROUP_FROM, (group[0], 0, 0, group[1], start[0]))
            items = (Item._make(row[:4]) for row in rows)
            missing, is_whole = reach(items, start)
            if missing != start or is_whole != head:
                self._execute(sql.SET_WHOLE, (int(is_whole), place_number(*missing), number))

    def _recede(self, queue: int, group_id: bytes, place: tuple[int, int], number: int) -> None:
        if place == START:
            self._execute(sql.SET_WHOLE, (int(Whole.NOTHING), 0, number))
            return
        hole = place_number(*place)
        for head, _, whole in list(self._execute(sql.HEADS_OF, (queue, group_id))):
            if whole > hole:
                is_whole = Whole.MESSAGE if place[0] > 1 else Whole.NOTHING
                self._execute(sql.SET_WHOLE, (int(is_whole), hole, head))
                # Another item may stand in the same place.
                self.advance((queue, group_id))
