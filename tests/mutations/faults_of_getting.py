"""Getting in groups and segments: a group left or entered wrongly, a place forgotten, a message joined wrongly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from tests.mutations.fault import Fault
from tests.mutations.faults_of_putting import Right, wrapped
from trigmon.mq.enums import GetOption
from trigmon.mq.reasons import Reason
from trigmon.rules.messages import get, logical_get
from trigmon.rules.model.group_completeness import Whole
from trigmon.rules.model.stored_messages import Form
from trigmon.rules.objects import close

FIRST, NEXT = GetOption.BROWSE_FIRST.value, GetOption.BROWSE_NEXT.value
ALL_MSGS, COMPLETE = GetOption.ALL_MSGS_AVAILABLE.value, GetOption.COMPLETE_MSG.value


def _selected(change: Callable[..., Any]) -> Callable[..., Any]:
    """The selection, changed: ``change(selection, call)``."""
    return lambda right, selection, call, handle: change(right(selection, call, handle), call)


def _any_start(selection, call):
    return replace(selection, starts=Whole.NOTHING)


def _needs(before: Whole, after: Whole, bit: int = 0) -> Callable[..., Any]:
    def change(selection, call):
        if selection.whole is before and (not bit or call.options & bit):
            return replace(selection, whole=after)
        return selection

    return change


def _whole_inside(right: Right, matched, call, place):
    found = right(matched, call, place)
    return replace(found, whole=Whole.GROUP) if call.options & ALL_MSGS else found


def _first_goes_on(right: Right, options, handle):
    return right(options & ~FIRST | (NEXT if options & FIRST else 0), handle)


def _one_place(right: Right, options, handle):
    return right(options, replace(handle, browse_place=handle.get_place))


def _last_is_anchor(right: Right, options, handle, messages):
    at = (messages[0].priority, messages[0].number)
    changes = right(options, handle, messages)
    return [replace(c, place=c.place and replace(c.place, anchor=at)) for c in changes]


def _place_of_logical_only(right: Right, options, handle, messages, unit_id):
    changes, warning = right(options, handle, messages, unit_id)
    return (changes if options & logical_get.LOGICAL else []), warning


def _any_ids(right: Right, call, *rest):
    return right(replace(call, match=0), *rest)


def _any_syncpoint(right: Right, call, facts, messages, unit_id):
    place = facts.handle.get_place
    handle = replace(facts.handle, get_place=place and replace(place, in_unit=bool(unit_id)))
    return right(call, replace(facts, handle=handle), messages, unit_id)


def _any_unit(right: Right, call, facts, *rest):
    return right(call, replace(facts, connection=replace(facts.connection, unit_id=0)), *rest)


def _renamed(before: Reason, after: Reason) -> Callable[..., Any]:
    def wrap(right: Right, *args):
        warning = right(*args)
        return int(after) if warning == before else warning

    return wrap


def _closed_unwarned(right: Right, handle):
    return right(replace(handle, get_place=None))


def _one_coding(right: Right, segments):
    found, warning = right(segments)
    return found, int(Reason.INCONSISTENT_CCSIDS) if warning else 0


def _first_flags(right: Right, segments):
    return replace(right(segments), descriptor=segments[0].descriptor)


def _last_descriptor(right: Right, segments):
    whole = right(segments)
    return replace(whole, descriptor=replace(segments[-1].descriptor, msg_flags=whole.descriptor.msg_flags))


FAULTS = [
    Fault("order: a group begun is not gone on with", wrapped(logical_get, "unfinished", lambda *args: None)),
    Fault("order: any message of a group may be the first", wrapped(get, "in_order", _selected(_any_start))),
    Fault("order: a browse goes on behind a group's last item", wrapped(logical_get, "_browsed", _last_is_anchor)),
    Fault("order: a browse of the first stays in its group", wrapped(logical_get, "unfinished", _first_goes_on)),
    Fault("order: browses and gets have one place", wrapped(logical_get, "unfinished", _one_place)),
    Fault("order: a browse of the next need not agree", wrapped(get, "check_browse", lambda *args: None)),
    Fault("order: what is matched need not agree", wrapped(logical_get, "_check_match", lambda *args: None)),
    Fault("order: the ids of what follows need not agree", wrapped(get, "check_found", _any_ids)),
    Fault("order: syncpoint may differ in a group that is got", wrapped(get, "check_found", _any_syncpoint)),
    Fault("order: only logical order moves the place of gets", wrapped(get, "moved", _place_of_logical_only)),
    Fault("order: a get never warns", wrapped(logical_get, "_inconsistent", lambda *args: 0)),
    Fault(
        "order: a get warns of the group where the message is unfinished",
        wrapped(logical_get, "_inconsistent", _renamed(Reason.INCOMPLETE_MSG, Reason.INCOMPLETE_GROUP)),
    ),
    Fault("order: a close does not warn of gets", wrapped(close, "_left_unfinished", _closed_unwarned)),
    Fault(
        "order: the group's status is not told",
        wrapped(get, "statuses", lambda right, flags: (" ", right(flags)[1])),
    ),
    Fault(
        "order: the segment's status is not told",
        wrapped(get, "statuses", lambda right, flags: (right(flags)[0], " ")),
    ),
    Fault(
        "whole: all messages available is all segments",
        wrapped(get, "in_order", _selected(_needs(Whole.GROUP, Whole.MESSAGE))),
    ),
    Fault(
        "whole: all segments available is nothing",
        wrapped(get, "in_order", _selected(_needs(Whole.MESSAGE, Whole.NOTHING))),
    ),
    Fault("whole: all messages are asked for inside a group", wrapped(logical_get, "_following", _whole_inside)),
    Fault(
        "whole: a complete message may have holes",
        wrapped(get, "in_order", _selected(_needs(Whole.MESSAGE, Whole.NOTHING, COMPLETE))),
    ),
    Fault(
        "whole: nothing is put together",
        wrapped(get, "in_order", _selected(lambda selection, call: replace(selection, form=Form.WHOLE))),
    ),
    Fault("whole: an open unit of work does not matter", wrapped(get, "check_found", _any_unit)),
    Fault("whole: segments of any kind go together", wrapped(get, "consistent", lambda right, segments: (segments, 0))),
    Fault("whole: encodings are named character sets", wrapped(get, "consistent", _one_coding)),
    Fault("whole: the flags are the first segment's", wrapped(get, "joined", _first_flags)),
    Fault("whole: the descriptor is the last segment's", wrapped(get, "joined", _last_descriptor)),
]
