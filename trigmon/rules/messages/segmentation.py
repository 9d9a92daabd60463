"""Segmentation by the queue manager: a message that is too long for its queue is put in pieces, where it allows that.

Every piece but the last is as long as the queue takes, rounded down to a multiple of 16 bytes; offsets count from the
beginning of the logical message, so a segment that is too long is cut further (the manual on MsgFlags).
"""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import MsgFlag, Persistence, Usage
from trigmon.mq.errors import MsgTooBigForQ, UowNotAvailable
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.group_position import LAST_SEGMENT, SEGMENT
from trigmon.rules.model.queue_facts import QueueFacts

MULTIPLE = 16
"""Of so many bytes every segment but the last has a multiple."""
MOST_SEGMENTS = 4096
"""Into so many one put is cut at most: all of them are one step, during which no other client is served."""

_SEGMENTATION_ALLOWED = MsgFlag.SEGMENTATION_ALLOWED.value
_SEGMENT = MsgFlag.SEGMENT.value


def piece_length(
    descriptor: MessageDescriptor, length: int, head: int, queue: QueueFacts, facts: Facts, unit_id: int
) -> int:
    """Returns how long each piece but the last is, or 0 where the message stays whole, be it too long.

    ``head`` is what stands before each piece on a transmission queue. What an application puts straight onto a
    transmission queue is not cut: only the first piece would begin with its MQXQH. Raises UowNotAvailable (2255) for
    a persistent message outside syncpoint while the application has a unit of work open; MsgTooBigForQ (2030).
    """
    definition = queue.definition
    room = min(definition.max_msg_length, facts.q_mgr.max_msg_length)
    if head + length <= room or not descriptor.msg_flags & _SEGMENTATION_ALLOWED:
        return 0
    piece = (room - head) // MULTIPLE * MULTIPLE
    if piece <= 0 or (definition.usage is Usage.TRANSMISSION and not head):
        return 0
    if length > piece * MOST_SEGMENTS:
        raise MsgTooBigForQ(f"{definition.name}: {length} bytes in segments of {piece}, at most {MOST_SEGMENTS}")
    if descriptor.persistence == Persistence.PERSISTENT and not unit_id and facts.connection.unit_id:
        raise UowNotAvailable("a persistent message is cut under syncpoint, or while no unit of work is open")
    return piece


def segments(descriptor: MessageDescriptor, data: bytes, piece: int) -> list[tuple[MessageDescriptor, bytes]]:
    """Returns the pieces in order. They share every field but Offset and MsgFlags, MsgId and GroupId among them."""
    flags = (descriptor.msg_flags & ~LAST_SEGMENT) | _SEGMENT
    ends = LAST_SEGMENT if descriptor.msg_flags & LAST_SEGMENT or not descriptor.msg_flags & SEGMENT else 0
    starts = range(0, len(data), piece)
    return [
        (
            replace(
                descriptor,
                offset=descriptor.offset + start,
                msg_flags=flags | ends if start == starts[-1] else flags,
            ),
            data[start : start + piece],
        )
        for start in starts
    ]
