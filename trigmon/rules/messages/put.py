"""MQPUT and MQPUT1: what is checked, what the descriptor becomes, and what is written.

The message is placed and counted at its counted priority: its own, or the queue's DEFPRTY on a FIFO queue.
Deciding a put judges its triggering in the same step, so a put that fires writes two messages instead of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from trigmon.mq.calls import Put, PutMany
from trigmon.mq.compatibility import COMMAND_INPUT_Q
from trigmon.mq.descriptors import NO_ID, MessageDescriptor
from trigmon.mq.enums import Persistence, PutOption, Usage
from trigmon.mq.errors import MsgTooBigForQ, MsgTooBigForQMgr, QFull
from trigmon.mq.replies import Reply, WasPut
from trigmon.rules.messages.context import CONTEXT_WAYS, ORDINARY_WAYS, context_for
from trigmon.rules.messages.expiry import capped
from trigmon.rules.messages.logical_put import LOGICAL_ORDER, check_flags, put_in_order
from trigmon.rules.messages.put_plan import put_plan, without_ids
from trigmon.rules.messages.reports import arrival_reports
from trigmon.rules.messages.segmentation import piece_length, segments
from trigmon.rules.messages.transmission import as_it_lies, head_length
from trigmon.rules.messages.units_of_work import SYNCPOINT, check_limit, joined_unit
from trigmon.rules.model.changes import AddMessage, AnyChange
from trigmon.rules.model.decision import DONE, Decision, Ids
from trigmon.rules.model.events import CommandPut
from trigmon.rules.model.facts import Facts, Wants
from trigmon.rules.model.handle_changes import KeepPutPlan
from trigmon.rules.model.handles import PutPlan, Route
from trigmon.rules.model.internal_calls import Deliver
from trigmon.rules.model.queue_facts import QueueFacts, counted_priority
from trigmon.rules.model.resolve_name import base_queue
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.model.stored_messages import Found
from trigmon.rules.triggers.effects import NO_EFFECTS, trigger

_PERSISTENT = Persistence.PERSISTENT.value
_NEW_MSG_ID = PutOption.NEW_MSG_ID.value
_NEW_CORREL_ID = PutOption.NEW_CORREL_ID.value


def wants_put(call: Put, connection: int) -> Wants:
    """Returns the facts that a put needs."""
    return Wants(connection, call.q_name, None, call.handle, context=call.context)


def decide_put(call: Put, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides MQPUT through a handle, or MQPUT1 by name."""
    queue, plan, changes = planned(call, facts)
    unit_id = 0
    if call.options & SYNCPOINT:
        unit_id, begins = joined_unit(call.options, call.unit, facts, now, ids)
        changes += begins
    number = ids.message()
    descriptor, warning = described(plan, call.descriptor, ids.msg_id(number), now), plan.warning
    if plan.is_plain and (facts.handle is None or facts.handle.put_place is None):
        check_room(queue, len(call.data), facts)
        messages = [planned_message(plan, descriptor, call.data, number, unit_id, now)]
    else:
        if call.options & CONTEXT_WAYS not in ORDINARY_WAYS:
            descriptor = replace(descriptor, **context_for(call, facts, now))
        descriptor, warning, moves = _in_its_place(call, plan, descriptor, unit_id, facts, ids)
        changes += moves
        messages = _messages(call, queue, plan.route, descriptor, number, unit_id, facts, now, ids)
    reply = WasPut(
        msg_id=descriptor.msg_id,
        correl_id=descriptor.correl_id,
        priority=descriptor.priority,
        persistence=descriptor.persistence,
        put_ms=now,
        warning=warning,
        group_id=descriptor.group_id,
        msg_seq_number=descriptor.msg_seq_number,
        offset=descriptor.offset,
    )
    decision = _placed(facts, queue, messages, now, ids, changes, reply)
    if messages[0].q_name == COMMAND_INPUT_Q:
        decision = replace(decision, events=(*decision.events, *command_puts(messages, call.options, queue, facts)))
    if not messages[0].descriptor.report:
        return decision
    return replace(
        decision, internal_calls=[*decision.internal_calls, *arrival_reports(decision.changes, queue, facts, now)]
    )


def planned(call: Put | PutMany, facts: Facts) -> tuple[QueueFacts, PutPlan, list[AnyChange]]:
    """Returns the local queue of a put, its plan, and the change by which its handle keeps a new one.

    Raises the reasons of :func:`put_plan`.
    """
    handle, there = facts.handle, facts.queue
    kept = handle.put_plan if handle is not None else None
    if kept is not None and there is not None and is_for(kept, call, facts, there):
        return there, kept, []
    queue, plan = put_plan(call, facts)
    if handle is None or not plan.is_plain:
        return queue, plan, []
    return queue, plan, [KeepPutPlan(handle.handle, plan)]


def is_for(plan: PutPlan, call: Put | PutMany, facts: Facts, queue: QueueFacts) -> bool:
    """Returns whether the plan that its handle keeps holds, and a put is of its kind."""
    return (
        queue.definition is plan.definition
        and facts.alias is plan.alias
        and facts.q_mgr is plan.q_mgr
        and call.options == plan.options
        and (call.descriptor == plan.given or without_ids(call.descriptor) == plan.given)
        and not queue.is_deleted
    )


def described(plan: PutPlan, given: MessageDescriptor, msg_id: bytes, now: int) -> MessageDescriptor:
    """Returns the descriptor that the plan has, with the ids, time and span of one put; ``msg_id`` is the new one."""
    return replace(
        plan.descriptor,
        msg_id=msg_id if given.msg_id == NO_ID or plan.options & _NEW_MSG_ID else given.msg_id,
        correl_id=msg_id if plan.options & _NEW_CORREL_ID else given.correl_id,
        put_ms=now,
        traceparent=given.traceparent,
    )


def described_all(
    plan: PutPlan, given: MessageDescriptor, msg_ids: Sequence[bytes], now: int
) -> list[MessageDescriptor]:
    """Returns as :func:`described` the descriptors of several puts; most differ in their MsgId alone."""
    first = described(plan, given, msg_ids[0], now)
    if first.msg_id != msg_ids[0] or plan.options & _NEW_CORREL_ID:
        return [described(plan, given, msg_id, now) for msg_id in msg_ids]
    return [replace(first, msg_id=msg_id) for msg_id in msg_ids]


def planned_message(
    plan: PutPlan, descriptor: MessageDescriptor, data: bytes, number: int, unit_id: int, now: int
) -> AddMessage:
    """Returns the change that puts a message by a plain plan."""
    return AddMessage(
        plan.definition.name,
        number,
        plan.priority,
        descriptor.persistence == _PERSISTENT,
        descriptor,
        data,
        now + descriptor.expiry * 100 if descriptor.expiry > 0 else 0,
        unit_id,
    )


def command_puts(added: Iterable[AddMessage], options: int, queue: QueueFacts, facts: Facts) -> tuple[CommandPut, ...]:
    """Returns who put these messages on the command queue, for the command server.

    A program that passes a context on or sets one puts what another has written: that has not the program's rights.
    The group gives messages on a shared queue other numbers than these.
    """
    is_own = options & CONTEXT_WAYS in ORDINARY_WAYS and queue.shared is None
    by = facts.connection if is_own else None
    return tuple(CommandPut(each.number, by, each.unit_id) for each in added)


def _in_its_place(
    call: Put, plan: PutPlan, descriptor: MessageDescriptor, unit_id: int, facts: Facts, ids: Ids
) -> tuple[MessageDescriptor, int, list[AnyChange]]:
    """Returns the descriptor with the message's place in a group, the warning, and the change of the handle's place."""
    handle, flags = facts.handle, call.descriptor.msg_flags
    if not flags and not call.options & LOGICAL_ORDER and (handle is None or handle.put_place is None):
        return descriptor, plan.warning, []
    check_flags(flags, is_transmitted=plan.definition.usage is Usage.TRANSMISSION)
    ordered = put_in_order(call, handle, descriptor, unit_id, ids)
    return ordered.descriptor, ordered.warning or plan.warning, ordered.changes


def decide_deliver(call: Deliver, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides the put of a message moved by an operator, or of the queue manager's own: its descriptor stays."""
    queue, route = base_queue(call.q_name, facts)
    descriptor, number = call.descriptor, ids.message()
    check_room(queue, len(call.data) + (head_length(descriptor) if route is not None else 0), facts)
    if route is not None and call.expires_ms:
        descriptor = replace(descriptor, expiry=max(1, (call.expires_ms - now) // 100))
    descriptor, data = as_it_lies(queue, route, descriptor, call.data, facts, now, ids)
    added = added_message(facts, queue, descriptor, data, number, call.expires_ms, call.unit_id)
    return _placed(facts, queue, [added], now, ids, [], DONE)


def put_situation(facts: Facts, queue: QueueFacts, priority: int, now: int, arriving: int = 1) -> Situation:
    """Returns the situation that a put of this priority meets; ``explain`` judges the same one."""
    return Situation(
        Happened.PUT,
        queue,
        facts.process,
        facts.initiation,
        facts.q_mgr.trigger_interval,
        now,
        counted_priority(queue.definition, priority),
        priority,
        arriving,
    )


def check_room(queue: QueueFacts, length: int, facts: Facts, arriving: int = 1) -> None:
    """Raises MsgTooBigForQ (2030), MsgTooBigForQMgr (2031), or QFull (2053) where no place is left for so many."""
    definition = queue.definition
    if length > definition.max_msg_length:
        raise MsgTooBigForQ(f"{definition.name}: {length} bytes, MAXMSGL({definition.max_msg_length})")
    if length > facts.q_mgr.max_msg_length:
        raise MsgTooBigForQMgr(f"{length} bytes, the queue manager's MAXMSGL({facts.q_mgr.max_msg_length})")
    if queue.lying + arriving > definition.max_q_depth:
        raise QFull(f"{definition.name}: MAXDEPTH({definition.max_q_depth})")


def _messages(
    call: Put,
    queue: QueueFacts,
    route: Route | None,
    descriptor: MessageDescriptor,
    number: int,
    unit_id: int,
    facts: Facts,
    now: int,
    ids: Ids,
) -> list[AddMessage]:
    """Returns the message that a put adds to the queue, or the segments into which it is cut.

    Raises the reasons of :func:`check_room`, :func:`piece_length` and :func:`as_it_lies`.
    """
    length, head = len(call.data), head_length(descriptor) if route is not None else 0
    piece = piece_length(descriptor, length, head, queue, facts, unit_id) if call.descriptor.msg_flags else 0
    # What is put straight onto a transmission queue is held against its header as the application made it.
    lasting = descriptor if route is None else capped(descriptor, queue, facts)
    if piece:
        pieces = segments(lasting, call.data, piece)
        check_room(queue, head + piece, facts, len(pieces))
        lying = [as_it_lies(queue, route, *each, facts, now, ids) for each in pieces]
        (placed, data), *further = [(capped(each, queue, facts), data) for each, data in lying]
    else:
        check_room(queue, head + length, facts)
        placed, data = as_it_lies(queue, route, lasting, call.data, facts, now, ids)
        placed, further = capped(placed, queue, facts), []
    expires_ms = now + placed.expiry * 100 if placed.expiry > 0 else 0
    added = added_message(facts, queue, placed, data, number, expires_ms, unit_id)
    return _with_segments(added, further, ids) if further else [added]


def added_message(
    facts: Facts,
    queue: QueueFacts,
    descriptor: MessageDescriptor,
    data: bytes,
    number: int,
    expires_ms: int,
    unit_id: int,
) -> AddMessage:
    """Returns the change that puts this message on the queue, at its counted priority."""
    priority = min(descriptor.priority, facts.q_mgr.max_priority)
    return AddMessage(
        queue.definition.name,
        number,
        counted_priority(queue.definition, priority),
        descriptor.persistence == Persistence.PERSISTENT,
        descriptor,
        data,
        expires_ms,
        unit_id,
    )


def _with_segments(first: AddMessage, further: Iterable[tuple[MessageDescriptor, bytes]], ids: Ids) -> list[AddMessage]:
    """Returns the first segment and those behind it, which have its place in all but the number and the content."""
    return [
        first,
        *(
            replace(first, number=ids.message(), descriptor=segment, data=body, is_further=True)
            for segment, body in further
        ),
    ]


def _placed(
    facts: Facts, queue: QueueFacts, added: list[AddMessage], now: int, ids: Ids, begins: list[AnyChange], reply: Reply
) -> Decision:
    """Returns the decision of a put: the message, or its segments, and what its arrival triggers.

    All segments are there before the put is judged, once (seed 001, note 2), and MAXUMSGS counts them as one.
    """
    unit_id = added[0].unit_id
    priority = min(added[0].descriptor.priority, facts.q_mgr.max_priority)
    # A shared queue is judged when what was put is committed, by each member behind the call that does it.
    if queue.shared is None:
        situation = put_situation(facts, queue, priority, now, len(added))
        traceparent = added[0].descriptor.traceparent
        effects = trigger(situation, facts.q_mgr.name, ids, unit_id, traceparent=traceparent)
    else:
        effects = NO_EFFECTS
    if unit_id:
        check_limit(facts, 1 + effects.in_unit)
    changes = [*begins, *added, *effects.changes]
    return Decision(reply, changes, effects.internal_calls, effects.events, judged=effects.judged)
