"""Poison messages, beyond MQ and on by choice: a queue with BOTHRESH above 0 and BOREQ(QMGR).

MQ counts backouts and leaves it to programs to look at the count (mq-facts 6, seed 004). Here a message whose count
has reached BOTHRESH leaves its queue at the moment a get would hand it out again: onto BOQNAME, else behind an MQDLH
with reason 2362 onto the dead-letter queue. Its going and its coming are one decision, outside the getter's unit of
work, so it is on one queue or on the other whatever happens. Where no queue takes it, it is handed out as in MQ.

It is a new put, so the backout count begins at 0: a program that repairs what lies there must not take it for poison
at once. What the count was stands in ApplOriginData, if that was blank. All else stays: the rest of the context, the
ids, the group, what is left of its time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from trigmon.mq.calls import Call, Done, Get, GetMany, Refused, Reply
from trigmon.mq.descriptors import CCSID_UTF8, ENCODING_NATIVE, FORMAT_DEAD_LETTER, MessageDescriptor
from trigmon.mq.enums import BackoutRequeue, GetOption, ReportOption
from trigmon.mq.errors import MQError, ObjectNameError
from trigmon.mq.reasons import Reason
from trigmon.rules.changes import RemoveMessage, met_on_the_way
from trigmon.rules.dead_letter import header, why_not
from trigmon.rules.decision import Aside, Decision, Ids, NotAside
from trigmon.rules.errands import Deliver, HandOut, PutAside
from trigmon.rules.facts import Cursor, Facts, Found, QueueFacts, Selection, StoredMessage
from trigmon.rules.get import decide_get as decide_one
from trigmon.rules.get import decide_get_many, look_for_get, look_for_get_many
from trigmon.rules.put import check_puts_allowed, decide_deliver
from trigmon.rules.reports import exception_report, expiration_reports
from trigmon.rules.resolving import base_queue

_BROWSES = (GetOption.BROWSE_FIRST | GetOption.BROWSE_NEXT | GetOption.BROWSE_MSG_UNDER_CURSOR).value
_DISCARD = ReportOption.DISCARD_MSG.value
_REACHED = Reason.BACKOUT_THRESHOLD_REACHED
_MARK = re.compile("BO([0-9]{1,2})")


def decide_get(call: Get | GetMany, facts: Facts, found: Found | None, now: int, ids: Ids, spared: int = 0) -> Decision:
    """MQGET, one message or several, past the poison on the way; ``spared`` is the number of one that may be given.

    One that stands first is put aside, and the call looks again; behind others it waits for the next call.
    """
    queue = facts.queue
    if found is not None and queue is not None and _minds(queue) and not call.options & _BROWSES:
        threshold, messages = queue.definition.backout_threshold, found.messages
        bad = [
            place
            for place, message in enumerate(messages)
            if message.descriptor.backout_count >= threshold and message.number != spared
        ]
        if bad and isinstance(call, GetMany):
            found = _before(found, bad[0])
            if not bad[0]:
                first = messages[:1]
                return _aside(call, first, queue, found, expiration_reports(found.expired, facts, now))
        elif bad and not spared:
            # Several that were found for one get are segments, and one message: all of them are put aside.
            return _aside(call, messages, queue, found, expiration_reports(found.expired, facts, now))
    if isinstance(call, GetMany):
        return decide_get_many(call, facts, found, now, ids)
    return decide_one(call, facts, found, now, ids)


def look_for_put_aside(call: PutAside, facts: Facts, now: int) -> Selection | None:
    """Whether a further segment still lies there: the whole message was handed out where the first could go nowhere."""
    if not call.is_rest:
        return None
    message = call.message
    at = Cursor(message.priority, message.number)
    return Selection(message.q_name, now, at=at, handle=call.get.handle)


def decide_put_aside(call: PutAside, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """From its queue onto the backout queue or, that failing, onto the dead-letter queue, or back to the getter."""
    message = call.message
    if found is not None and not found.messages:
        return Decision()
    descriptor = _clean(message.descriptor)
    if not call.to_q_name:
        return _to_dead_letter_queue(call, facts, descriptor, now, ids)
    try:
        return _told(moved(message, call.to_q_name, descriptor, message.data, facts, now, ids), call.to_q_name, call)
    except MQError as error:
        # Not a failure of the get, whose caller did not ask for this.
        return Decision(errands=[replace(call, to_q_name="", why=f"BOQNAME: {error}")], gather=_first)


def look_for_hand_out(call: HandOut, facts: Facts, now: int) -> Selection | None:
    """What the get itself looks for."""
    return (
        look_for_get_many(call.get, facts, now) if isinstance(call.get, GetMany) else look_for_get(call.get, facts, now)
    )


def decide_hand_out(call: HandOut, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """The get as in MQ, for the message that could go nowhere."""
    return decide_get(call.get, facts, found, now, ids, spared=call.number)


def moved(
    message: StoredMessage,
    to_q_name: str,
    descriptor: MessageDescriptor,
    data: bytes,
    facts: Facts,
    now: int,
    ids: Ids,
) -> Decision:
    """A message off its queue and onto another in one step; ``facts`` are the other queue's.

    Raises what a put raises, and ObjectNameError where the other queue is its own.
    """
    queue, _ = base_queue(to_q_name, facts)
    if queue.definition.name == message.q_name:
        raise ObjectNameError(f"{to_q_name} is the queue that it lies on")
    check_puts_allowed(facts, queue)
    deliver = Deliver(q_name=to_q_name, descriptor=descriptor, data=data, expires_ms=message.expires_ms)
    delivered = decide_deliver(deliver, facts, None, now, ids)
    return replace(delivered, changes=[RemoveMessage(message), *delivered.changes])


def backouts_before(descriptor: MessageDescriptor) -> int:
    """How often a message had been backed out when it was put aside (99: that often or more); 0 where nothing says."""
    said = _MARK.fullmatch(descriptor.appl_origin_data.strip())
    return int(said[1]) if said else 0


def unmarked(descriptor: MessageDescriptor) -> MessageDescriptor:
    """The descriptor as it was before the message was put aside."""
    return replace(descriptor, appl_origin_data="") if backouts_before(descriptor) else descriptor


def _minds(queue: QueueFacts) -> bool:
    return queue.definition.backout_requeue is BackoutRequeue.QMGR and queue.definition.backout_threshold > 0


def _before(found: Found, place: int) -> Found:
    """What was found in front of one of the messages; of expired ones only those are discarded (seed 003)."""
    end = _order(found.messages[place])
    return Found(
        found.messages[:place],
        tuple(expired for expired in found.expired if _order(expired) < end),
        tuple(damaged for damaged in found.damaged if _order(damaged) < end),
    )


def _order(message: StoredMessage) -> tuple[int, int]:
    return -message.priority, message.number


def _aside(
    call: Get | GetMany, messages: Sequence[StoredMessage], queue: QueueFacts, found: Found, reports: list[Call]
) -> Decision:
    to_q_name = queue.definition.backout_requeue_q_name
    errands: list[Call] = [
        PutAside(message=message, get=call, to_q_name=to_q_name, is_rest=message is not messages[0])
        for message in messages
    ]
    return Decision(_look_again(), met_on_the_way(found), [*errands, *reports], gather=_what_came_of_it)


def _what_came_of_it(replies: list[Reply]) -> Reply:
    """The message that was handed out after all, or the word to look again."""
    return _look_again() if isinstance(replies[0], Done) else replies[0]


def _first(replies: list[Reply]) -> Reply:
    return replies[0]


def _look_again() -> Refused:
    return Refused(reason=Reason.NO_MSG_AVAILABLE.value)


def _clean(descriptor: MessageDescriptor) -> MessageDescriptor:
    mark = (
        descriptor.appl_origin_data if descriptor.appl_origin_data.strip() else f"BO{min(descriptor.backout_count, 99)}"
    )
    return replace(descriptor, backout_count=0, appl_origin_data=mark)


def _to_dead_letter_queue(call: PutAside, facts: Facts, descriptor: MessageDescriptor, now: int, ids: Ids) -> Decision:
    """Behind an MQDLH; one that asks to be discarded rather (MQRO_DISCARD_MSG) is, as JMS does."""
    message, q_mgr = call.message, facts.q_mgr
    reports = exception_report(message, int(_REACHED), facts, now)
    if descriptor.report & _DISCARD:
        return _told(Decision(changes=[RemoveMessage(message)], errands=reports), "", call)
    data = header(_REACHED, message.q_name, descriptor, q_mgr.name, now) + message.data
    why = why_not(facts, len(data))
    if not why:
        dead = replace(descriptor, format=FORMAT_DEAD_LETTER, encoding=ENCODING_NATIVE, coded_char_set_id=CCSID_UTF8)
        try:
            to_q_name = q_mgr.dead_letter_q_name
            placed = moved(message, to_q_name, dead, data, facts, now, ids)
            return _told(replace(placed, errands=[*placed.errands, *reports]), to_q_name, call)
        except MQError as error:
            why = str(error)
    hindered = "; ".join(part for part in (call.why, f"the dead-letter queue: {why}") if part)
    told = NotAside(message.q_name, message.descriptor.msg_id, message.descriptor.backout_count, hindered)
    if call.is_rest:
        return Decision(told=(told,))  # it stays; its first segment has gone, so there is nothing to hand out
    return Decision(errands=[HandOut(get=call.get, number=message.number)], told=(told,), gather=_first)


def _told(decision: Decision, to_q_name: str, call: PutAside) -> Decision:
    before = call.message.descriptor
    told = Aside(call.message.q_name, to_q_name, before.msg_id, before.backout_count, call.why)
    return replace(decision, told=(told, *decision.told))
