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
from collections.abc import Iterable

from msgspec.structs import replace

from trigmon.mq.calls import Call, Get, GetMany
from trigmon.mq.descriptors import NO_ID, MessageDescriptor
from trigmon.mq.enums import BackoutRequeue, GetOption, ReportOption
from trigmon.mq.errors import MQError, ObjectNameError
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Done, Refused, Reply
from trigmon.rules.dead_letters.dead_letter import ends_here
from trigmon.rules.messages.dead_letter_queue import dead_descriptor, header, why_not
from trigmon.rules.messages.get import MOST_MESSAGES, decide_get_many, look_for_get, look_for_get_many
from trigmon.rules.messages.get import decide_get as decide_one
from trigmon.rules.messages.get_options import BROWSES
from trigmon.rules.messages.put import decide_deliver
from trigmon.rules.messages.put_plan import check_puts_allowed
from trigmon.rules.messages.reports import exception_report, expiration_reports
from trigmon.rules.model.changes import AnyChange, RemoveMessage, met_on_the_way
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.events import PoisonKept, PoisonMoved
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.group_position import Side
from trigmon.rules.model.handle_changes import SetPlace
from trigmon.rules.model.internal_calls import Deliver, HandOut, PutAside, PutPart
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.resolve_name import base_queue
from trigmon.rules.model.stored_messages import Found, Selection, StoredMessage

_DISCARD = ReportOption.DISCARD_MSG.value
_REACHED = Reason.BACKOUT_THRESHOLD_REACHED
_GROUPS = (GetOption.LOGICAL_ORDER | GetOption.ALL_MSGS_AVAILABLE).value
_MOST_BYTES = 64 << 20
"""How much of a group, with MOST_MESSAGES of its messages, goes in one step."""
_MARK = re.compile("BO([0-9]{1,2})")
_ASIDE = b"aside "
_MOMENT_SIZE = 8


def decide_get(call: Get | GetMany, facts: Facts, found: Found | None, now: int, ids: Ids, spared: int = 0) -> Decision:
    """Gets one message or several, past the poison on the way; ``spared`` is the number of one that may be given.

    One that stands first is put aside, and the call looks again; behind others it waits for the next call.
    """
    queue = facts.queue
    if found is not None and queue is not None and _minds(queue) and not call.options & BROWSES:
        threshold, messages = queue.definition.backout_threshold, found.messages
        bad = [
            place
            for place, message in enumerate(messages)
            if message.descriptor.backout_count >= threshold and message.number != spared
        ]
        if bad and isinstance(call, GetMany):
            found = _before(found, bad[0])
            if not bad[0]:
                return _aside(call, messages[:1], queue, found, facts, now)
        elif bad and not spared:
            # Several that were found for one get are segments, and one message.
            return _aside(call, messages, queue, found, facts, now)
    if isinstance(call, GetMany):
        return decide_get_many(call, facts, found, now, ids)
    return decide_one(call, facts, found, now, ids)


def look_for_put_aside(call: PutAside, facts: Facts, now: int) -> Selection | None:
    """Selects the rest of the group, where the get takes groups: of a split group no half could be got."""
    message = call.messages[0]
    if message.descriptor.group_id == NO_ID or not call.get.options & _GROUPS:
        return None
    return Selection(
        message.q_name,
        now,
        limit=MOST_MESSAGES,
        limit_bytes=_MOST_BYTES,
        group_id=message.descriptor.group_id,
        handle=call.get.handle,
    )


def decide_put_aside(call: PutAside, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Moves messages to the backout queue, else to the dead-letter queue, else returns them to the getter."""
    messages = (found.messages if found is not None else ()) or call.messages
    tried = [_put(message, call.to_q_name, call.why, facts, now, ids) for message in messages]
    why = next((each for each in tried if isinstance(each, str)), "") or _no_room(len(messages), facts)
    if not why:
        leaves: list[AnyChange] = [call.leaves] if call.leaves is not None else []
        reports = [] if call.to_q_name else _reports(messages, facts, now)
        if len(messages) > 1:
            parts = [PutPart(message=message, to_q_name=call.to_q_name, why=call.why) for message in messages]
            return Decision(changes=leaves, internal_calls=[*parts, *reports])
        (only,) = tried
        assert isinstance(only, Decision)
        return replace(only, changes=[*only.changes, *leaves], internal_calls=[*only.internal_calls, *reports])
    if call.to_q_name:
        # Not a failure of the get, whose caller did not ask for this.
        return Decision(internal_calls=[replace(call, to_q_name="", why=f"BOQNAME: {why}")], gather=_first)
    event = _kept(call.messages[0], call.why, why)
    return Decision(
        internal_calls=[HandOut(get=call.get, number=call.messages[0].number)], events=(event,), gather=_first
    )


def decide_put_part(call: PutPart, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Puts one after the other; one whose room was taken by another stays where it is."""
    done = _put(call.message, call.to_q_name, call.why, facts, now, ids)
    if isinstance(done, Decision):
        return done
    before = call.message.descriptor
    return Decision(events=(PoisonKept(call.message.q_name, before.msg_id, before.backout_count, done),))


def look_for_hand_out(call: HandOut, facts: Facts, now: int) -> Selection | None:
    """Selects what the get itself looks for."""
    return (
        look_for_get_many(call.get, facts, now) if isinstance(call.get, GetMany) else look_for_get(call.get, facts, now)
    )


def decide_hand_out(call: HandOut, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Gets as in MQ, for the message that could be moved nowhere."""
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
    """Moves a message off its queue and onto another in one step; ``facts`` are the other queue's.

    Raises what a put raises, and ObjectNameError where the other queue is its own.
    """
    queue, _ = base_queue(to_q_name, facts)
    if queue.definition.name == message.q_name:
        raise ObjectNameError(f"{to_q_name} is the queue that it lies on")
    check_puts_allowed(facts, queue)
    deliver = Deliver(q_name=to_q_name, descriptor=descriptor, data=data, expires_ms=message.expires_ms)
    delivered = decide_deliver(deliver, facts, None, now, ids)
    return replace(delivered, changes=[RemoveMessage(message), *delivered.changes])


def counted_anew(descriptor: MessageDescriptor, now: int) -> MessageDescriptor:
    """Returns the descriptor of a message put aside: the count begins at 0.

    ApplOriginData keeps the count and AccountingToken the moment, each if it is blank.
    """
    mark, token = descriptor.appl_origin_data, descriptor.accounting_token
    return replace(
        descriptor,
        backout_count=0,
        appl_origin_data=mark if mark.strip() else f"BO{min(descriptor.backout_count, 99)}",
        accounting_token=token if token.strip(b"\0") else _ASIDE + now.to_bytes(_MOMENT_SIZE, "big"),
    )


def backouts_before(descriptor: MessageDescriptor) -> int | None:
    """Returns how often a message was backed out before it was put aside (99: or more), None if not recorded.

    0: it was put aside with others of its group.
    """
    mark = _MARK.fullmatch(descriptor.appl_origin_data.strip())
    return int(mark[1]) if mark else None


def aside_ms(descriptor: MessageDescriptor) -> int:
    """Returns when the message was put aside, in milliseconds since 1970; 0 if that is not recorded."""
    token = descriptor.accounting_token
    return int.from_bytes(token[len(_ASIDE) :], "big") if _is_moment(token) else 0


def unmarked(descriptor: MessageDescriptor) -> MessageDescriptor:
    """Returns the descriptor as it was before the message was put aside."""
    if backouts_before(descriptor) is not None:
        descriptor = replace(descriptor, appl_origin_data="")
    return replace(descriptor, accounting_token=b"") if _is_moment(descriptor.accounting_token) else descriptor


def _is_moment(token: bytes) -> bool:
    return token.startswith(_ASIDE) and len(token) == len(_ASIDE) + _MOMENT_SIZE


def _minds(queue: QueueFacts) -> bool:
    return queue.definition.backout_requeue is BackoutRequeue.QMGR and queue.definition.backout_threshold > 0


def _before(found: Found, place: int) -> Found:
    """Returns what was found in front of one of the messages; of expired ones only those are discarded (seed 003)."""
    end = _order(found.messages[place])
    return Found(
        found.messages[:place],
        tuple(expired for expired in found.expired if _order(expired) < end),
        tuple(damaged for damaged in found.damaged if _order(damaged) < end),
    )


def _order(message: StoredMessage) -> tuple[int, int]:
    return -message.priority, message.number


def _aside(
    call: Get | GetMany, messages: tuple[StoredMessage, ...], queue: QueueFacts, found: Found, facts: Facts, now: int
) -> Decision:
    put_aside = PutAside(
        messages=messages,
        get=call,
        to_q_name=queue.definition.backout_requeue_q_name,
        leaves=_leaves(call, messages[0], facts),
    )
    reports = expiration_reports(found.expired, facts, now)
    return Decision(_look_again(), met_on_the_way(found), [put_aside, *reports], gather=_what_came_of_it)


def _leaves(call: Get | GetMany, message: StoredMessage, facts: Facts) -> SetPlace | None:
    """Closes the group of a handle in the middle of one that goes: it begins anew with the next one."""
    handle = facts.handle
    if handle is None or handle.get_place is None or not call.options & _GROUPS:
        return None
    is_of_it = handle.get_place.group_id == message.descriptor.group_id
    return SetPlace(handle.handle, Side.GET, None) if is_of_it else None


def _what_came_of_it(replies: list[Reply]) -> Reply:
    """Returns the message that was handed out after all, or the answer to look again."""
    return _look_again() if isinstance(replies[0], Done) else replies[0]


def _first(replies: list[Reply]) -> Reply:
    return replies[0]


def _look_again() -> Refused:
    return Refused(reason=Reason.NO_MSG_AVAILABLE.value)


def _put(message: StoredMessage, to_q_name: str, why: str, facts: Facts, now: int, ids: Ids) -> Decision | str:
    """Puts the message onto the queue, or returns what hinders that; MQRO_DISCARD_MSG asks for no dead letter."""
    descriptor = counted_anew(message.descriptor, now)
    try:
        if to_q_name:
            done = moved(message, to_q_name, descriptor, message.data, facts, now, ids)
            return _with_event(done, to_q_name, message, why)
        if descriptor.report & _DISCARD:
            return _with_event(Decision(changes=[RemoveMessage(message)]), "", message, why)
        return _dead_letter(message, descriptor, why, facts, now, ids)
    except MQError as error:
        return str(error)


def _dead_letter(
    message: StoredMessage, descriptor: MessageDescriptor, why: str, facts: Facts, now: int, ids: Ids
) -> Decision | str:
    """Puts it behind an MQDLH onto the dead-letter queue, which may trigger."""
    to_q_name = facts.q_mgr.dead_letter_q_name
    data = header(_REACHED, message.q_name, descriptor, facts.q_mgr.name, now) + message.data
    if hindered := why_not(facts, len(data)):
        return hindered
    done = moved(message, to_q_name, dead_descriptor(descriptor), data, facts, now, ids)
    return _with_event(ends_here(done, to_q_name), to_q_name, message, why)


def _reports(messages: Iterable[StoredMessage], facts: Facts, now: int) -> list[Call]:
    """Returns the reports to senders who asked for them (MQRO_EXCEPTION): the messages did not reach their queue."""
    return [report for message in messages for report in exception_report(message, _REACHED.value, facts, now)]


def _no_room(count: int, facts: Facts) -> str:
    """Returns why several do not fit: they go all together or not at all."""
    queue = facts.queue
    if queue is None or queue.lying + count <= queue.definition.max_q_depth:
        return ""
    return f"{queue.definition.name}: MAXDEPTH({queue.definition.max_q_depth}), and {count} go together"


def _with_event(decision: Decision, to_q_name: str, message: StoredMessage, why: str) -> Decision:
    before = message.descriptor
    event = PoisonMoved(message.q_name, to_q_name, before.msg_id, before.backout_count, why)
    return replace(decision, events=(event, *decision.events))


def _kept(message: StoredMessage, before: str, why: str) -> PoisonKept:
    hindered = "; ".join(part for part in (before, f"the dead-letter queue: {why}") if part)
    return PoisonKept(message.q_name, message.descriptor.msg_id, message.descriptor.backout_count, hindered)
