"""Several puts of one frame: one decision where nothing tells the messages apart, else one put after the other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec.structs import replace

from trigmon.mq.calls import Put, PutMany
from trigmon.mq.compatibility import COMMAND_INPUT_Q
from trigmon.mq.enums import TriggerControl
from trigmon.mq.errors import BufferLengthError, MQError
from trigmon.mq.replies import Reply, WasPut, WerePut
from trigmon.rules.messages.put import check_room, command_puts, described_all, planned, planned_message, put_situation
from trigmon.rules.messages.units_of_work import check_limit, joined_unit
from trigmon.rules.model.alike_puts import WithAlikePuts
from trigmon.rules.model.changes import AddMessage, AnyChange
from trigmon.rules.model.decision import Decision, Ids, Judged
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.handles import PutPlan
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.stored_messages import Found

MOST_BODIES = 4096
"""What one PutMany carries at most: all of it is one step, during which no other client is served."""


def decide_put_many(call: PutMany, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides several puts; the refusal of one refuses all."""
    if len(call.bodies) > MOST_BODIES:
        raise BufferLengthError(f"bodies: {len(call.bodies)} in one put_many, at most {MOST_BODIES}")
    if call.bodies and _is_untriggered(facts.queue):
        queue, plan, changes = planned(call, facts)
        if _are_plain(call, plan, facts):
            return _put_together(call, queue, plan, changes, facts, now, ids)
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


def _is_untriggered(queue: QueueFacts | None) -> bool:
    """Returns whether a put fires no trigger here.

    A shared queue is judged behind the call or the commit that makes the messages available.
    """
    return queue is not None and (queue.shared is not None or queue.definition.trigger_control is TriggerControl.OFF)


def _are_plain(call: PutMany, plan: PutPlan, facts: Facts) -> bool:
    """Returns whether the messages differ in their ids and content alone, and none of them is answered by a report."""
    has_place = facts.handle is not None and facts.handle.put_place is not None
    return plan.is_plain and not has_place and not call.descriptor.report


def _put_together(
    call: PutMany, queue: QueueFacts, plan: PutPlan, changes: list[AnyChange], facts: Facts, now: int, ids: Ids
) -> Decision:
    """Decides puts that are plain as one, with the checks of each in the order in which single puts meet them."""
    unit_id, begins = joined_unit(call.options, call.unit, facts, now, ids)
    _check_all(queue, call.bodies, unit_id, facts)
    numbers = [ids.message() for _ in call.bodies]
    descriptors = described_all(plan, call.descriptor, [ids.msg_id(number) for number in numbers], now)
    added = [
        planned_message(plan, descriptor, body, number, unit_id, now)
        for number, descriptor, body in zip(numbers, descriptors, call.bodies, strict=True)
    ]
    judged: tuple[Judged, ...] = ()
    if queue.shared is None:
        last = _before_the_last(queue, added)
        situation = put_situation(facts, last, min(plan.descriptor.priority, facts.q_mgr.max_priority), now)
        judged = (Judged(situation, None, len(added)),)
    reply = WerePut(msg_ids=[message.descriptor.msg_id for message in added], warning=plan.warning)
    events = command_puts(added, call.options, queue, facts) if plan.definition.name == COMMAND_INPUT_Q else ()
    return Decision(reply, WithAlikePuts([*changes, *begins], added), events=events, judged=judged)


def _check_all(queue: QueueFacts, bodies: Sequence[bytes], unit_id: int, facts: Facts) -> None:
    """Raises what the first of the puts raises that is refused; none is where all of them and the longest have room."""
    with suppress(MQError):
        _check(queue, max(map(len, bodies)), len(bodies), unit_id, facts)
        return
    for arriving, body in enumerate(bodies, 1):
        _check(queue, len(body), arriving, unit_id, facts)


def _check(queue: QueueFacts, length: int, arriving: int, unit_id: int, facts: Facts) -> None:
    check_room(queue, length, facts, arriving)
    if unit_id:
        check_limit(facts, arriving)


def _before_the_last(queue: QueueFacts, added: list[AddMessage]) -> QueueFacts:
    """Returns the queue as the last of these messages finds it."""
    depths = list(queue.depths)
    depths[added[-1].priority] += len(added) - 1
    return replace(queue, depths=tuple(depths))
