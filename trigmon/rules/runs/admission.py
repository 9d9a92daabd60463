"""Admission of runs: how many programs may run, and when the next may start.

Counted over all monitors, in the turn in which a run is recorded, so that two that ask in one instant cannot both
start.
"""

from __future__ import annotations

import heapq
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from trigmon.mq.attributes import Process
from trigmon.mq.calls import Call, Caps, StartRuns
from trigmon.mq.enums import TriggerType
from trigmon.mq.explanation import moment
from trigmon.mq.quantities import counted
from trigmon.mq.replies import Reply, ToStart
from trigmon.mq.run import Run, RunFields, RunState
from trigmon.rules.model.changes import AnyChange, Serve, WriteRun
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts, LedgerFacts, RunFacts, WideFacts
from trigmon.rules.model.internal_calls import StartRun
from trigmon.rules.model.queue_facts import QueueFacts
from trigmon.rules.model.run_facts import Cause, Line, Serving
from trigmon.rules.model.run_program import as_defined, not_of_its_queue
from trigmon.rules.model.stored_messages import Found
from trigmon.rules.runs.pause import paused
from trigmon.rules.runs.spark_ports import is_of_this_machine

MOST_AT_ONCE = 64
LONGEST_PAUSE_S = 60
_ONE_PROGRAM = (TriggerType.FIRST, TriggerType.DEPTH)
_NOT_KEPT = ("name", "description", "appl_type", "appl_id", "env_data", "user_data", "created_ms", "altered_ms")


class Applicant(NamedTuple):
    """A run that would start: for which queue, of which process or program, by which monitor."""

    run_id: str
    slot: str
    q_name: str
    process_name: str
    monitor: str
    queue: QueueFacts | None
    process: Process | None
    cause: Cause | None


def applicant(run: Run, facts: RunFacts) -> Applicant:
    """Returns the run as an applicant, whose queue, process and cause the facts are about."""
    return Applicant(
        run_id=run.run_id,
        slot=run.slot,
        q_name=run.trigger.q_name,
        process_name=run.trigger.process_name,
        monitor=run.program.monitor,
        queue=facts.queue,
        process=facts.process,
        cause=facts.cause,
    )


def as_recorded(process: Process | None) -> dict[str, Any] | None:
    """Returns a process definition as a run's record keeps it: what differs from the defaults; None for none."""
    if process is None:
        return None
    kept: dict[str, Any] = msgspec.to_builtins(process)
    return {name: value for name, value in kept.items() if name not in _NOT_KEPT}


def process_of(run: Run, facts: Facts) -> dict[str, Any] | None:
    """Returns the process in a run's record; for an older record without one, the definition of today."""
    known = run.origin.process
    return as_recorded(facts.process) if known is UNSET else known


def hindrance(who: Applicant, facts: WideFacts, caps: Caps, now: int) -> str:
    """Returns why a run may not start now, for a person; "" when it may."""
    if why := paused(facts, who.q_name, who.process_name):
        return why
    if why := pause_of(who.cause, now):
        return why
    running = [each for each in facts.serves if not each.is_over and each.run_id != who.run_id]
    if why := _tried_by_another(who, facts):
        return why
    cap = (who.process.instances if who.process is not None else 0) or caps.instances
    of_slot = [each for each in running if each.slot == who.slot]
    if 0 < cap <= len(of_slot):
        return f"{len(of_slot)} of {who.slot} run{_elsewhere(of_slot, who.monitor)}, and {cap} may run at a time"
    of_monitor = sum(each.monitor == who.monitor for each in running)
    if 0 < caps.runs <= of_monitor:
        return f"{of_monitor} programs of this monitor run, and {caps.runs} may run at a time (monitor.max_runs)"
    return _not_opened(who, running)


def pause_of(cause: Cause | None, now: int) -> str:
    """Returns how long the failures before it keep a run back, for a person; "" where they do not."""
    if cause is None or cause.until_ms <= now:
        return ""
    return f"failed {counted(cause.failed, 'time')} in a row; not started before {moment(cause.until_ms)}"


def pause_ms(failed: int, retry_wait_s: int) -> int:
    """Returns the pause behind failures, in milliseconds: RETRYWAIT, doubled each time up to 60 s or RETRYWAIT."""
    return 1000 * min(retry_wait_s << min(failed - 1, 20), max(LONGEST_PAUSE_S, retry_wait_s))


def _elsewhere(running: list[Serving], monitor: str) -> str:
    others = [f"run {each.run_id} of {each.monitor}" for each in running if each.monitor != monitor]
    return f", {len(others)} of them under other monitors ({', '.join(others)})" if others else ""


def _tried_by_another(who: Applicant, facts: WideFacts) -> str:
    """Returns why another run has to end first: after a failure one at a time tries again, "" for no reason."""
    if who.cause is None or not who.cause.failed or not is_for_one(who.queue):
        return ""
    others = [run_id for run_id in under_way(facts, who.slot, who.q_name) if run_id != who.run_id]
    return f"failed {counted(who.cause.failed, 'time')} in a row; the end of run {others[0]} decides" if others else ""


def under_way(facts: WideFacts, slot: str, q_name: str) -> list[str]:
    """Returns the runs of a process for a queue that have, or may have, a program."""
    return [each.run_id for each in facts.serves if not each.is_over and (each.slot, each.q_name) == (slot, q_name)]


def is_for_one(queue: QueueFacts | None) -> bool:
    """Returns whether a queue wants one program at a time, whose end can bring the next one's start."""
    return queue is not None and queue.definition.trigger_type in _ONE_PROGRAM


def _not_opened(who: Applicant, running: list[Serving]) -> str:
    """Returns which run has not opened the queue yet: FIRST and DEPTH want one program at a time until it reads."""
    if not is_for_one(who.queue):
        return ""
    coming = next((each for each in running if each.q_name == who.q_name and not each.first_open_ms), None)
    if coming is not None and "@" in who.q_name:
        # What a program does on a queue elsewhere is not known here, so the next one waits for its end.
        return f"run {coming.run_id} is under way for {who.q_name}"
    return f"run {coming.run_id} was started for {who.q_name} and has not opened it yet" if coming is not None else ""


def decide_start_runs(call: StartRuns, facts: LedgerFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Starts the oldest held runs that nothing hinders; whether each may, is asked again with those before it."""
    waiting = sum(line.count for line in facts.lines)
    free = [line for line in facts.lines if not hindrance(_first(line, call.monitor), facts, call.caps, now)]
    chosen = heapq.nsmallest(max(1, min(call.limit, MOST_AT_ONCE)), (r for line in free for r in line.run_ids))
    pauses = [line.cause.until_ms for line in facts.lines if line.cause is not None and line.cause.until_ms > now]
    internal_calls: list[Call] = [StartRun(run_id=run_id, monitor=call.monitor, caps=call.caps) for run_id in chosen]
    answer = ToStart(records=[], waiting=waiting, again_ms=min(pauses, default=0), now_ms=now)

    def gathered(replies: list[Reply]) -> Reply:
        due = [record for reply in replies if isinstance(reply, ToStart) for record in reply.records]
        return replace(answer, records=due, waiting=waiting - len(due))

    return Decision(answer, internal_calls=internal_calls, gather=gathered)


def decide_start_run(call: StartRun, facts: RunFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Makes a held run due, unless one before it has taken the place."""
    run = facts.run
    if run is None or not run.is_held or run.bridged.bridged_by not in ("", facts.connection.user):
        return Decision(ToStart(records=[]))
    fields: RunFields = {"state": RunState.DUE, "monitor": call.monitor, "why": ""}
    due = run.changed(**(fields | _definition_of(run, facts)))
    if hindrance(applicant(due, facts), facts, call.caps, now):
        return Decision(ToStart(records=[]))
    changes: list[AnyChange] = [WriteRun(call.run_id, due, before=run), Serve(served_run(due, facts))]
    return Decision(ToStart(records=[due.json]), changes)


def _definition_of(run: Run, facts: Facts) -> RunFields:
    """Returns what a run executes: as recorded, but a further try the definition of today, which may have been mended.

    A further try whose process, or queue, is not what it was executes what is recorded.
    """
    if not run.origin.retries or facts.process is None or not_of_its_queue(run.trigger, facts):
        return {"process": process_of(run, facts)}
    trigger = as_defined(run.trigger, facts.process)
    return {
        "process": as_recorded(facts.process),
        "appl_type": trigger.appl_type,
        "appl_id": trigger.appl_id,
        "env_data": trigger.env_data,
        "user_data": trigger.user_data,
    }


def served_run(run: Run, facts: Facts) -> Serving:
    """Returns a run that has, or may have, a program from now on: as its definition's user, or the asking monitor's."""
    return Serving(
        run_id=run.run_id,
        q_name=run.trigger.q_name,
        slot=run.slot,
        monitor=run.program.monitor,
        user=(facts.process.run_as if facts.process is not None else "") or facts.connection.user,
        is_elsewhere=facts.process is not None and not is_of_this_machine(facts.process),
    )


def _first(line: Line, monitor: str) -> Applicant:
    return Applicant("", line.slot, line.q_name, line.slot, monitor, line.queue, line.process, line.cause)
