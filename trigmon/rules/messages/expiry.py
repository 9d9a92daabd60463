"""Expiry: how long a message may live, and the scan for expired messages (seed 003; mq-facts 7).

A get or browse discards what it meets on its way. Beside it the queue manager looks through whole queues: at its
start, each EXPRYINT, and on REFRESH QMGR TYPE(EXPIRY). The queue manager's expiry scan goes through them a slice at a
time; here each slice is decided.
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
from trigmon.rules.model.facts import Facts, WorldFacts
from trigmon.rules.model.internal_calls import Expire, LookThrough
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.stored_messages import Found, Selection, Summary


def capped(descriptor: MessageDescriptor, queue: QueueFacts, facts: Facts) -> MessageDescriptor:
    """Returns the descriptor with its expiry under the lowest CAPEXPRY of alias, remote queue and local queue."""
    cap = queue.definition.cap_expiry
    for definition in (facts.alias, facts.remote):
        if definition is not None and definition.cap_expiry > 0 and not 0 < cap <= definition.cap_expiry:
            cap = definition.cap_expiry
    if cap > 0 and not 0 < descriptor.expiry <= cap:
        return replace(descriptor, expiry=int(cap))
    return descriptor


def decide_refresh(call: Refresh, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides REFRESH QMGR TYPE(EXPIRY): the queues of this generic name are to be scanned, after the reply."""
    return _to_scan(queue.definition.name for queue in facts.world.queues if matches(queue.definition.name, call.name))


def decide_look_through(call: LookThrough, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides the same for all queues, at a start and each EXPRYINT. One member of the group scans the shared ones."""
    return _to_scan(queue.definition.name for queue in facts.world.queues if call.shared or queue.shared is None)


def _to_scan(names: Iterable[str]) -> Decision:
    chosen = tuple(sorted(names))
    return Decision(Counted(count=len(chosen)), events=(ScanDue(chosen),))


def look_for_expire(call: Expire, facts: Facts, now: int) -> Selection | None:
    """Returns the next slice of a queue's messages that have expired."""
    if facts.queue is None or facts.queue.is_deleted:
        return None
    return Selection(call.q_name, now, limit=call.limit, summary=Summary(lists_expired=True))


def decide_expire(call: Expire, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Discards them, and sends the reports they asked for; outside any unit of work."""
    if found is None:
        return Decision(Counted(count=0))
    changes = met_on_the_way(found)
    reply = Counted(count=len(changes), more=len(changes) >= call.limit)
    return Decision(reply, changes, expiration_reports(found.expired, facts, now))
