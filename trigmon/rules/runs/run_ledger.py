"""The run ledger: how a run is recorded, changed, cancelled, repeated and at last deleted.

The ledger decides whether a program may be started now: a run becomes ``due`` here or it does not, in
the same turn in which pauses and cancellations are written, whichever monitor asks and on whatever host it is.
:mod:`trigmon.mq.run` describes what a record holds.
"""

from __future__ import annotations

from math import isfinite

import msgspec
from msgspec.structs import replace

from trigmon.mq.calls import Call, CancelRun, ChangeRun, Commit, Controls, RecordRun, RecordRuns, RetryRun, Runs
from trigmon.mq.descriptors import ID_LENGTH, MessageDescriptor, TriggerMessage, pack_tm
from trigmon.mq.enums import Coalesce
from trigmon.mq.errors import CommandFailed, ObjectAlreadyExists, OptionsError, UnknownObjectName
from trigmon.mq.explanation import moment
from trigmon.mq.replies import Counted, Done, Listing, Recorded, Values, WereRecorded
from trigmon.mq.run import NO_RUN, OPEN, Run, RunFields, RunJson, RunState, read_run, whole_trigger
from trigmon.rules.model.changes import AnyChange, DropRun, Serve, Unserve
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.events import OperatorAsked
from trigmon.rules.model.facts import Facts, LedgerFacts, LedgerWants, RunFacts, RunWants, WideFacts
from trigmon.rules.model.internal_calls import Deliver, JudgeRun, Prune
from trigmon.rules.model.manager_state import ManagerState
from trigmon.rules.model.run_facts import Cause
from trigmon.rules.model.run_program import (
    as_defined,
    check_unchanged,
    is_the_queue_managers,
    not_of_its_queue,
    with_known_program,
)
from trigmon.rules.model.run_record import written
from trigmon.rules.model.stored_messages import SLICE, Found
from trigmon.rules.runs.admission import applicant, as_recorded, hindrance, is_for_one, pause_of, served_run
from trigmon.rules.runs.bridged_runs import repeated_bridged
from trigmon.rules.runs.pause import checked_reason, paused, rows, who
from trigmon.rules.runs.program_tracking import counts
from trigmon.rules.triggers.effects import MOMENT, REPEATS, moment_text, of_moment, of_repetition, trigger_descriptor

LARGEST_RECORD = 65_536
WAITS = "waits for its turn"
"""Why a run is held that was paused; while it is, the listing says who paused it instead."""

MOST_RECORDS = 64
_UNSTARTED = (RunState.DUE, RunState.HELD, "")

NOT_STARTED = "its trigger message was not started"


def decide_record_run(call: RecordRun, facts: RunFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Records a new run, committed together with the get of the trigger message that caused it."""
    if facts.run is not None:
        raise ObjectAlreadyExists(f"run {call.run_id}")
    process = as_recorded(facts.process)
    known: RunFields = {"run_id": call.run_id, "process": process, "verdict": list(facts.fired)}
    run = with_known_program(read_run({"recorded_ms": now, **_checked_record(call.record), **known}), facts)
    internal_calls: list[Call] = [Commit(unit=call.unit)] if call.unit else []
    why = ""
    more: list[AnyChange] = []
    if run.state == RunState.DUE:
        joined, more = _joined(run, facts, now)
        why = "" if joined else hindrance(applicant(run, facts), facts, call.caps, now)
        run = joined or (_held(run, why, facts) if why else run)
    changes: list[AnyChange] = [written(run, now), *more]
    if run.has_program:
        changes.append(_served(run, facts))
    return Decision(replace(_recorded(run, why), process=process), changes, internal_calls)


def decide_record_runs(call: RecordRuns, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Records several runs at once: those of the trigger messages that were got together."""
    if not 0 < len(call.records) <= MOST_RECORDS:
        raise OptionsError(f"1 to {MOST_RECORDS} runs are recorded at a time, not {len(call.records)}")
    internal_calls: list[Call] = [
        RecordRun(run_id=str(record.get("run_id", "")), record=record, caps=call.caps) for record in call.records
    ]
    internal_calls += [Commit(unit=call.unit)] if call.unit else []
    return Decision(
        internal_calls=internal_calls,
        gather=lambda replies: WereRecorded(runs=[reply for reply in replies if isinstance(reply, Recorded)]),
    )


def decide_change_run(call: ChangeRun, facts: RunFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Overwrites named fields of a run's record."""
    if facts.run is None:
        raise UnknownObjectName(f"run {call.run_id}")
    before = facts.run
    fields = _checked_record(call.fields)
    check_unchanged(before, fields, facts)
    wanted = fields.get("state")
    if "state" in fields and wanted in _UNSTARTED and before.state not in _UNSTARTED:
        return Decision(_recorded(before))  # it has a program, or had: none is started for it again
    if before.is_ended and wanted in OPEN:
        return Decision(_recorded(before))  # cancelled, while its monitor was about to start it
    if wanted == RunState.STARTED and before.state in (RunState.SERVING, RunState.DRAINED):
        fields = {name: value for name, value in fields.items() if name != "state"}
    after = _as_cancelled(before.overwritten({**fields, "run_id": call.run_id}), fields.get("state"), now)
    if after.state == RunState.DUE and (why := _paused(after, facts)):
        after = _held(after, why, facts)
    else:
        why = ""
    changes: list[AnyChange] = [written(after, now, before)]
    internal_calls: list[Call] = []
    itself = facts.itself
    if after.has_program:
        if itself is None or itself.monitor != after.program.monitor:
            changes.append(_served(after, facts))
    elif itself is not None and after.is_held:
        changes.append(Unserve(call.run_id))
    elif itself is not None and not itself.is_over:
        # Its connections tell what becomes of what it got: the last of them is waited for.
        changes.append(Serve(replace(itself, is_over=True)))
        internal_calls += [] if facts.connected else [JudgeRun(run_id=call.run_id)]
    return Decision(_recorded(after, why), changes, internal_calls)


def decide_runs(call: Runs, facts: LedgerFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Lists runs, newest first: a held one with what keeps it, one with a program with its counts and what is left."""
    limit = runs_limit(call)
    doing = {each.run_id: counts(each) for each in facts.serves}
    causes = {(each.slot, each.q_name): each for each in facts.causes}
    listed: list[RunJson] = []
    for run in facts.runs[:limit]:
        row: RunJson = {**run.json, **doing.get(run.run_id, {})}
        if run.has_program and run.trigger.q_name in facts.lying:
            row["left"] = facts.lying[run.trigger.q_name]
        if run.is_held:
            row["why"] = _keeps(run, causes.get((run.slot, run.trigger.q_name)), facts, now)
        listed.append(row)
    return Decision(Listing(rows=listed, more=len(facts.runs) > limit))


def _keeps(held: Run, cause: Cause | None, facts: LedgerFacts, now: int) -> str:
    """Returns what keeps a held run from being started now, or did when it was held."""
    if why := _paused(held, facts) or pause_of(cause, now):
        return why
    initiation_q = held.origin.initiation_q
    if initiation_q in facts.unread:
        return f"nobody reads its initiation queue: trigmon monitor --initq {initiation_q}"
    return held.why


def decide_cancel_run(call: CancelRun, facts: RunFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Cancels a held run here and now; one that has, or may have, a process is for its monitor to end."""
    run = _found(call.run_id, facts)
    if run.is_ended:
        raise CommandFailed(f"RUN({call.run_id}) has ended: {run.state}")
    if run.is_being_cancelled:
        raise CommandFailed(f"RUN({call.run_id}) is being {_cancelled(run)}")
    by, reason = who(facts.connection), checked_reason(call.reason)
    run = run.changed(cancelled_by=by, cancelled_ms=now, cancel_reason=reason)
    if run.is_held:
        run = run.changed(state=RunState.CANCELLED, end_ms=now, why=f"{_cancelled(run)}; {NOT_STARTED}")
    event = OperatorAsked("run cancelled", {"run": call.run_id, "by": by, "reason": reason})
    return Decision(_recorded(run), [replace(written(run, now, facts.run), is_news=True)], events=(event,))


def decide_retry_run(call: RetryRun, facts: RunFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Puts its trigger message on the same initiation queue: any monitor there takes it, like every other.

    What is executed is the definition of today: the record of a run that never started is its monitor's word.
    """
    run = _found(call.run_id, facts)
    if not run.is_ended:
        raise CommandFailed(f"RUN({call.run_id}) has not ended: {run.state}")
    trigger = trigger_of(run)
    if trigger is None or len(REPEATS + call.run_id.encode()) > ID_LENGTH:
        raise CommandFailed(f"RUN({call.run_id}): its record does not hold what it was started by")
    why = not_of_its_queue(trigger, facts)
    if why or facts.process is None:
        raise CommandFailed(f"RUN({call.run_id}) cannot be repeated: {why}")
    if run.bridged.remote_q_mgr:
        return repeated_bridged(run, as_defined(run.trigger, facts.process), facts, now, ids)
    data = pack_tm(as_defined(trigger, facts.process))
    by = who(facts.connection)
    descriptor = descriptor_of(run, call.run_id, facts.q_mgr.name, ids.msg_id(ids.message()), now)
    asked = replace(descriptor, user_identifier=by)
    delivery = Deliver(q_name=run.origin.initiation_q, descriptor=asked, data=data)
    event = OperatorAsked("run to be repeated", {"run": call.run_id, "by": by})
    return Decision(Done(), internal_calls=[delivery], events=(event,))


def decide_controls(call: Controls, facts: WideFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Lists what is paused, and which of its runs a monitor is to end."""
    cancel = sorted(run_id for run_id, monitor in facts.cancelling if monitor == call.monitor)
    return Decision(Values(values={"pauses": rows(facts.pauses), "cancel": cancel}))


def complete_controls(call: Controls, reply: Values, manager: ManagerState) -> Values:
    """Adds the number of the last news, by which a monitor sees that it missed none; notes what it reports."""
    manager.reports.report_servers(call.monitor, call.lost_servers)
    manager.reports.report_bridges(call.monitor, call.bridges)
    return replace(reply, values={**reply.values, "number": manager.news})


def decide_prune(call: Prune, facts: LedgerFacts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Deletes a slice of the runs that the ledger need not keep."""
    return Decision(
        Counted(count=len(facts.outdated), more=len(facts.outdated) >= SLICE), [DropRun(run) for run in facts.outdated]
    )


def repeated(descriptor: MessageDescriptor) -> str:
    """Returns the run that a trigger message is to repeat; blank where it is an event's, or was not written by us.

    A report is ours as well, but its CorrelId is what a sender chose.
    """
    if not is_the_queue_managers(descriptor) or not descriptor.correl_id.startswith(REPEATS):
        return ""
    return descriptor.correl_id.removeprefix(REPEATS).rstrip(b"\0").decode(errors="replace")


def cause_of(descriptor: MessageDescriptor) -> RunFields:
    """Returns why the run of a trigger message is there, and since when: what it repeats, the condition, the put.

    trigmon writes the condition into ApplOriginData, which IBM MQ leaves blank.
    """
    if not is_the_queue_managers(descriptor):
        return {"repeats": "", "occasion": "", "triggered_ms": 0, "traceparent": ""}
    occasion = descriptor.appl_origin_data.strip()
    fields: RunFields = {
        "repeats": repeated(descriptor),
        "occasion": occasion,
        "triggered_ms": descriptor.put_ms,
        "traceparent": descriptor.traceparent,
    }
    for named in (descriptor.correl_id, descriptor.appl_identity_data.encode()):
        if named.startswith(MOMENT):
            moment_ms = int(named.removeprefix(MOMENT).rstrip(b"\0 "))
            fields |= {"schedule": descriptor.reply_to_q, "moment_ms": moment_ms}
    return fields


def descriptor_of(run: Run, repeats: str, q_mgr_name: str, msg_id: bytes, now: int) -> MessageDescriptor:
    """Returns the descriptor of a run's trigger message, as far as the record tells it: what cause_of reads.

    ``repeats``: the run that the trigger message is to repeat; blank for none.
    """
    origin = run.origin
    descriptor = trigger_descriptor(0, q_mgr_name, msg_id, now, origin.occasion, origin.traceparent)
    if not repeats:
        return of_moment(descriptor, origin.schedule, origin.moment_ms) if origin.schedule else descriptor
    descriptor = of_repetition(descriptor, repeats)
    if not origin.schedule:
        return descriptor
    # CorrelId, which names the moment elsewhere, names the run here.
    named = moment_text(origin.moment_ms).decode()
    return replace(descriptor, reply_to_q=origin.schedule, appl_identity_data=named)


def runs_limit(call: Runs) -> int:
    """Returns how many runs one answer lists."""
    return max(1, min(call.limit, SLICE))


def wants_runs(call: Runs, connection: int) -> LedgerWants:
    """Returns the wanted facts: a page of runs, and one more. Raises OptionsError."""
    return LedgerWants(connection, where=checked_where(call.where), before=call.before, limit=runs_limit(call) + 1)


def checked_where(where: RunJson) -> RunJson:
    """Returns the values to compare with. Raises OptionsError for what no field of a record can be."""
    for name, value in where.items():
        if not isinstance(value, str | int) or not -(2**63) <= (value if isinstance(value, int) else 0) < 2**63:
            raise OptionsError(f"runs where {name}: a text or a whole number, not {type(value).__name__}")
    return where


def _found(run_id: str, facts: RunFacts) -> Run:
    if facts.run is None:
        raise UnknownObjectName(f"RUN({run_id})")
    return facts.run


def trigger_of(run: Run) -> TriggerMessage | None:
    """Returns what a run was started by; None where its record is not whole: a monitor may write anything."""
    trigger = whole_trigger(run.json)
    if trigger is None or not run.origin.initiation_q or run.json.get("occasion", "") != run.origin.occasion:
        return None
    trigger = run.program_trigger if run.bridged.remote_q_mgr else trigger
    try:
        pack_tm(trigger)
    except Exception:  # a number that does not fit, a text that no character set of MQ's has
        return None
    return trigger


def fired_by(wants: RunWants) -> tuple[str, str]:
    """Returns for which queue the run is that is to be written, and on which occasion that fired."""
    run = wants.run_of or NO_RUN
    return run.trigger.q_name, run.origin.occasion


def _joined(run: Run, facts: RunFacts, now: int) -> tuple[Run | None, list[AnyChange]]:
    """Returns a run that another one which waits does the work of; None where each is started for itself.

    A further try that waits is joined by the trigger message that the failed program's own close has brought. Where
    the definition has others join it too, it is tried for them from the first time on.
    """
    waiting = facts.waiting
    if waiting is None:
        return None, []
    loops = is_for_one(facts.queue)
    coalesces = facts.process is not None and facts.process.coalesce is Coalesce.YES
    # A queue manager elsewhere fires again at each close with messages left, and knows nothing of runs that wait here.
    coalesces = coalesces or (loops and bool(run.bridged.remote_q_mgr))
    if not (coalesces or (loops and waiting.origin.retries)):
        return None, []
    if waiting.trigger != run.trigger:
        return None, []
    why = f"run {waiting.run_id}, which waits, does the same: {waiting.why}".rstrip(": ")
    begins_anew = waiting.origin.retries and not loops
    more: list[AnyChange] = [written(waiting.changed(attempt=1), now, waiting)] if begins_anew else []
    return run.changed(state=RunState.JOINED, joins=waiting.run_id, end_ms=now, why=why), more


def _held(run: Run, why: str, facts: WideFacts) -> Run:
    """Returns a run that was to be due as held; the listing names the current pause as long as there is one."""
    why = WAITS if why == _paused(run, facts) else why
    return run.changed(state=RunState.HELD, argv=[], directory="", why=why)


def _paused(run: Run, facts: WideFacts) -> str:
    """Returns who paused a run, for a person; "" where it is not."""
    return paused(facts, run.trigger.q_name, run.trigger.process_name)


def _as_cancelled(run: Run, wanted: object, now: int) -> Run:
    """Returns a run that operators had cancelled meanwhile: it does not start, or ends as cancelled."""
    if not run.cancellation.cancelled_by:
        return run
    if wanted in (RunState.DUE, RunState.HELD):
        return run.changed(state=RunState.CANCELLED, end_ms=now, why=f"{_cancelled(run)}; {NOT_STARTED}")
    if run.is_ended and run.state != RunState.CANCELLED:
        return run.changed(state=RunState.CANCELLED, why=f"{_cancelled(run)}; {run.why or 'it ended'}")
    return run


def _served(run: Run, facts: RunFacts) -> Serve:
    """Returns that the run has, or may have, a program from now on, and which monitor's."""
    itself = facts.itself or served_run(run, facts)
    return Serve(replace(itself, monitor=run.program.monitor))


def _cancelled(run: Run) -> str:
    """Returns by which user, when and why it was cancelled, for a person."""
    it = run.cancellation
    text = f"cancelled by {it.cancelled_by}" + (f" at {moment(it.cancelled_ms)}" if it.cancelled_ms else "")
    return f"{text}: {it.cancel_reason}" if it.cancel_reason else text


def _recorded(run: Run, why: str = "") -> Recorded:
    return Recorded(state=str(run.state), why=why or run.why)


def _checked_record(fields: RunJson) -> RunJson:
    """Returns what a record may hold, so that every store gives back what it was given. Raises OptionsError."""
    for name, value in fields.items():
        if not _is_plain(value):
            raise OptionsError(f"the run's {name}: texts, finite numbers, lists and objects of them")
    for name in ("state", "q_name"):
        if not isinstance(fields.get(name, ""), str):
            raise OptionsError(f"the run's {name} is a text")
    if len(msgspec.msgpack.encode(fields)) > LARGEST_RECORD:
        raise OptionsError(f"a run's record has at most {LARGEST_RECORD} bytes")
    return fields


def _is_plain(value: object) -> bool:
    rest = [value]
    while rest:
        inner = rest.pop()
        if isinstance(inner, dict):
            rest += inner.values()
            if not all(isinstance(key, str) for key in inner):
                return False
        elif isinstance(inner, list):
            rest += inner
        elif isinstance(inner, float):
            if not isfinite(inner):
                return False
        elif not (inner is None or isinstance(inner, str | int)):
            return False
    return True
