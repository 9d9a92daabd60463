"""MQCLOSE, MQDISC and lost connections. The last reader's close is occasion 12; uncommitted work survives a close.

A close that leaves a group or logical message unfinished, put or got in logical order, completes with a warning.
"""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.calls import Call, Close, Commit, Disconnect, LostConnection
from trigmon.mq.enums import CloseOption, DefinitionType, ObjectType, OpenOption
from trigmon.mq.errors import HobjError, OptionNotValidForType, OptionsError, QNotEmpty
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Done
from trigmon.rules.messages.browse_lock import released
from trigmon.rules.messages.skip_backout import LARGEST_UNIT
from trigmon.rules.model.access import check_may_delete
from trigmon.rules.model.changes import AnyChange, DeleteLogically, DropDefinition, SetDefinition
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.handle_changes import CloseHandle, DropConnection
from trigmon.rules.model.handles import ConnectionFacts, HandleFacts
from trigmon.rules.model.internal_calls import Abandon, Forget, LeaveReservation, Reap
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.situation import Happened, Situation
from trigmon.rules.model.stored_messages import Found
from trigmon.rules.triggers.effects import trigger
from trigmon.rules.triggers.extensions import comes_back, left_by_readers, rearmed

_INPUT = (OpenOption.INPUT_SHARED | OpenOption.INPUT_EXCLUSIVE).value


def decide_close(call: Close, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides MQCLOSE."""
    handle = facts.handle
    if handle is None:
        raise HobjError(f"handle {call.handle}")
    if call.options & ~3 or call.options == 3:
        raise OptionsError(f"close options {call.options:#x}")
    changes: list[AnyChange] = [*released(handle), CloseHandle(handle.handle)]
    reply = Done(warning=_left_unfinished(handle))
    queue = facts.queue
    if _deletes(call, handle, queue, facts.connection) or (queue is not None and queue.is_deleted):
        return Decision(reply, [*changes, *_deleted(queue)])
    if queue is None or not handle.options & _INPUT:
        return Decision(reply, changes)
    left = queue.open_input_count - 1
    closed = replace(queue, open_input_count=left, open_exclusive=False)
    if queue.shared is not None:
        return Decision(reply, [*changes, *_armed(closed)])  # each member judges it behind the close
    initiation = facts.initiation
    if initiation is not None and initiation.definition.name == queue.definition.name:
        initiation = closed
    situation = Situation(
        Happened.CLOSE,
        closed,
        facts.process,
        initiation,
        facts.q_mgr.trigger_interval,
        now,
        had_readers=queue.open_input_count,
    )
    effects = trigger(situation, facts.q_mgr.name, ids)
    changes += _armed(closed)
    return Decision(reply, [*changes, *effects.changes], effects.internal_calls, effects.events, judged=effects.judged)


def _armed(closed: QueueFacts) -> list[AnyChange]:
    """Returns what REARM(AUTO) adds to a close: control comes back, or a note that its last reader left messages."""
    if comes_back(closed):
        return [SetDefinition(ObjectType.QLOCAL, rearmed(closed.definition))]
    noted = left_by_readers(closed)
    return [SetDefinition(ObjectType.QLOCAL, noted)] if noted != closed.definition else []


def _left_unfinished(handle: HandleFacts) -> int:
    """Returns the warning for what was left unfinished in logical order: a message's before a group's, 0 for none."""
    places = [place for place in (handle.put_place, handle.get_place) if place is not None and place.is_logical]
    if any(place.in_message for place in places):
        return Reason.INCOMPLETE_MSG.value
    return Reason.INCOMPLETE_GROUP.value if any(place.in_group for place in places) else 0


def _deletes(call: Close, handle: HandleFacts, queue: QueueFacts | None, connection: ConnectionFacts) -> bool:
    """Returns whether this close deletes the queue: a temporary one with its creating handle, a permanent one if asked.

    Raises OptionNotValidForType (2045) where nothing can be deleted so, QNotEmpty (2055) for a permanent queue with
    messages (unless purged) or uncommitted work, NotAuthorized (2035) for another user's.
    """
    is_own = queue is not None and handle.object_name == queue.definition.name
    kind = queue.definition.definition_type if queue is not None and is_own else DefinitionType.PREDEFINED
    if queue is not None and queue.is_deleted:
        return False
    if kind is DefinitionType.TEMPORARY_DYNAMIC and handle.is_creator:
        return True
    if not call.options:
        return False
    if queue is None or kind is not DefinitionType.PERMANENT_DYNAMIC:
        raise OptionNotValidForType(f"{handle.object_name} cannot be deleted by closing this handle")
    if not handle.is_creator:
        check_may_delete(queue.definition, connection)
    if queue.uncommitted_puts or queue.uncommitted_gets or queue.reserved:
        raise QNotEmpty(f"{handle.object_name} has uncommitted or reserved messages")
    if queue.depth and call.options == CloseOption.DELETE:
        raise QNotEmpty(f"{handle.object_name} holds {queue.depth} messages; DELETE_PURGE deletes them with it")
    return True


def _deleted(queue: QueueFacts | None) -> list[AnyChange]:
    """Returns the changes that delete a queue as its handle closes: at once, or logically while it is in use.

    A deleted queue is no occasion: what waits on it goes with it.
    """
    if queue is None:
        return []
    name = queue.definition.name
    is_temporary = queue.definition.definition_type is DefinitionType.TEMPORARY_DYNAMIC
    if queue.in_use <= 1:
        return [DropDefinition(ObjectType.QLOCAL, name, is_temporary)]
    return [] if queue.is_deleted else [DeleteLogically(name, is_temporary)]


def decide_reap(call: Reap, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides to remove a logically deleted queue once no handle and no uncommitted message is left."""
    queue = facts.queue
    if queue is None or not queue.is_deleted or queue.in_use:
        return Decision(Done())
    is_temporary = queue.definition.definition_type is DefinitionType.TEMPORARY_DYNAMIC
    return Decision(Done(), [DropDefinition(ObjectType.QLOCAL, call.q_name, is_temporary)])


def decide_disconnect(call: Disconnect, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides MQDISC: a commit, then a close of every handle in the order of opening."""
    connection = facts.connection
    # The unit that the client names may be one in which nothing was done, of which nothing is known here.
    unit = connection.unit_number if connection.unit_id else call.unit
    is_new = connection.unit_number < unit <= LARGEST_UNIT
    ends: list[Call] = [Commit(unit=unit)] if connection.unit_id or is_new else []
    return Decision(Done(), internal_calls=[*ends, *_leaves(facts), *_closes(facts), Forget()])


def decide_lost_connection(call: LostConnection, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides the end of a connection without MQDISC: a backout, then a close of every handle."""
    ends: list[Call] = [Abandon(unit=facts.connection.unit_number)] if facts.connection.unit_id else []
    return Decision(Done(), internal_calls=[*ends, *_leaves(facts), *_closes(facts), Forget()])


def decide_forget(call: Forget, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides to remove the connection."""
    return Decision(Done(), [DropConnection(facts.connection.connection)])


def _leaves(facts: Facts) -> list[Call]:
    """Returns the calls that leave its reservations, before its handles: the last reader's close then judges them.

    What it had reserved waits by then, so the death of a program with the queue open is one occasion, 12, not R and 12.
    """
    return [LeaveReservation(reservation=number) for number in facts.connection.reservations]


def _closes(facts: Facts) -> list[Call]:
    return [Close(handle=handle) for handle in facts.connection.handles]
