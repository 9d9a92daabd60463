"""Putting in groups and segments: a place lost or kept too long, a wrong reason, a message cut or judged wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from tests.mutations.fault import Fault
from tests.mutations.planting import Patches, followed, kind_of, triggering
from trigmon.mq.enums import TriggerType
from trigmon.mq.errors import IncompleteGroup, IncompleteMsg
from trigmon.rules.messages import logical_put, put
from trigmon.rules.model.changes import AddMessage, StampTrigger
from trigmon.rules.model.group_position import LAST_IN_GROUP, LAST_SEGMENT
from trigmon.rules.model.handle_changes import SetPlace
from trigmon.rules.model.situation import Situation
from trigmon.rules.objects import close

Right = Callable[..., Any]


def wrapped(module: Any, name: str, wrap: Callable[..., Any]) -> Callable[[Patches], None]:
    """Plants ``wrap(as it should be, *args)`` in the place of a module's function."""

    def plant(patches: Patches) -> None:
        right = getattr(module, name)
        patches.setattr(module, name, lambda *args, **named: wrap(right, *args, **named))

    return plant


# -- places -------------------------------------------------------------------------------------------------


def _group_first(right: Right, before, descriptor, unit_id):
    error = right(before, descriptor, unit_id)
    return IncompleteGroup(error.about) if isinstance(error, IncompleteMsg) and before.in_group else error


def _last_may_differ(right: Right, before, descriptor, unit_id):
    flags = descriptor.msg_flags & ~LAST_IN_GROUP | before.flags & LAST_IN_GROUP
    return right(before, replace(descriptor, msg_flags=flags), unit_id)


def _in_order(is_logical: bool) -> Callable[..., Any]:
    """As if the put before had said LOGICAL_ORDER, or had not."""

    def wrap(right: Right, call, handle, *rest):
        if handle is not None and handle.put_place is not None:
            handle = replace(handle, put_place=replace(handle.put_place, is_logical=is_logical))
        return right(call, handle, *rest)

    return wrap


def _without_place(right: Right, call, handle, *rest):
    """A put without LOGICAL_ORDER does not move the place."""
    ordered = right(call, handle, *rest)
    return ordered if call.options & logical_put.LOGICAL_ORDER else replace(ordered, changes=[])


def _put1_in_order(right: Right, call, handle, *rest):
    if handle is None:
        call = replace(call, options=call.options & ~logical_put.LOGICAL_ORDER)
    return right(call, handle, *rest)


def _all_fields(right: Right, descriptor, given, ids):
    return replace(right(descriptor, given, ids), msg_seq_number=given.msg_seq_number, offset=given.offset)


def _offset_goes_on(right: Right, descriptor, before, ids):
    counted = right(descriptor, before, ids)
    return replace(counted, offset=before.offset + before.length) if before is not None else counted


def _each_begins(right: Right, descriptor, before, ids):
    return right(descriptor, None, ids)


def _plain_keeps_its_group(right: Right, plan, given, *rest):
    return replace(right(plan, given, *rest), group_id=given.group_id)


def _closed_as(is_logical: bool) -> Callable[..., Any]:
    def wrap(right: Right, handle):
        place = handle.put_place
        return right(replace(handle, put_place=place and replace(place, is_logical=is_logical)))

    return wrap


PLACES = [
    Fault("place: nothing is checked against it", wrapped(logical_put, "clash", lambda *args: None)),
    Fault("place: of message and group the group is named", wrapped(logical_put, "clash", _group_first)),
    Fault("place: segments may differ in LAST_MSG_IN_GROUP", wrapped(logical_put, "clash", _last_may_differ)),
    Fault(
        "place: syncpoint may differ in a group",
        wrapped(logical_put, "clash", lambda right, before, md, unit: right(before, md, int(before.in_unit))),
    ),
    Fault(
        "place: persistence may differ in a group",
        wrapped(
            logical_put,
            "clash",
            lambda right, before, md, unit: right(before, replace(md, persistence=int(before.is_persistent)), unit),
        ),
    ),
    Fault("place: a put warns where none said logical order", wrapped(put, "put_in_order", _in_order(True))),
    Fault("place: a put never warns", wrapped(put, "put_in_order", _in_order(False))),
    Fault("place: only logical order moves it", wrapped(put, "put_in_order", _without_place)),
    Fault("place: a put1 may say logical order", wrapped(put, "put_in_order", _put1_in_order)),
    Fault("place: every field given counts", wrapped(logical_put, "_as_given", _all_fields)),
    Fault("place: offsets go on from message to message", wrapped(logical_put, "_counted_on", _offset_goes_on)),
    Fault("place: each message begins a group", wrapped(logical_put, "_counted_on", _each_begins)),
    Fault("place: a plain message keeps a group id", wrapped(put, "described", _plain_keeps_its_group)),
    Fault("place: what last implies is not stored", wrapped(logical_put, "_with_implied", lambda right, flags: flags)),
    Fault(
        "place: a backout leaves it",
        followed(SetPlace, lambda right, standing, change: right(standing, replace(change, unit_id=0))),
    ),
    Fault("place: a close never warns", wrapped(close, "_left_unfinished", _closed_as(False))),
    Fault("place: a close always warns", wrapped(close, "_left_unfinished", _closed_as(True))),
]

# -- segmentation by the queue manager ----------------------------------------------------------------------


def _one_arrives(trigger: Right) -> Right:
    return lambda s, *args, **named: trigger(replace(s, arriving=1), *args, **named)


def _each_fires(trigger: Right) -> Right:
    """Each segment of a put on a queue of type EVERY is an event."""

    def spoiled(s: Situation, *args: Any, **named: Any) -> Any:
        found = trigger(s, *args, **named)
        if s.arriving == 1 or not found.events or kind_of(s) is not TriggerType.EVERY:
            return found
        again = [
            replace(change, number=change.number + 1_000_000 * copy)
            for copy in range(1, s.arriving)
            for change in found.changes
            if isinstance(change, AddMessage)
        ]
        stamps = [change for change in found.changes if isinstance(change, StampTrigger)]
        return replace(found, changes=[*(c for c in found.changes if c not in stamps), *again, *stamps])

    return spoiled


def _counted_each(right: Right, standing, change) -> None:
    right(standing, replace(change, is_further=False))


def _shorter_by_one(right: Right, *args):
    piece = right(*args)
    return piece - 1 if piece > 1 else piece


def _any_unit(right: Right, descriptor, length, head, queue, facts, unit_id):
    return right(descriptor, length, head, queue, replace(facts, connection=replace(facts.connection, unit_id=0)), 0)


def _no_head(right: Right, descriptor, length, head, *rest):
    return right(descriptor, length, head and 428, *rest)


def _all_last(right: Right, descriptor, data, piece):
    *rest, (last, body) = right(descriptor, data, piece)
    return [*rest, (replace(last, msg_flags=last.msg_flags | LAST_SEGMENT), body)]


def _offsets_from_zero(right: Right, descriptor, data, piece):
    return [(replace(md, offset=md.offset - descriptor.offset), body) for md, body in right(descriptor, data, piece)]


CUTS = [
    Fault("note 2: a put that is cut counts as one message for DEPTH", triggering(_one_arrives)),
    Fault("note 2: each segment of a put that is cut is an event", triggering(_each_fires)),
    Fault("cut: each segment counts for MAXUMSGS", followed(AddMessage, _counted_each)),
    Fault("cut: segments are no multiple of 16 bytes", wrapped(put, "piece_length", _shorter_by_one)),
    Fault("cut: an open unit of work does not matter", wrapped(put, "piece_length", _any_unit)),
    Fault("cut: the extension of a header is forgotten", wrapped(put, "piece_length", _no_head)),
    Fault(
        "cut: room for one segment is enough",
        wrapped(put, "check_room", lambda right, queue, length, facts, arriving=1: right(queue, length, facts)),
    ),
    Fault("cut: the last piece of any segment is a last segment", wrapped(put, "segments", _all_last)),
    Fault("cut: offsets count from the segment that is cut", wrapped(put, "segments", _offsets_from_zero)),
]

FAULTS = [*PLACES, *CUTS]
