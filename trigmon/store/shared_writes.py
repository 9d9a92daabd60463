"""What changes of a member make of a shared queue's facts, for the groups in memory and in PostgreSQL."""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.attributes import LocalQueue
from trigmon.rules.model import changes as c
from trigmon.rules.model.group_changes import NoteTriggered
from trigmon.rules.model.shared_queue import SharedQueue, at_work, came, counts_of, has_fired, lies
from trigmon.rules.model.stored_messages import StoredMessage


def after_add(queue: SharedQueue, change: c.AddMessage, member: str) -> SharedQueue:
    """Returns the queue after a put: one in a unit of work is only counted as the member's work."""
    if change.unit_id:
        return at_work(queue, member, puts=1)
    counts = counts_of([change.priority])
    return came(queue, counts) if change.trigger is None else lies(queue, counts)


def after_take(queue: SharedQueue, message: StoredMessage, member: str) -> SharedQueue:
    """Returns the queue after a get in a unit of work. An own uncommitted put was not available before."""
    queue = at_work(queue, member, gets=1)
    return queue if message.is_own else without(queue, message)


def without(queue: SharedQueue, message: StoredMessage) -> SharedQueue:
    """Returns the queue with one available message less."""
    return lies(queue, [-count for count in counts_of([message.priority])])


def after_define(queue: SharedQueue | None, definition: LocalQueue) -> SharedQueue:
    """Returns the queue with this definition, a new one for None."""
    return SharedQueue(definition) if queue is None else replace(queue, definition=definition)


def after_trigger(queue: SharedQueue, change: NoteTriggered) -> SharedQueue:
    """Returns the queue after a trigger message for it."""
    return has_fired(queue, is_for_group=change.is_for_group, is_disarmed=change.is_disarmed)
