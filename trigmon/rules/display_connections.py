"""The connections of a queue manager: whose they are, since when, what is open; and the end of one by an operator."""

from __future__ import annotations

from heapq import nsmallest
from operator import attrgetter

from trigmon.mq.calls import DisplayConnections, EndConnection
from trigmon.mq.errors import HconnError
from trigmon.mq.replies import Done, Listing
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import WorldFacts
from trigmon.rules.model.manager_state import ManagerState
from trigmon.rules.model.stored_messages import SLICE, Found


def decide_display_connections(
    call: DisplayConnections, facts: WorldFacts, found: Found | None, now: int, ids: Ids
) -> Decision:
    """Lists the connections, the oldest first, a slice at a time."""
    limit = max(1, min(call.limit, SLICE))
    later = (each for each in facts.world.connections if each.connection > call.after)
    behind = nsmallest(limit + 1, later, key=attrgetter("connection"))
    opened = {handle.handle: handle.q_name or handle.object_name for handle in facts.world.handles}
    rows = [
        {
            "connection": each.connection,
            "application": each.application,
            "user": each.user,
            "pid": each.pid,
            "run_id": each.run_id,
            "since_ms": each.since_ms,
            "open": [opened[handle] for handle in each.handles if handle in opened],
            "in_unit": bool(each.unit_id),
            "ticket": 0 if each.ticket is None else each.ticket.reservation,
        }
        for each in behind[:limit]
    ]
    return Decision(Listing(rows=rows, more=len(behind) > limit))


def decide_end_connection(call: EndConnection, facts: WorldFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Changes nothing itself: the connection is lost. Raises HconnError where there is none of this number."""
    if call.connection not in {each.connection for each in facts.world.connections}:
        raise HconnError(f"there is no connection {call.connection}")
    return Decision(Done())


def complete_end_connection(call: EndConnection, reply: Done, manager: ManagerState) -> Done:
    """Ends the connection behind the turn: its unit of work is backed out, as that of a lost one."""
    manager.end_connection(call.connection)
    return reply
