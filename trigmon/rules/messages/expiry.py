"""Expiry: how long a message may live, and looking for those that have lived too long (seed 003; mq-facts 7).

A get or browse discards what it meets on its way. Beside it the queue manager looks through whole queues: at its
start, each EXPRYINT, and when REFRESH QMGR TYPE(EXPIRY) asks. The housekeeper goes through them a slice at a time;
here is what one look means.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from trigmon.mq.calls import Refresh
from trigmon.mq.descriptors import MessageDescriptor
from trigmon.mq.names import matches
from trigmon.mq.replies import Counted
from trigmon.rules.messages.reports import expiration_reports
from trigmon.rules.model.changes import met_on_the_way
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.events import ScanDue
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.internal_calls import Expire, LookThrough
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.stored_messages import Found, Selection


def capped(descriptor: MessageDescriptor, queue: QueueFacts, facts: Facts) -> MessageDescriptor:
    """The descriptor with its expiry under the lowest CAPEXPRY on the way: alias, remote queue, and where it lies."""
    cap = queue.definition.cap_expiry
    for definition in (facts.alias, facts.remote):
        if definition is not None and definition.cap_expiry > 0 and not 0 < cap <= definition.cap_expiry:
            cap = definition.cap_expiry
    if cap > 0 and not 0 < descriptor.expiry <= cap:
        return replace(descriptor, expiry=int(cap))
    return descriptor


def decide_refresh(call: Refresh, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """REFRESH QMGR TYPE(EXPIRY): the queues of this generic name are to be looked through, which goes on behind it."""
    queues = facts.world.queues if facts.world is not None else ()
    return _to_scan(queue.definition.name for queue in queues if matches(queue.definition.name, call.name))


def decide_look_through(call: LookThrough, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """The same of all queues, at a start and each EXPRYINT. Shared ones are looked at by one member of the group."""
    queues = facts.world.queues if facts.world is not None else ()
    return _to_scan(queue.definition.name for queue in queues if call.shared or queue.shared is None)


def _to_scan(names: Iterable[str]) -> Decision:
    chosen = tuple(sorted(names))
    return Decision(Counted(count=len(chosen)), events=(ScanDue(chosen),))


def look_for_expire(call: Expire, facts: Facts, now: int) -> Selection | None:
    """The next slice of a queue's messages that have expired."""
    if facts.queue is None or facts.queue.is_deleted:
        return None
    return Selection(call.q_name, now, limit=call.limit, is_expired=True)


def decide_expire(call: Expire, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Discards them, and sends the reports they asked for; outside any unit of work."""
    if found is None:
        return Decision(Counted(count=0))
    changes = met_on_the_way(found)
    reply = Counted(count=len(changes), more=len(changes) >= call.limit)
    return Decision(reply, changes, expiration_reports(found.expired, facts, now))
