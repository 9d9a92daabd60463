"""The position of a handle in a group and a logical message: what a queue manager keeps of its last put or get.

Three are kept for each handle: of its last put, its last destructive get, and its last browse (seed 000; the manual on
MQPUT and MQGET, MQPMO_LOGICAL_ORDER and MQGMO_LOGICAL_ORDER). An *item* is a physical message: a whole logical
message, or a segment of one.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import MsgFlag

IN_GROUP = (MsgFlag.MSG_IN_GROUP | MsgFlag.LAST_MSG_IN_GROUP).value
LAST_IN_GROUP = MsgFlag.LAST_MSG_IN_GROUP.value
SEGMENT = (MsgFlag.SEGMENT | MsgFlag.LAST_SEGMENT).value
LAST_SEGMENT = MsgFlag.LAST_SEGMENT.value


def ends_group(flags: int) -> bool:
    """Returns whether an item of these MsgFlags is the last of its group, or of a logical message in no group."""
    ends_message = not flags & SEGMENT or flags & LAST_SEGMENT
    return bool(ends_message and (flags & LAST_IN_GROUP or not flags & IN_GROUP))


def is_whole_group(descriptor: MessageDescriptor) -> bool:
    """Returns whether a message is all of its group: its first item and its last."""
    return (descriptor.msg_seq_number, descriptor.offset) == (1, 0) and ends_group(descriptor.msg_flags)


class Side(Enum):
    """Of which kind of call a place is kept."""

    PUT = "put"
    GET = "get"
    BROWSE = "browse"


class Place(msgspec.Struct, frozen=True):
    """The item of a handle's last call of one side. ``length`` is its data's, in bytes, ``flags`` its MsgFlags.

    ``is_logical``: the call had LOGICAL_ORDER. ``in_unit``: it was under syncpoint. ``anchor`` is where the first
    item of the group lay, as counted priority and arrival number: the group's place among the others.
    """

    group_id: bytes
    msg_seq_number: int
    offset: int
    length: int
    flags: int
    is_logical: bool
    in_unit: bool
    is_persistent: bool
    anchor: tuple[int, int] = (0, 0)

    @property
    def in_message(self) -> bool:
        """Whether a logical message is unfinished: its last segment is still to come."""
        return bool(self.flags & SEGMENT) and not self.flags & LAST_SEGMENT

    @property
    def in_group(self) -> bool:
        """Whether a group is unfinished: its last message is still to come, or a part of it."""
        return bool(self.flags & IN_GROUP) and (self.in_message or not self.flags & LAST_IN_GROUP)

    @property
    def is_open(self) -> bool:
        """Whether something is unfinished."""
        return self.in_message or self.in_group

    @property
    def next(self) -> tuple[int, int]:
        """The sequence number and offset of the item that follows."""
        if self.in_message:
            return self.msg_seq_number, self.offset + self.length
        return self.msg_seq_number + 1, 0

    def is_followed_by(self, descriptor: MessageDescriptor) -> bool:
        """Returns whether a message is the next item of the unfinished group or logical message."""
        return (
            descriptor.group_id == self.group_id
            and (descriptor.msg_seq_number, descriptor.offset) == self.next
            and bool(descriptor.msg_flags & IN_GROUP) == bool(self.flags & IN_GROUP)
        )


def place_of(
    descriptor: MessageDescriptor,
    length: int,
    *,
    is_logical: bool,
    in_unit: bool,
    is_persistent: bool,
    anchor: tuple[int, int] = (0, 0),
) -> Place:
    """Returns the place after a message with this descriptor and ``length`` bytes of data."""
    return Place(
        descriptor.group_id,
        descriptor.msg_seq_number,
        descriptor.offset,
        length,
        descriptor.msg_flags,
        is_logical,
        in_unit,
        is_persistent,
        anchor,
    )
