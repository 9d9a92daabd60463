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
Place = tuple[int, int]
_PLACES = 1 << 30
"""Offsets are below 1 000 000 000, so a place is one number in the order of places."""


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

    def has_groups(self, queue: int) -> bool:
        """Whether this queue has, or had since the start, messages of groups or segments."""
        return queue in self._queues

    def came(self, queue: int, group_id: bytes, place: Place, unit_id: int) -> None:
        """An item was put. In a unit of work nobody sees it before the commit."""
        self._queues.add(queue)
        if unit_id:
            self._units.add(unit_id)
        else:
            self.changed((queue, group_id), place)

    def took(self, queue: int, message: StoredMessage, unit_id: int) -> None:
        """A message was got or removed."""
        descriptor = message.descriptor
        if descriptor.group_id == NO_ID or queue not in self._queues:
            return
        if unit_id:
            self._units.add(unit_id)
        self.changed((queue, descriptor.group_id), (descriptor.msg_seq_number, descriptor.offset))

    def carried(self, unit_id: int) -> None:
        """A message that was got, perhaps one of a group, belongs to this unit of work from now on."""
        self._units.add(unit_id)

    def set_aside(self, queue: int, number: int) -> None:
        """A message of which no more than its number is known has left its queue."""
        if queue in self._queues:
            for group_id, msg_seq_number, offset in list(self._execute(sql.GROUP_OF, (number,))):
                self.changed((queue, group_id), (msg_seq_number, offset))

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

    def changed(self, group: Group, place: Place = START) -> None:
        """Something came to this place of a group, or left it: how far the group is there is looked at from there."""
        for number, head, whole in list(self._execute(sql.HEADS_OF, group)):
            reached = divmod(whole, _PLACES) if whole else START
            if place > reached or (place == reached and head == Whole.GROUP):
                continue
            # Where a logical message begins is on the way in any case, within it that depends on what lies there.
            start = reached if place == reached else (place[0], 0)
            rows = self._execute(sql.GROUP_FROM, (group[0], 0, 0, group[1], *start))
            items = (Item._make(row[:4]) for row in rows)
            missing, is_whole = reach(items, start)
            if (missing, is_whole) != (reached, head):
                self._execute(sql.SET_WHOLE, (int(is_whole), missing[0] * _PLACES + missing[1], number))
