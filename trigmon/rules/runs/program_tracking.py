"""Tracking of started programs: what each does on the queue it was started for, as the queue manager sees it.

A program's connections name its run (TRIGMON_RUN, in hello), so no program has to report: opening the queue makes a run
``serving``, closing it with nothing left makes it ``drained``, and what is got, committed and backed out is counted,
what is reserved and settled as well.
"""

from __future__ import annotations

from typing import cast

from msgspec.structs import replace

from trigmon.mq.calls import Call, Disconnect, LostConnection, Reject, Release, Settle
from trigmon.mq.enums import OpenOption, UnitOutcome
from trigmon.mq.replies import Done, Reserved, Settled, WasGot, WereGot
from trigmon.mq.run import RunFields, RunState, Work
from trigmon.rules.model.changes import AnyChange, EndUnit, RemoveMessage, Serve, TakeMessage, WriteRun
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts, RunFacts
from trigmon.rules.model.handle_changes import CloseHandle, OpenHandle
from trigmon.rules.model.internal_calls import Attend, JudgeRun, LeaveReservation, PutAside, Seal
from trigmon.rules.model.run_facts import Serving
from trigmon.rules.model.stored_messages import Found

_COUNTS = Work.__struct_fields__
_INPUT = (OpenOption.INPUT_SHARED | OpenOption.INPUT_EXCLUSIVE).value


def attended(call: Call, facts: Facts, found: Found | None, decision: Decision, now: int) -> Decision:
    """Returns a decision about a call of a started program, with what it means for the program's run."""
    before = facts.serving
    if before is None:
        return decision
    after = before
    for change in decision.changes:
        after = _moved(after, change, facts, now)
    if facts.queue is not None and facts.queue.definition.name == after.q_name:
        after = _of_a_batch(after, call, facts, decision, now)
    got = isinstance(decision.reply, WasGot | WereGot) or isinstance(call, PutAside)
    removed = sum(_is_of(after, change) for change in decision.changes if isinstance(change, RemoveMessage))
    if got and removed:
        after = _removed(after, call, removed - (len(found.expired) if found is not None else 0), now)
    internal_calls = [*decision.internal_calls, *_attends(before, after, facts)]
    if before.is_over and facts.connected == 1 and isinstance(call, Disconnect | LostConnection):
        internal_calls.insert(-1, JudgeRun(run_id=before.run_id))  # before the last of its connections is removed
    changes: list[AnyChange] = [Serve(after)] if after != before else []
    return replace(decision, changes=[*decision.changes, *changes], internal_calls=internal_calls)


def counts(serving: Serving | None) -> RunFields:
    """Returns the counts of a run's record of its program."""
    return cast("RunFields", {name: getattr(serving, name) for name in _COUNTS}) if serving is not None else {}


def decide_attend(call: Attend, facts: RunFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Updates the run's state by its program; monitors are notified where another run waits for that."""
    run = facts.run
    if run is None or not run.has_program:
        return Decision(Done())
    fields: RunFields = counts(facts.itself) | {"state": call.state}
    after = run.changed(**fields)
    is_news = call.state is RunState.SERVING and facts.held > 0
    return Decision(Done(), [WriteRun(call.run_id, after, is_news=is_news, before=run, can_wait=True)])


def _moved(serving: Serving, change: AnyChange, facts: Facts, now: int) -> Serving:
    """Returns the state of a program after one of its changes."""
    if isinstance(change, OpenHandle) and change.handle.options & _INPUT and change.handle.q_name == serving.q_name:
        return replace(serving, opens=serving.opens + 1, first_open_ms=serving.first_open_ms or now)
    if isinstance(change, CloseHandle) and facts.handle is not None and facts.handle.options & _INPUT:
        return replace(serving, opens=serving.opens - (facts.handle.q_name == serving.q_name))
    if isinstance(change, TakeMessage) and _is_of(serving, change):
        return replace(serving, taken=serving.taken + 1, first_get_ms=serving.first_get_ms or now)
    if isinstance(change, EndUnit):
        count = sum(n for (q_name, _), n in change.unit.gets.items() if q_name == serving.q_name)
        if count and change.outcome is UnitOutcome.COMMITTED:
            return replace(serving, committed=serving.committed + count)
        return replace(serving, backed_out=serving.backed_out + count) if count else serving
    return serving


def _of_a_batch(serving: Serving, call: Call, facts: Facts, decision: Decision, now: int) -> Serving:
    """Counts what a program does with a batch: what it reserves it takes, what it settles it commits."""
    reply, reservation = decision.reply, facts.reservation
    if (
        isinstance(call, LeaveReservation)
        and reservation is not None
        and reservation.holder == facts.connection.connection
    ):
        return replace(serving, backed_out=serving.backed_out + reservation.left)
    if isinstance(reply, Reserved) and not reply.more and (isinstance(call, Seal) or decision.changes):
        return replace(serving, taken=serving.taken + reply.left, first_get_ms=serving.first_get_ms or now)
    if isinstance(reply, Settled) and isinstance(call, Settle):
        batches = serving.batches + (reply.count > 0 and not reply.left)
        return replace(serving, committed=serving.committed + reply.count, batches=batches, settled_ms=now)
    if isinstance(reply, Settled) and isinstance(call, Release):
        return replace(serving, backed_out=serving.backed_out + reply.count)
    return replace(serving, put_aside=serving.put_aside + 1) if isinstance(call, Reject) else serving


def _removed(serving: Serving, call: Call, count: int, now: int) -> Serving:
    """Returns messages that left the queue at once: got outside syncpoint, or put aside as poison before the get."""
    if count <= 0:
        return serving
    if isinstance(call, PutAside):
        return replace(serving, put_aside=serving.put_aside + count)
    first_get_ms = serving.first_get_ms or now
    taken, committed = serving.taken + count, serving.committed + count
    return replace(serving, taken=taken, committed=committed, first_get_ms=first_get_ms)


def _attends(before: Serving, after: Serving, facts: Facts) -> list[Call]:
    if after.opens > 0 >= before.opens:
        return [Attend(run_id=after.run_id, state=RunState.SERVING)]
    if before.opens > 0 >= after.opens:
        is_empty = facts.queue is not None and not facts.queue.depth + facts.queue.reserved
        return [Attend(run_id=after.run_id, state=RunState.DRAINED)] if is_empty else []
    return []


def _is_of(serving: Serving, change: RemoveMessage | TakeMessage) -> bool:
    return change.message.q_name == serving.q_name
