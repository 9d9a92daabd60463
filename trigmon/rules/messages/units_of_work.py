"""Units of work: numbered by the client, begun by the first call that names one, ended once (seed 004).

A unit is a row, not an open transaction: an application may think for an hour without holding anything.
"""

from __future__ import annotations

from msgspec.structs import replace

from trigmon.mq.calls import Backout, Call, Commit, Outcome
from trigmon.mq.enums import UnitOutcome
from trigmon.mq.errors import OptionsError, SyncpointLimitReached, UnitOfWorkNotStarted
from trigmon.mq.replies import Done, OutcomeWas
from trigmon.rules.messages.skip_backout import LARGEST_UNIT, carried_over, without_marked
from trigmon.rules.model.changes import AnyChange, BeginUnit, EndUnit, SkipUnit
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts, WideFacts
from trigmon.rules.model.internal_calls import Abandon, Reap
from trigmon.rules.model.stored_messages import Found

SYNCPOINT = 0x2
NO_SYNCPOINT = 0x4


def joined_unit(options: int, unit: int, facts: Facts, now: int, ids: Ids) -> tuple[int, list[AnyChange]]:
    """Returns the unit of work a put or get belongs to, 0 for none, and the change that begins it if it is the first.

    MQPMO and MQGMO give SYNCPOINT and NO_SYNCPOINT the same bits; neither means outside syncpoint.
    Raises OptionsError for both at once or a SYNCPOINT without a unit, UnitOfWorkNotStarted for an ended unit.
    """
    if not options & SYNCPOINT:
        return 0, []
    if options & NO_SYNCPOINT:
        raise OptionsError("syncpoint and no_syncpoint exclude each other")
    check_unit(unit, facts)
    connection = facts.connection
    if connection.unit_id:
        return connection.unit_id, []
    unit_id = ids.unit()
    return unit_id, [BeginUnit(connection.connection, unit_id, unit, connection.client_id, now)]


def check_unit(unit: int, facts: Facts) -> None:
    """Raises OptionsError for what is no unit's number, UnitOfWorkNotStarted for that of one that has ended."""
    if not 0 < unit <= LARGEST_UNIT:
        raise OptionsError("syncpoint needs the number of a unit of work, counted from 1")
    connection = facts.connection
    if connection.unit_id:
        if unit != connection.unit_number:
            raise _ended(unit, connection.unit_number)
    elif unit <= connection.unit_number:
        raise _ended(unit, connection.unit_number + 1)


def check_limit(facts: Facts, adds: int) -> None:
    """Raises SyncpointLimitReached (2024) above MAXUMSGS: puts, gets and the trigger messages of the puts count."""
    count = (facts.unit.count if facts.unit is not None else 0) + adds
    if count > facts.q_mgr.max_uncommitted_msgs:
        raise SyncpointLimitReached(f"MAXUMSGS({facts.q_mgr.max_uncommitted_msgs}): commit or back out first")


def decide_commit(call: Commit, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides MQCMIT. A unit in which nothing was done ends as well."""
    return _end(call.unit, facts, UnitOutcome.COMMITTED, now)


def decide_backout(call: Backout, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides MQBACK: puts vanish, gets but a marked one return to their place, their backout count raised by one."""
    unit = facts.unit
    if unit is None or unit.marked is None or unit.marked.is_own:
        return _end(call.unit, facts, UnitOutcome.BACKED_OUT, now)
    ended = _end(call.unit, replace(facts, unit=without_marked(unit)), UnitOutcome.BACKED_OUT, now)
    return carried_over(unit.marked, ended, facts, now, ids)


def decide_abandon(call: Abandon, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides a backout that no application asked for: every get returns to its place."""
    return _end(call.unit, facts, UnitOutcome.BACKED_OUT, now)


def _end(unit: int, facts: Facts, outcome: UnitOutcome, now: int) -> Decision:
    connection = facts.connection
    if facts.unit is not None and unit == connection.unit_number:
        touched = {q_name for q_name, _ in (*facts.unit.puts, *facts.unit.gets)} if facts.deleted else ()
        reaps: list[Call] = [Reap(q_name=q_name) for q_name in facts.deleted if q_name in touched]
        return Decision(Done(), [EndUnit(facts.unit, outcome, now, facts.deleted)], reaps)
    if connection.unit_id or not connection.unit_number < unit <= LARGEST_UNIT:
        raise _ended(unit, connection.unit_number + (0 if connection.unit_id else 1))
    if unit == connection.refused_unit:
        # A client that sent its commit behind its puts, and lost its connection, asks whether the puts are there.
        outcome = UnitOutcome.BACKED_OUT
    return Decision(Done(), [SkipUnit(connection.connection, unit, connection.client_id, outcome, now)])


def decide_outcome(call: Outcome, facts: WideFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Decides the query of a unit's outcome: what is on record, or that it is open, or that it is not known."""
    return Decision(OutcomeWas(outcome=UnitOutcome(facts.outcome)))


def _ended(unit: int, current: int) -> UnitOfWorkNotStarted:
    return UnitOfWorkNotStarted(f"unit of work {unit} has ended; the next is {current}")
