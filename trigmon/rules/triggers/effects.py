"""What follows when a verdict fires: the trigger message, its stamp, and DEPTH switching itself off.

A trigger message that its initiation queue cannot take goes to the dead-letter queue by an internal call; a full or
too small initiation queue is no condition. One raised in a unit of work stays hidden until the unit ends: for EVERY
only commit releases it, for FIRST and DEPTH backout does too (seed 001, after condition 10).
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from trigmon.mq.attributes import LocalQueue, Process
from trigmon.mq.calls import Call
from trigmon.mq.descriptors import (
    CCSID_UTF8,
    EXPIRY_UNLIMITED,
    FORMAT_TRIGGER,
    ID_LENGTH,
    TM_LENGTH,
    MessageDescriptor,
    TriggerMessage,
    pack_tm,
)
from trigmon.mq.enums import ApplType, ObjectType, Persistence, TriggerControl, TriggerType
from trigmon.mq.reasons import Reason
from trigmon.rules.model.changes import AddMessage, AnyChange, SetDefinition, StampTrigger
from trigmon.rules.model.decision import Ids, Judged
from trigmon.rules.model.events import TriggerFired
from trigmon.rules.model.group_changes import NoteTriggered
from trigmon.rules.model.internal_calls import DeadLetter
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.triggers.extensions import disarmed
from trigmon.rules.triggers.sharing import in_group
from trigmon.rules.triggers.table import judge


class Effects(msgspec.Struct, frozen=True):
    """What triggering adds to a decision. ``in_unit`` counts what it puts into the caller's unit of work itself.

    ``judged`` is there whether it fired or not.
    """

    changes: list[AnyChange] = []
    internal_calls: list[Call] = []
    events: tuple[TriggerFired, ...] = ()
    in_unit: int = 0
    judged: tuple[Judged, ...] = ()


NO_EFFECTS = Effects()


def trigger_message(queue: QueueFacts, process: Process | None) -> TriggerMessage:
    """Returns the trigger message with the values in force at the moment of the event (condition 6 for blanks)."""
    definition = queue.definition
    if process is None:
        return TriggerMessage(
            q_name=definition.name, trigger_data=definition.trigger_data, appl_type=int(ApplType.UNKNOWN)
        )
    return TriggerMessage(
        q_name=definition.name,
        process_name=process.name,
        trigger_data=definition.trigger_data,
        appl_type=int(process.appl_type),
        appl_id=process.appl_id,
        env_data=process.env_data,
        user_data=process.user_data,
    )


MOMENT = b"MOMENT "
"""What CorrelId begins with in the trigger message of a schedule; its moment follows, in ms since 1970."""
REPEATS = b"RUN "
"""What CorrelId begins with in the trigger message of a repeated run; the run it repeats follows."""


def trigger_descriptor(
    priority: int, q_mgr_name: str, msg_id: bytes, now: int, occasion: str, traceparent: str = ""
) -> MessageDescriptor:
    """Returns the MQMD of a trigger message: not persistent, never expiring, by the queue manager.

    ApplOriginData, four characters that IBM leaves blank here, names the occasion that fired. ``traceparent`` is that
    of the put that fired.
    """
    return MessageDescriptor(
        coded_char_set_id=CCSID_UTF8,
        expiry=EXPIRY_UNLIMITED,
        format=FORMAT_TRIGGER,
        priority=priority,
        persistence=int(Persistence.NOT_PERSISTENT),
        msg_id=msg_id,
        reply_to_q_mgr=q_mgr_name,
        put_appl_type=int(ApplType.QMGR),
        put_appl_name=q_mgr_name[:28],
        put_ms=now,
        appl_origin_data=occasion,
        traceparent=traceparent,
    )


def moment_text(moment_ms: int) -> bytes:
    """Returns how a trigger message names the moment of its schedule."""
    return MOMENT + str(moment_ms).encode()


def of_moment(descriptor: MessageDescriptor, schedule: str, moment_ms: int) -> MessageDescriptor:
    """Returns the MQMD of a schedule's trigger message. ReplyToQ, which IBM leaves blank here, names the schedule."""
    return replace(_lasting(descriptor, moment_text(moment_ms)), reply_to_q=schedule)


def of_repetition(descriptor: MessageDescriptor, run_id: str) -> MessageDescriptor:
    """Returns the MQMD of the trigger message of a run that is repeated."""
    return _lasting(descriptor, REPEATS + run_id.encode())


def _lasting(descriptor: MessageDescriptor, about: bytes) -> MessageDescriptor:
    """Returns a persistent MQMD: 13c makes up for a lost trigger message, but not for a moment or a repetition.

    What a monitor wrote into a record may be too long for a CorrelId, and is cut.
    """
    correl_id = about[:ID_LENGTH].ljust(ID_LENGTH, b"\0")
    return replace(descriptor, persistence=int(Persistence.PERSISTENT), correl_id=correl_id)


def trigger(
    situation: Situation, q_mgr_name: str, ids: Ids, unit_id: int = 0, placed: int = 0, traceparent: str = ""
) -> Effects:
    """Judges, and returns what follows. ``placed`` counts trigger messages this call already put on the same queue.

    ``traceparent`` is that of the put that is judged, blank where it has none or something else happened.
    """
    if situation.happened is Happened.PUT and situation.queue.definition.trigger_control is TriggerControl.OFF:
        return Effects(judged=(Judged(situation, None),))  # both occasions of a put require condition 9
    if situation.queue.shared is not None:
        situation = in_group(situation)
    verdict = judge(situation)
    judged = (Judged(situation, verdict),)
    if not verdict.occasion or situation.initiation is None:
        return Effects(judged=judged)
    queue, definition = situation.queue, situation.queue.definition
    initiation = situation.initiation.definition
    changes: list[AnyChange] = []
    internal_calls: list[Call] = []
    if situation.happened is Happened.PUT and initiation.name == definition.name:
        placed += situation.arriving  # what is being put lies on it as well
    due = situation.due if situation.happened is Happened.MONITOR_OPENED else 1
    for number in range(due):
        written = _written(
            situation, initiation, verdict.occasion, q_mgr_name, ids, unit_id, placed + number, traceparent
        )
        if isinstance(written, AddMessage):
            changes.append(written)
        else:
            internal_calls.append(written)
    in_unit = len(changes) if unit_id else 0
    if definition.name:
        changes.append(StampTrigger(definition.name, situation.now))
    # The depth did not bring a schedule's moment, so control stays as it is.
    is_disarmed = definition.trigger_type is TriggerType.DEPTH and situation.happened is not Happened.MOMENT
    if queue.shared is not None:
        changes.append(NoteTriggered(definition.name, initiation.is_shared, is_disarmed))
    if is_disarmed:
        changes.append(SetDefinition(ObjectType.QLOCAL, disarmed(definition)))
    return Effects(changes, internal_calls, (TriggerFired(definition.name, verdict),) * due, in_unit, judged)


def _written(
    situation: Situation,
    to: LocalQueue,
    occasion: str,
    q_mgr_name: str,
    ids: Ids,
    unit_id: int,
    placed: int,
    traceparent: str,
) -> AddMessage | DeadLetter:
    """Writes one trigger message, on its initiation queue, or to the dead-letter queue where that cannot take it."""
    assert situation.initiation is not None
    message = trigger_message(situation.queue, situation.process)
    on_backout = situation.queue.definition.trigger_type is not TriggerType.EVERY
    number = ids.message()
    descriptor = trigger_descriptor(
        to.def_priority, q_mgr_name, ids.msg_id(number), situation.now, occasion, traceparent
    )
    if situation.schedule is not None:
        descriptor = of_moment(descriptor, situation.schedule.name, situation.moment_ms)
    if (why := _why_not(situation.initiation, placed)) is not None:
        return DeadLetter(
            q_name=situation.queue.definition.name,
            initiation_q=to.name,
            reason=why,
            message=message,
            descriptor=descriptor,
            unit_id=unit_id,
            on_backout=on_backout,
        )
    return AddMessage(
        q_name=to.name,
        number=number,
        priority=to.def_priority,
        is_persistent=descriptor.persistence == Persistence.PERSISTENT,
        descriptor=descriptor,
        data=pack_tm(message),
        unit_id=unit_id,
        is_held=unit_id != 0,
        on_backout=on_backout,
        trigger=message,
    )


def _why_not(initiation: QueueFacts, placed: int) -> Reason | None:
    """Returns why the initiation queue cannot take one more trigger message; None when it can."""
    if initiation.lying + placed >= initiation.definition.max_q_depth:
        return Reason.Q_FULL
    if initiation.definition.max_msg_length < TM_LENGTH:
        return Reason.MSG_TOO_BIG_FOR_Q
    return None
