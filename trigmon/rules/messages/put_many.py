"""Several puts of one frame: one decision where nothing tells the messages apart, else one put after the other."""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.calls import Put, PutMany
from trigmon.mq.descriptors import NO_ID
from trigmon.mq.enums import PutOption, TriggerControl, Usage
from trigmon.mq.errors import BufferLengthError
from trigmon.mq.replies import Reply, WasPut, WerePut
from trigmon.rules.messages import put
from trigmon.rules.messages.expiry import capped
from trigmon.rules.messages.transmission import as_it_lies
from trigmon.rules.messages.units_of_work import check_limit, joined_unit
from trigmon.rules.model.changes import AddMessage
from trigmon.rules.model.decision import Decision, Ids, Judged
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.stored_messages import Found

MOST_BODIES = 4096
"""What one PutMany carries at most: all of it is one step, during which no other client is served."""

_PLAIN_OPTIONS = sum(
    option.value
    for option in (
        PutOption.SYNCPOINT,
        PutOption.NO_SYNCPOINT,
        PutOption.NEW_MSG_ID,
        PutOption.NEW_CORREL_ID,
        PutOption.DEFAULT_CONTEXT,
        PutOption.NO_CONTEXT,
        PutOption.FAIL_IF_QUIESCING,
    )
)


def decide_put_many(call: PutMany, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides several puts; the refusal of one refuses all."""
    if len(call.bodies) > MOST_BODIES:
        raise BufferLengthError(f"bodies: {len(call.bodies)} in one put_many, at most {MOST_BODIES}")
    if call.bodies and _are_plain(call, facts):
        return _put_together(call, facts, now, ids)
    puts = [
        Put(
            handle=call.handle,
            q_name=call.q_name,
            descriptor=call.descriptor,
            data=body,
            options=call.options,
            unit=call.unit,
        )
        for body in call.bodies
    ]

    def gather(replies: list[Reply]) -> Reply:
        warning = max((reply.warning for reply in replies), default=0)
        return WerePut(msg_ids=[r.msg_id for r in replies if isinstance(r, WasPut)], warning=warning)

    return Decision(internal_calls=list(puts), gather=gather)


def _are_plain(call: PutMany, facts: Facts) -> bool:
    """Returns whether the messages differ in their ids and content alone, and none of them can fire a trigger here.

    A shared queue is judged behind the call or the commit that makes them available.
    """
    queue, handle = facts.queue, facts.handle
    if queue is None or facts.remote is not None or queue.definition.usage is not Usage.NORMAL:
        return False
    if handle is not None and (handle.route is not None or handle.put_place is not None):
        return False
    given = call.descriptor
    if given.msg_flags or given.report or given.feedback or call.options & ~_PLAIN_OPTIONS:
        return False
    return queue.shared is not None or queue.definition.trigger_control is TriggerControl.OFF


def _put_together(call: PutMany, facts: Facts, now: int, ids: Ids) -> Decision:
    """Decides puts that are plain as one, with the checks of each in the order in which single puts meet them."""
    first = Put(
        handle=call.handle, q_name=call.q_name, descriptor=call.descriptor, options=call.options, unit=call.unit
    )
    queue, opened, _ = put.destination(first, facts)
    put.check_descriptor(call.descriptor)
    unit_id, changes = joined_unit(call.options, call.unit, facts, now, ids)
    number = ids.message()
    descriptor, warning = put.resolved(first, facts, opened, ids.msg_id(number), now)
    placed, _ = as_it_lies(queue, None, descriptor, b"", facts, now, ids)
    placed = capped(placed, queue, facts)
    expires_ms = now + placed.expiry * 100 if placed.expiry > 0 else 0
    is_own_id = call.descriptor.msg_id != NO_ID and not call.options & PutOption.NEW_MSG_ID
    is_new_correl_id = bool(call.options & PutOption.NEW_CORREL_ID)
    added: list[AddMessage] = []
    for arriving, body in enumerate(call.bodies, 1):
        if arriving > 1:
            number = ids.message()
            msg_id = ids.msg_id(number)
            placed = replace(
                placed,
                msg_id=placed.msg_id if is_own_id else msg_id,
                correl_id=msg_id if is_new_correl_id else placed.correl_id,
            )
        put.check_room(queue, len(body), facts, arriving)
        if unit_id:
            check_limit(facts, arriving)
        added.append(put.added_message(facts, queue, placed, body, number, expires_ms, unit_id))
    judged: tuple[Judged, ...] = ()
    if queue.shared is None:
        last = _before_the_last(queue, added)
        situation = put.put_situation(facts, last, min(placed.priority, facts.q_mgr.max_priority), now)
        judged = (Judged(situation, None, len(added)),)
    reply = WerePut(msg_ids=[message.descriptor.msg_id for message in added], warning=warning)
    return Decision(reply, [*changes, *added], judged=judged)


def _before_the_last(queue: QueueFacts, added: list[AddMessage]) -> QueueFacts:
    """Returns the queue as the last of these messages finds it."""
    depths = list(queue.depths)
    depths[added[-1].priority] += len(added) - 1
    return replace(queue, depths=tuple(depths))
