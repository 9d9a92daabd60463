"""Completeness of a logical message or a group: all of it is there, from its first item to its last, with no hole."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from trigmon.rules.model.group_position import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT


class Whole(IntEnum):
    """How much of a group must be there, or is there from its first item on."""

    NOTHING = 1
    MESSAGE = 2
    GROUP = 3


class Item(NamedTuple):
    """A physical message of a group: its place, the length of its data in bytes, its MsgFlags."""

    msg_seq_number: int
    offset: int
    length: int
    flags: int


START = (1, 0)


def reach(items: Iterable[Item], start: tuple[int, int] = START) -> tuple[tuple[int, int], Whole]:
    """Returns how far a group is there without a hole: the place that is missing, and what is whole up to there.

    ``items`` come in the order of their places, from ``start`` on; of several at one place the first counts.
    """
    seq, offset = start
    is_first_whole = seq > 1
    for item in items:
        if (item.msg_seq_number, item.offset) < (seq, offset):
            continue
        if (item.msg_seq_number, item.offset) > (seq, offset):
            break
        if item.flags & SEGMENT and not item.flags & LAST_SEGMENT:
            if not item.length:
                break
            offset += item.length
            continue
        if item.flags & LAST_IN_GROUP or not item.flags & IN_GROUP:
            return (seq + 1, 0), Whole.GROUP
        seq, offset, is_first_whole = seq + 1, 0, True
    return (seq, offset), Whole.MESSAGE if is_first_whole else Whole.NOTHING


def has_message(items: Iterable[Item], msg_seq_number: int) -> bool:
    """Returns whether the logical message of this number is whole."""
    missing, _ = reach(items, (msg_seq_number, 0))
    return missing[0] > msg_seq_number
