"""The put side of groups and segments: which GroupId, MsgSeqNumber and Offset a put gets, and what it interrupts.

The manual's table of MQPMO_LOGICAL_ORDER (page of MQPMO). With the option the queue manager keeps a place for the
handle and counts on from it; without, the fields of the descriptor count, and the place follows them: so a group that
a restart interrupted is resumed by one put that names its place, and the next may use LOGICAL_ORDER again (seed 000).
A handle keeps a place of its puts only while something is unfinished, so None means that nothing is.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from trigmon.mq.calls import Put
from trigmon.mq.descriptors import ID_LENGTH, NO_ID, MessageDescriptor
from trigmon.mq.enums import MsgFlag, MsgType, Persistence, PutOption
from trigmon.mq.errors import (
    IncompleteGroup,
    IncompleteMsg,
    InconsistentPersistence,
    InconsistentUow,
    MdError,
    MQError,
    MsgFlagsError,
    MsgSeqNumberError,
    OffsetError,
    OptionsError,
    OriginalLengthError,
    SegmentLengthZero,
)
from trigmon.rules.model.changes import AnyChange
from trigmon.rules.model.decision import Ids
from trigmon.rules.model.group_position import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT, Place, Side, place_of
from trigmon.rules.model.handle_changes import SetPlace
from trigmon.rules.model.handles import HandleFacts

LOGICAL_ORDER = PutOption.LOGICAL_ORDER.value
LARGEST = 999_999_999
"""The largest MsgSeqNumber and Offset."""
_SEGMENTATION_ALLOWED = MsgFlag.SEGMENTATION_ALLOWED.value
_KNOWN_FLAGS = sum(MsgFlag)
# MQMF_REJECT_UNSUP_MASK and MQMF_ACCEPT_UNSUP_IF_XMIT_MASK. The bits above them are always accepted.
_REJECTED = 0xFFF
_REJECTED_HERE = 0xFF000


class Ordered(msgspec.Struct, frozen=True):
    """A put in its place: the descriptor to store, a warning's reason or 0, and where the handle stands then."""

    descriptor: MessageDescriptor
    warning: int
    changes: list[AnyChange]


def check_flags(flags: int, *, is_transmitted: bool) -> None:
    """Raises MsgFlagsError (2249) for unknown MsgFlags; on the way to another queue manager more are accepted."""
    rejected = _REJECTED if is_transmitted else _REJECTED | _REJECTED_HERE
    if not -(2**31) <= flags < 2**31 or flags & rejected & ~_KNOWN_FLAGS:
        raise MsgFlagsError(f"msg_flags {flags:#x}")


def put_in_order(
    call: Put, handle: HandleFacts | None, descriptor: MessageDescriptor, unit_id: int, ids: Ids
) -> Ordered:
    """Returns the put's place, by the table. ``descriptor`` is the resolved one; MQPUT1 has no handle and no place.

    Raises OptionsError, the four of :func:`clash` where the put has LOGICAL_ORDER, MsgSeqNumberError, OffsetError,
    OriginalLengthError, SegmentLengthZero; the four are the warning where only the put before it had the option.
    """
    is_logical = bool(call.options & LOGICAL_ORDER)
    if is_logical and handle is None:
        raise OptionsError("logical_order needs a handle that keeps the place: mqput1 has none")
    before = handle.put_place if handle is not None else None
    flags = _with_implied(call.descriptor.msg_flags)
    descriptor = replace(descriptor, msg_flags=flags)
    if is_logical:
        descriptor = _counted_on(descriptor, before, ids)
    elif flags & (IN_GROUP | SEGMENT | _SEGMENTATION_ALLOWED):
        descriptor = _as_given(descriptor, call.descriptor, ids)
    error = clash(before, descriptor, unit_id) if before is not None and (is_logical or before.is_logical) else None
    if error is not None and is_logical:
        raise error
    place = place_of(
        descriptor,
        _checked_length(descriptor, len(call.data)),
        is_logical=is_logical,
        in_unit=unit_id != 0,
        is_persistent=descriptor.persistence == Persistence.PERSISTENT,
    )
    after = place if place.is_open else None
    changes: list[AnyChange] = []
    if handle is not None and (before is not None or after is not None):
        changes.append(SetPlace(handle.handle, Side.PUT, after, unit_id))
    return Ordered(descriptor, int(error.reason) if error is not None else 0, changes)


def clash(before: Place, descriptor: MessageDescriptor, unit_id: int) -> MQError | None:
    """Returns why a put does not continue what is unfinished: 2242 rather than 2241, then 2245, then 2185; or None."""
    about = f"group {before.group_id.hex()}, message {before.msg_seq_number}"
    last_differs = bool((descriptor.msg_flags ^ before.flags) & LAST_IN_GROUP)
    if not before.is_followed_by(descriptor) or (before.in_message and last_differs):
        if before.in_message:
            return IncompleteMsg(f"{about}: its last segment is still to come")
        return IncompleteGroup(f"{about}: the group's last message is still to come")
    if (unit_id != 0) is not before.in_unit:
        return InconsistentUow(f"{about} was put {'under' if before.in_unit else 'outside'} syncpoint")
    if (descriptor.persistence == Persistence.PERSISTENT) is not before.is_persistent:
        return InconsistentPersistence(f"{about} was {'' if before.is_persistent else 'not '}persistent")
    return None


def _with_implied(flags: int) -> int:
    """Returns the flags with what they imply: a last message of a group is in it, a last segment is a segment."""
    if flags & LAST_IN_GROUP:
        flags |= MsgFlag.MSG_IN_GROUP.value
    return flags | MsgFlag.SEGMENT.value if flags & LAST_SEGMENT else flags


def _counted_on(descriptor: MessageDescriptor, before: Place | None, ids: Ids) -> MessageDescriptor:
    """Returns the descriptor with LOGICAL_ORDER: the next item of what is unfinished, else a new group, or none."""
    flags = descriptor.msg_flags
    if before is not None and (flags & SEGMENT if before.in_message else flags & IN_GROUP):
        msg_seq_number, offset = before.next
        return replace(descriptor, group_id=before.group_id, msg_seq_number=msg_seq_number, offset=offset)
    if flags & (IN_GROUP | SEGMENT | _SEGMENTATION_ALLOWED):
        return replace(descriptor, group_id=_new_group_id(ids))
    return descriptor


def _as_given(descriptor: MessageDescriptor, given: MessageDescriptor, ids: Ids) -> MessageDescriptor:
    """Returns the descriptor without LOGICAL_ORDER: the fields that mean something with these flags, as given."""
    if len(given.group_id) != ID_LENGTH:
        raise MdError(f"group_id has {ID_LENGTH} bytes")
    flags = descriptor.msg_flags
    group_id = given.group_id if given.group_id != NO_ID else _new_group_id(ids)
    return replace(
        descriptor,
        group_id=group_id,
        msg_seq_number=given.msg_seq_number if flags & IN_GROUP else 1,
        offset=given.offset if flags & SEGMENT else 0,
    )


def _new_group_id(ids: Ids) -> bytes:
    """Returns an id that no group has had, since no number is given out twice."""
    return ids.msg_id(ids.message())


def _checked_length(descriptor: MessageDescriptor, length: int) -> int:
    """Returns by how much the offset grows: the data's length, or the OriginalLength of a report on a segment.

    A report without data stands for a segment that had some, so it may be empty.
    """
    if not 1 <= descriptor.msg_seq_number <= LARGEST:
        raise MsgSeqNumberError(f"msg_seq_number {descriptor.msg_seq_number}: 1 to {LARGEST}")
    if not descriptor.msg_flags & SEGMENT:
        return length
    is_last = bool(descriptor.msg_flags & LAST_SEGMENT)
    if descriptor.msg_type == MsgType.REPORT:
        if descriptor.original_length < max(length, 0 if is_last else 1):
            raise OriginalLengthError(f"original_length {descriptor.original_length} of a report of {length} bytes")
        length = descriptor.original_length
    elif not length and not is_last:
        raise SegmentLengthZero("a segment that is not the last has data")
    if not 0 <= descriptor.offset <= LARGEST - length:
        raise OffsetError(f"offset {descriptor.offset}, {length} bytes: 0 to {LARGEST}")
    return length
