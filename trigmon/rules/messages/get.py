"""MQGET: destructive and browsing, one message or several in a frame.

A get that finds nothing answers 2033; the manager parks one that may wait and performs the same call again when
something changed, so there is no second path. Expired messages that the look met on its way to what it would have
returned are discarded with it, and only those (seed 003).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pow

from msgspec.structs import replace

from trigmon.mq.calls import Get, GetMany
from trigmon.mq.descriptors import FORMAT_XMIT_Q_HEADER, LARGEST_LONG, MessageDescriptor
from trigmon.mq.enums import ApplType, GetOption, Inhibit, MatchOption, OpenOption
from trigmon.mq.errors import (
    GetInhibited,
    HobjError,
    MatchOptionsError,
    NoMsgUnderCursor,
    NotOpenForBrowse,
    NotOpenForInput,
    OptionsError,
    WaitIntervalError,
)
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Refused, WasGot, WereGot
from trigmon.mq.transmission_header import aged
from trigmon.rules.messages.browse_lock import after_browse, after_nothing, decide_unlock
from trigmon.rules.messages.context import saved, shown
from trigmon.rules.messages.get_options import (
    BROWSES,
    IF_PERSISTENT,
    MARK,
    ONE_AT_A_TIME,
    UNLOCK,
    check_together,
    syncpoint_of,
)
from trigmon.rules.messages.logical_get import (
    MATCHES,
    ORDERS,
    check_browse,
    check_found,
    consistent,
    in_order,
    joined,
    moved,
    statuses,
)
from trigmon.rules.messages.reports import delivery_report, expiration_reports
from trigmon.rules.messages.skip_backout import marked_by
from trigmon.rules.messages.units_of_work import SYNCPOINT, check_limit, joined_unit
from trigmon.rules.model.changes import AnyChange, RemoveMessage, TakeMessage, met_on_the_way
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.handle_changes import MoveCursor
from trigmon.rules.model.handles import HandleFacts, Marked
from trigmon.rules.model.queue_facts import check_alive
from trigmon.rules.model.stored_messages import Cursor, Found, Selection, StoredMessage

MOST_MESSAGES = 4096
MOST_BYTES = 4 << 20
"""What one reply to GetMany or BrowseMany carries at most; a single longer message goes alone."""

KNOWN_OPTIONS = sum(GetOption)
KNOWN_MATCHES = sum(MatchOption)
_MSG_ID, _CORREL_ID = MatchOption.MSG_ID.value, MatchOption.CORREL_ID.value
_BROWSE_FIRST = GetOption.BROWSE_FIRST.value
_BROWSE_NEXT = GetOption.BROWSE_NEXT.value
_BROWSE_HERE = GetOption.BROWSE_MSG_UNDER_CURSOR.value
_TAKE_HERE = GetOption.MSG_UNDER_CURSOR.value
_HERE = _BROWSE_HERE | _TAKE_HERE
_PLACES = BROWSES | _TAKE_HERE
_NO_CONTEXT = ApplType.NO_CONTEXT.value
_ACCEPT = GetOption.ACCEPT_TRUNCATED_MSG.value
_INPUT = (OpenOption.INPUT_SHARED | OpenOption.INPUT_EXCLUSIVE).value
_BROWSE = OpenOption.BROWSE.value


def look_for_get(call: Get, facts: Facts, now: int) -> Selection | None:
    """Checks the call against its handle, and returns which message it looks for."""
    if call.options & UNLOCK:
        check_together(call.options, call.unit, facts)
        return None
    handle = _checked(call, facts)
    if call.match & ~KNOWN_MATCHES:
        raise MatchOptionsError(f"match options {call.match:#x}")
    here = call.options & _HERE
    if here and handle.cursor is None:
        raise NoMsgUnderCursor(handle.object_name)
    selection = Selection(
        q_name=handle.q_name,
        now=now,
        unit_id=_visible_unit(call.options, facts),
        after=handle.cursor if call.options & _BROWSE_NEXT else None,
        at=handle.cursor if here else None,
        msg_id=call.msg_id if call.match & _MSG_ID and not here else None,
        correl_id=call.correl_id if call.match & _CORREL_ID and not here else None,
        handle=handle.handle,
        own_persistent=bool(call.options & IF_PERSISTENT),
    )
    if call.options & ORDERS or call.match & MATCHES:
        return in_order(selection, call, handle)
    return selection


def decide_get(call: Get, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides MQGET: the message found, taken or browsed; 2033, or 2034 where the cursor's message is gone."""
    if call.options & UNLOCK:
        return decide_unlock(call.handle, facts)
    handle = facts.handle
    if found is None or handle is None:
        raise HobjError(f"handle {call.handle}")
    discards = met_on_the_way(found)
    reports = expiration_reports(found.expired, facts, now)
    if not found.messages:
        if call.options & _HERE:
            gone = Refused(reason=Reason.NO_MSG_UNDER_CURSOR.value, about=handle.object_name)
            return Decision(gone, discards, reports)
        nothing = Refused(reason=Reason.NO_MSG_AVAILABLE.value, about=handle.object_name)
        return Decision(nothing, [*discards, *after_nothing(call.options, handle)], reports)
    messages: Sequence[StoredMessage] = found.messages
    message, differs = messages[0], 0
    if len(messages) > 1:
        messages, differs = consistent(messages)
        message = joined(messages)
    too_long = 0 <= call.max_length < len(message.data)
    accepts = bool(call.options & _ACCEPT)
    if too_long and not accepts:
        return Decision(given(message, now, call.max_length, accepts), discards, reports)
    unit_id, begins = joined_unit(syncpoint_of(call.options, message), call.unit, facts, now, ids)
    if call.options & ORDERS:
        check_found(call, facts, messages, unit_id)
    moves, left = moved(call.options, handle, messages, unit_id)
    if call.options & BROWSES:
        first = messages[0]
        cursor = MoveCursor(handle.handle, Cursor(first.priority, first.number))
        takes: list[AnyChange] = [cursor, *after_browse(call.options, handle, messages)]
    else:
        if unit_id:
            check_limit(facts, len(messages))
        marked = marked_by(message, facts, moves) if call.options & MARK else None
        takes = [*begins, *(_taken(each, unit_id, marked) for each in messages)]
        reports += delivery_report(message, facts, now, unit_id)
    takes += saved(handle, None if call.options & BROWSES else message.descriptor)
    reply = given(message, now, call.max_length if too_long else -1, accepts)
    warning = reply.warning or differs or left
    return Decision(replace(reply, warning=warning) if warning else reply, [*discards, *takes, *moves], reports)


def look_for_get_many(call: GetMany, facts: Facts, now: int) -> Selection:
    """Returns the next messages in get order, up to the count asked for."""
    if call.count < 1 or call.options & (_PLACES | ONE_AT_A_TIME | ORDERS):
        raise OptionsError("get_many takes a count above 0, in physical order, and neither browses nor locks nor marks")
    handle = _checked(call, facts)
    return Selection(
        q_name=handle.q_name,
        now=now,
        limit=min(call.count, MOST_MESSAGES),
        limit_bytes=MOST_BYTES,
        unit_id=_visible_unit(call.options, facts),
        handle=handle.handle,
        own_persistent=bool(call.options & IF_PERSISTENT),
    )


def decide_get_many(call: GetMany, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides a get of several: every message found that one reply can carry is taken; 2033 for none."""
    if found is None or facts.handle is None:
        raise HobjError(f"handle {call.handle}")
    changes = met_on_the_way(found)
    reports = expiration_reports(found.expired, facts, now)
    if not found.messages:
        return Decision(Refused(reason=Reason.NO_MSG_AVAILABLE.value, about=facts.handle.object_name), changes, reports)
    messages = carried(found.messages)
    if call.fewer_if_backed_out and facts.queue is not None:
        messages = _fewer_if_backed_out(messages, call.count, facts.queue.definition.backout_threshold)
    joining = [bool(syncpoint_of(call.options, message) & SYNCPOINT) for message in messages]
    unit_id, begins = joined_unit(call.options | SYNCPOINT * any(joining), call.unit, facts, now, ids)
    if unit_id:
        check_limit(facts, sum(joining))
    changes += saved(facts.handle, messages[-1].descriptor)
    moves, warning = moved(call.options, facts.handle, messages, unit_id)
    changes += begins
    for message, joins in zip(messages, joining, strict=True):
        changes.append(_taken(message, unit_id * joins))
        reports += delivery_report(message, facts, now, unit_id * joins)
    changes += moves
    replies = [given(message, now, -1, False) for message in messages]
    return Decision(WereGot(messages=replies, warning=warning), changes, reports)


def _checked(call: Get | GetMany, facts: Facts) -> HandleFacts:
    """Returns the handle after the options were checked against each other and against it."""
    handle, options = facts.handle, call.options
    if handle is None:
        raise HobjError(f"handle {call.handle}")
    places = options & _PLACES
    if options & ~KNOWN_OPTIONS or places & (places - 1):
        raise OptionsError(f"get options {options:#x}")
    check_together(options, call.unit, facts)
    if not -1 <= call.wait_interval_ms <= LARGEST_LONG:
        raise WaitIntervalError(f"wait_interval {call.wait_interval_ms}: milliseconds, or -1 for ever")
    if options & _PLACES and not handle.options & _BROWSE:
        raise NotOpenForBrowse(handle.object_name)
    if not options & BROWSES and not handle.options & _INPUT:
        raise NotOpenForInput(handle.object_name)
    queue = facts.queue
    if queue is None:
        raise HobjError(f"handle {call.handle}")
    check_alive(queue)
    check_browse(options, handle)
    for definition in (facts.alias, queue.definition):
        if definition is not None and definition.inhibit_get is Inhibit.INHIBITED:
            raise GetInhibited(definition.name)
    return handle


def _visible_unit(options: int, facts: Facts) -> int:
    """Returns the unit whose own puts this call sees: a get outside syncpoint sees committed messages only."""
    return facts.connection.unit_id if options & (SYNCPOINT | IF_PERSISTENT | BROWSES) else 0


def _fewer_if_backed_out(messages: list[StoredMessage], count: int, threshold: int) -> list[StoredMessage]:
    """Returns the first messages that were backed out equally often, as many as :func:`most_after_backouts` says."""
    backouts = messages[0].descriptor.backout_count
    most = most_after_backouts(count, backouts, threshold)
    others = (n for n, message in enumerate(messages) if message.descriptor.backout_count != backouts)
    return messages[: min(most, next(others, most))]


def most_after_backouts(count: int, backouts: int, threshold: int) -> int:
    """Returns how many of ``count`` messages a get of several takes that were backed out so often.

    It is halved with each backout. With BOTHRESH it falls so fast that a message is alone the last time before the
    threshold: so no good one reaches that with a bad one.
    """
    if threshold < 2:
        return max(1, count >> backouts)
    left = max(0, threshold - 1 - backouts)
    return max(1, round(pow(count, left / (threshold - 1))))


def carried(messages: Sequence[StoredMessage]) -> list[StoredMessage]:
    """Returns the first message, and those behind it for which one reply has room."""
    first: list[StoredMessage] = []
    size = 0
    for message in messages:
        size += len(message.data)
        if first and size > MOST_BYTES:
            break
        first.append(message)
    return first


def _taken(message: StoredMessage, unit_id: int, marked: Marked | None = None) -> AnyChange:
    return TakeMessage(message, unit_id, marked) if unit_id else RemoveMessage(message)


def seen(message: StoredMessage, now: int) -> tuple[MessageDescriptor, bytes]:
    """Returns the descriptor and the data as the application sees them, with the time that is left."""
    descriptor, data = message.descriptor, message.data
    if descriptor.put_appl_type == _NO_CONTEXT:
        descriptor = shown(descriptor)
    if descriptor.format == FORMAT_XMIT_Q_HEADER:
        data = aged(descriptor, data, message.waited_ms(now))
    if message.expires_ms:
        descriptor = replace(descriptor, expiry=message.tenths_left(now))
    return descriptor, data


def is_seen_as_stored(form: str, put_appl_type: int) -> bool:
    """Returns whether the application sees a message as it lies there, but for the time that is left."""
    return put_appl_type != _NO_CONTEXT and form != FORMAT_XMIT_Q_HEADER


def all_seen(messages: Sequence[StoredMessage], now: int) -> tuple[list[MessageDescriptor], list[bytes]]:
    """Returns the descriptors and the data of messages, each as :func:`seen`. Most are seen as they lie there."""
    descriptors = [message.descriptor for message in messages]
    bodies = [message.data for message in messages]
    for at, message in enumerate(messages):
        descriptor = message.descriptor
        if message.expires_ms or not is_seen_as_stored(descriptor.format, descriptor.put_appl_type):
            descriptors[at], bodies[at] = seen(message, now)
    return descriptors, bodies


def given(message: StoredMessage, now: int, cut_to: int, accepts: bool) -> WasGot:
    """Returns the message as the application sees it: the time it has left, and as much data as it can take."""
    descriptor, data = seen(message, now)
    group_status, segment_status = statuses(descriptor.msg_flags) if descriptor.msg_flags else (" ", " ")
    warning = 0
    if cut_to >= 0:
        warning = int(Reason.TRUNCATED_MSG_ACCEPTED if accepts else Reason.TRUNCATED_MSG_FAILED)
    return WasGot(
        descriptor=descriptor,
        data=data if cut_to < 0 else data[:cut_to],
        data_length=len(data),
        group_status=group_status,
        segment_status=segment_status,
        warning=warning,
    )
