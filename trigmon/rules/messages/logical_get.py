"""Getting in logical order: which item a get looks for, and what its handle remembers (seed 000; mq-facts 5.2).

=================  ==================  =========================================================================
LOGICAL_ORDER      unfinished group    looks for
=================  ==================  =========================================================================
yes                no                  the first item of the next group, or a message in none
yes                yes                 the item that follows, and nothing else
no                 either              any message; with COMPLETE_MSG the first item of any logical message
=================  ==================  =========================================================================

ALL_MSGS_AVAILABLE asks for the whole group where none is unfinished in logical order; ALL_SEGMENTS_AVAILABLE and
COMPLETE_MSG for the whole logical message, where none is.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from msgspec.structs import replace

from trigmon.mq.calls import Get
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.enums import GetOption, MatchOption, MsgFlag
from trigmon.mq.errors import (
    InconsistentBrowse,
    InconsistentUow,
    InvalidMsgUnderCursor,
    MatchOptionsError,
    UowNotAvailable,
)
from trigmon.mq.reasons import Reason
from trigmon.rules.messages.get_options import BROWSES, COMPLETE
from trigmon.rules.model.changes import AnyChange
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.group_completeness import START, Whole
from trigmon.rules.model.group_position import IN_GROUP, LAST_IN_GROUP, LAST_SEGMENT, SEGMENT, Place, Side, place_of
from trigmon.rules.model.handle_changes import SetPlace
from trigmon.rules.model.handles import HandleFacts
from trigmon.rules.model.stored_messages import Cursor, Form, Selection, StoredMessage

LOGICAL = GetOption.LOGICAL_ORDER.value
_ALL_MSGS = GetOption.ALL_MSGS_AVAILABLE.value
_WHOLE_MSG = COMPLETE | GetOption.ALL_SEGMENTS_AVAILABLE.value
ORDERS = LOGICAL | _ALL_MSGS | _WHOLE_MSG
_BROWSE_FIRST = GetOption.BROWSE_FIRST.value
_BROWSE_NEXT = GetOption.BROWSE_NEXT.value
_BROWSE_HERE = GetOption.BROWSE_MSG_UNDER_CURSOR.value
_HERE = _BROWSE_HERE | GetOption.MSG_UNDER_CURSOR.value
_GROUP_ID, _SEQ = MatchOption.GROUP_ID.value, MatchOption.MSG_SEQ_NUMBER.value
_OFFSET = MatchOption.OFFSET.value
_MSG_ID, _CORREL_ID = MatchOption.MSG_ID.value, MatchOption.CORREL_ID.value
MATCHES = _GROUP_ID | _SEQ | _OFFSET


def check_browse(options: int, handle: HandleFacts) -> None:
    """Raises InconsistentBrowse (2259) for a BROWSE_NEXT with another LOGICAL_ORDER than the browse before it."""
    if not options & _BROWSE_NEXT or handle.cursor is None:
        return
    was_logical = handle.browse_place is not None
    if was_logical is not bool(options & LOGICAL):
        how = "in" if was_logical else "without"
        raise InconsistentBrowse(f"{handle.object_name} is browsed {how} logical order; BROWSE_FIRST begins anew")


def unfinished(options: int, handle: HandleFacts) -> Place | None:
    """Returns the unfinished group or logical message in which a call of these options goes on, if it does."""
    if not options & LOGICAL or options & (_BROWSE_FIRST | _HERE):
        return None
    place = handle.browse_place if options & BROWSES else handle.get_place
    return place if place is not None and place.is_open else None


def in_order(selection: Selection, call: Get, handle: HandleFacts) -> Selection:
    """Returns the selection of a get with options of groups or segments. Raises MatchOptionsError (2247)."""
    options = call.options
    matched = replace(
        selection,
        group_id=call.group_id if call.match & _GROUP_ID else None,
        msg_seq_number=call.msg_seq_number if call.match & _SEQ else None,
        offset=call.offset if call.match & _OFFSET else None,
        form=Form.GATHERED if options & COMPLETE else Form.WHOLE,
    )
    if options & _HERE:
        return replace(selection, form=matched.form, whole=Whole.MESSAGE if options & COMPLETE else Whole.NOTHING)
    place = unfinished(options, handle)
    if place is not None:
        return _following(matched, call, place)
    whole = Whole.GROUP if options & _ALL_MSGS else Whole.MESSAGE if options & _WHOLE_MSG else Whole.NOTHING
    if not options & LOGICAL:
        return replace(matched, whole=whole, starts=Whole.MESSAGE if options & COMPLETE else Whole.NOTHING)
    _check_match(call, None, START)
    after = matched.after
    if after is not None and handle.browse_place is not None:
        after = Cursor(*handle.browse_place.anchor)
    return replace(matched, whole=whole, starts=Whole.GROUP, msg_seq_number=None, offset=None, after=after)


def _following(matched: Selection, call: Get, place: Place) -> Selection:
    """Returns the item that follows. Its ids are compared when it is found, since nothing else can be got."""
    seq, offset = place.next
    _check_match(call, place.group_id, place.next)
    return replace(
        matched,
        group_id=place.group_id,
        msg_seq_number=seq,
        offset=offset,
        msg_id=None,
        correl_id=None,
        after=None,
        whole=Whole.MESSAGE if call.options & _WHOLE_MSG and not offset else Whole.NOTHING,
    )


def _check_match(call: Get, group_id: bytes | None, place: tuple[int, int]) -> None:
    """Raises MatchOptionsError (2247) where a get in logical order matches another item than the one that is next."""
    wanted = (
        (_GROUP_ID, call.group_id, group_id),
        (_SEQ, call.msg_seq_number, place[0]),
        (_OFFSET, call.offset, place[1]),
    )
    for bit, value, must_be in wanted:
        if call.match & bit and must_be is not None and value != must_be:
            raise MatchOptionsError(
                f"match {MatchOption(bit).name}: {value!r}, where logical order goes on at {must_be!r}"
            )


def check_found(call: Get, facts: Facts, messages: Sequence[StoredMessage], unit_id: int) -> None:
    """Checks what depends on the message that was found.

    Raises MatchOptionsError (2247), InconsistentUow (2245), InvalidMsgUnderCursor (2246), UowNotAvailable (2255).
    """
    handle, first = facts.handle, messages[0].descriptor
    assert handle is not None
    if call.options & COMPLETE and call.options & _HERE and first.offset:
        raise InvalidMsgUnderCursor(f"{handle.object_name}: the cursor stands behind the message's first segment")
    is_browse = bool(call.options & BROWSES)
    needs_unit = len(messages) > 1 and not is_browse and any(message.is_persistent for message in messages)
    if needs_unit and not unit_id and facts.connection.unit_id:
        raise UowNotAvailable("persistent segments are got in a unit of work of their own, and one is open: commit it")
    place = unfinished(call.options, handle)
    if place is None:
        return
    for bit, value, found in ((_MSG_ID, call.msg_id, first.msg_id), (_CORREL_ID, call.correl_id, first.correl_id)):
        if call.match & bit and value != found:
            raise MatchOptionsError(f"match {MatchOption(bit).name}: the next message of the group has another")
    if not is_browse and place.in_unit is not bool(unit_id):
        before, now = ("under", "outside") if place.in_unit else ("outside", "under")
        raise InconsistentUow(f"{handle.object_name}: the group was got {before} syncpoint so far, now {now}")


def moved(
    call_options: int, handle: HandleFacts, messages: Sequence[StoredMessage], unit_id: int
) -> tuple[list[AnyChange], int]:
    """Returns the handle's move behind these items, and the warning that it left something unfinished (0: none)."""
    logical = bool(call_options & LOGICAL)
    last = messages[-1]
    if call_options & BROWSES:
        return _browsed(call_options, handle, messages), 0
    before = handle.get_place
    if not logical and before is None and not last.descriptor.msg_flags:
        return [], 0
    warning = 0
    if before is not None and before.is_open and before.is_logical and not logical:
        warning = _inconsistent(before, messages[0].descriptor, bool(unit_id))
    after = _place(last, is_logical=logical, in_unit=bool(unit_id))
    place = after if after.is_open else None
    return ([] if place is None and before is None else [SetPlace(handle.handle, Side.GET, place, unit_id)]), warning


def _browsed(options: int, handle: HandleFacts, messages: Sequence[StoredMessage]) -> list[AnyChange]:
    """Returns the place after a browse: in logical order it is kept, with the group's place among the others."""
    if options & _BROWSE_HERE:
        return []
    if not options & LOGICAL:
        return [] if handle.browse_place is None else [SetPlace(handle.handle, Side.BROWSE, None)]
    first = messages[0]
    place = unfinished(options, handle)
    anchor = place.anchor if place is not None else (first.priority, first.number)
    after = _place(messages[-1], is_logical=True, in_unit=False)
    return [SetPlace(handle.handle, Side.BROWSE, replace(after, anchor=anchor))]


def _place(message: StoredMessage, *, is_logical: bool, in_unit: bool) -> Place:
    return place_of(
        message.descriptor,
        len(message.data),
        is_logical=is_logical,
        in_unit=in_unit,
        is_persistent=message.is_persistent,
    )


def _inconsistent(before: Place, got: MessageDescriptor, in_unit: bool) -> int:
    """Returns the warning of a get without LOGICAL_ORDER after one with it that left something unfinished."""
    if before.is_followed_by(got):
        return 0 if before.in_unit is in_unit else int(Reason.INCONSISTENT_UOW)
    return int(Reason.INCOMPLETE_MSG if before.in_message else Reason.INCOMPLETE_GROUP)


def consistent(segments: Sequence[StoredMessage]) -> tuple[Sequence[StoredMessage], int]:
    """Returns the first segments that have one character set and one encoding, and the warning that there are more."""
    first = segments[0].descriptor
    alike = list(takewhile(lambda each: _coding(each.descriptor) == _coding(first), segments))
    if len(alike) == len(segments):
        return segments, 0
    other = segments[len(alike)].descriptor
    same_ccsid = other.coded_char_set_id == first.coded_char_set_id
    return alike, int(Reason.INCONSISTENT_ENCODINGS if same_ccsid else Reason.INCONSISTENT_CCSIDS)


def _coding(descriptor: MessageDescriptor) -> tuple[int, int]:
    return descriptor.coded_char_set_id, descriptor.encoding


def joined(segments: Sequence[StoredMessage]) -> StoredMessage:
    """Returns one message of its segments: all the data, and the first descriptor with the flag of the last."""
    first, last = segments[0], segments[-1]
    if len(segments) == 1:
        return first
    flags = first.descriptor.msg_flags | (last.descriptor.msg_flags & MsgFlag.LAST_SEGMENT)
    descriptor = replace(first.descriptor, msg_flags=flags)
    return replace(first, descriptor=descriptor, data=b"".join(segment.data for segment in segments))


def statuses(flags: int) -> tuple[str, str]:
    """Returns GroupStatus and SegmentStatus of a message with these flags: one character each."""
    group = "L" if flags & LAST_IN_GROUP else "G" if flags & IN_GROUP else " "
    return group, "L" if flags & LAST_SEGMENT else "S" if flags & SEGMENT else " "
