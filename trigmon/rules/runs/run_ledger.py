"""The run ledger: how a run is written down, changed, cancelled, started again and at last forgotten.

The ledger is where it is decided whether a program may be started now: a run becomes ``due`` here or it does not, in
the same turn in which pauses and cancellations are written, whichever monitor asks and on whatever host it is.
:mod:`trigmon.monitor.run_changes` tells what a record holds.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import msgspec
from msgspec.structs import replace

from trigmon.mq.calls import Call, CancelRun, ChangeRun, Commit, Controls, RecordRun, RecordRuns, RetryRun, Runs
from trigmon.mq.descriptors import ID_LENGTH, MessageDescriptor, TriggerMessage, pack_tm
from trigmon.mq.enums import Coalesce, Persistence
from trigmon.mq.errors import CommandFailed, ObjectAlreadyExists, OptionsError, UnknownObjectName
from trigmon.mq.explanation import moment
from trigmon.mq.replies import Counted, Done, Listing, Recorded, Values, WereRecorded
from trigmon.mq.run_states import CANCELLED, DRAINED, DUE, HELD, JOINED, OPEN, SERVING, STARTED, WITH_PROGRAM
from trigmon.rules.model.changes import AnyChange, DropRun, Serve, Unserve
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.errands import Deliver, JudgeRun, Prune
from trigmon.rules.model.events import OperatorAsked
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.manager_state import ManagerState
from trigmon.rules.model.run_facts import Cause
from trigmon.rules.model.run_program import (
    as_defined,
    check_unchanged,
    is_the_queue_managers,
    not_of_its_queue,
    with_known_program,
)
from trigmon.rules.model.run_record import has_ended, is_being_cancelled, slot_of, written
from trigmon.rules.model.stored_messages import SLICE, Found
from trigmon.rules.runs.admission import applicant, as_recorded, hindrance, is_for_one, pause_of, served_run
from trigmon.rules.runs.pause import checked_reason, paused, rows, who
from trigmon.rules.runs.program_tracking import counts
from trigmon.rules.triggers.effects import trigger_descriptor

LARGEST_RECORD = 65_536
WAITS = "waits for its turn"
"""Why a run is held that was paused; while it is, the listing says who paused it instead."""

MOST_RECORDS = 64
_UNSTARTED = (DUE, HELD, "")
_SAME = ("q_name", "process_name", "trigger_data", "appl_type", "appl_id", "env_data", "user_data")

NOT_STARTED = "its trigger message was not started"

REPEATS = b"RUN "
"""What CorrelId begins with in the trigger message of a repeated run; the run it repeats follows."""

_Record = dict[str, Any]


def decide_record_run(call: RecordRun, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """A new run, committed together with the get of the trigger message that caused it."""
    if facts.run is not None:
        raise ObjectAlreadyExists(f"run {call.run_id}")
    record = with_known_program(call.run_id, {**_checked_record(call.record), "run_id": call.run_id}, facts)
    record.setdefault("recorded_ms", now)
    record["process"] = as_recorded(facts.process)
    record["verdict"] = list(facts.fired)
    errands: list[Call] = [Commit(unit=call.unit)] if call.unit else []
    why = ""
    more: list[AnyChange] = []
    if record.get("state") == DUE:
        joined, more = _joined(record, facts, now)
        why = "" if joined else hindrance(applicant(record, facts), facts, call.caps, now)
        record = joined or (_held(record, why, facts) if why else record)
    changes: list[AnyChange] = [written(record, now), *more]
    if record.get("state") in WITH_PROGRAM:
        changes.append(_served(record, facts))
    return Decision(replace(_recorded(record, why), process=record["process"]), changes, errands)


def decide_record_runs(call: RecordRuns, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Several at once: what the trigger messages that were got together are to become."""
    if not 0 < len(call.records) <= MOST_RECORDS:
        raise OptionsError(f"1 to {MOST_RECORDS} runs are recorded at a time, not {len(call.records)}")
    errands: list[Call] = [
        RecordRun(run_id=str(record.get("run_id", "")), record=record, caps=call.caps) for record in call.records
    ]
    errands += [Commit(unit=call.unit)] if call.unit else []
    return Decision(
        errands=errands,
        gather=lambda replies: WereRecorded(runs=[reply for reply in replies if isinstance(reply, Recorded)]),
    )


def decide_change_run(call: ChangeRun, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Named fields of a run's record, overwritten."""
    if facts.run is None:
        raise UnknownObjectName(f"run {call.run_id}")
    before: _Record = facts.run
    fields = _checked_record(call.fields)
    check_unchanged(call.run_id, before, fields, facts)
    if "state" in fields and fields["state"] in _UNSTARTED and before.get("state") not in _UNSTARTED:
        return Decision(_recorded(before))  # it has a program, or had: none is started for it again
    if has_ended(before) and fields.get("state") in OPEN:
        return Decision(_recorded(before))  # cancelled, while its monitor was about to start it
    if fields.get("state") == STARTED and before.get("state") in (SERVING, DRAINED):
        fields = {name: value for name, value in fields.items() if name != "state"}
    after = _as_cancelled({**before, **fields, "run_id": call.run_id}, fields.get("state"), now)
    if after.get("state") == DUE and (why := paused(facts, after.get("q_name"), after.get("process_name"))):
        after = _held(after, why, facts)
    else:
        why = ""
    changes: list[AnyChange] = [written(after, now, before)]
    errands: list[Call] = []
    itself = facts.itself
    if after.get("state") in WITH_PROGRAM:
        if itself is None or itself.monitor != after.get("monitor", ""):
            changes.append(_served(after, facts))
    elif itself is not None and after.get("state") == HELD:
        changes.append(Unserve(call.run_id))
    elif itself is not None and not itself.is_over:
        # Its connections tell what becomes of what it got: the last of them is waited for.
        changes.append(Serve(replace(itself, is_over=True)))
        errands += [] if facts.connected else [JudgeRun(run_id=call.run_id)]
    return Decision(_recorded(after, why), changes, errands)


def decide_runs(call: Runs, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Runs, newest first: a held one says what keeps it now, one with a program what that has done so far."""
    limit = runs_limit(call)
    doing = {each.run_id: counts(each) for each in facts.serves}
    causes = {(each.slot, each.q_name): each for each in facts.causes}
    listed = []
    for run in facts.runs[:limit]:
        row = {**run, **doing.get(str(run.get("run_id", "")), {})}
        if row.get("state") == HELD:
            row["why"] = _keeps(row, causes.get((slot_of(row), str(row.get("q_name", "")))), facts, now)
        listed.append(row)
    return Decision(Listing(rows=listed, more=len(facts.runs) > limit))


def _keeps(held: _Record, cause: Cause | None, facts: Facts, now: int) -> str:
    """What keeps a held run from being started now, or did when it was held."""
    if why := paused(facts, held.get("q_name"), held.get("process_name")) or pause_of(cause, now):
        return why
    initiation_q = str(held.get("initiation_q", ""))
    if initiation_q in facts.unread:
        return f"nobody reads its initiation queue: trigmon monitor --initq {initiation_q}"
    return str(held.get("why", ""))


def decide_cancel_run(call: CancelRun, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """A held run ends here and now; one that has, or may have, a process is for its monitor to end."""
    run = _found(call.run_id, facts)
    if has_ended(run):
        raise CommandFailed(f"RUN({call.run_id}) has ended: {run['state']}")
    if is_being_cancelled(run):
        raise CommandFailed(f"RUN({call.run_id}) is being {_cancelled(run)}")
    by, reason = who(facts.connection), checked_reason(call.reason)
    run = {**run, "cancelled_by": by, "cancelled_ms": now, "cancel_reason": reason}
    if run["state"] == HELD:
        run |= {"state": CANCELLED, "end_ms": now, "why": f"{_cancelled(run)}; {NOT_STARTED}"}
    event = OperatorAsked("run cancelled", {"run": call.run_id, "by": by, "reason": reason})
    return Decision(_recorded(run), [replace(written(run, now, facts.run), is_news=True)], events=(event,))


def decide_retry_run(call: RetryRun, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Its trigger message on the same initiation queue: any monitor there takes it, as it takes every other.

    What is executed is the definition of today: the record of a run that never started is its monitor's word.
    """
    run = _found(call.run_id, facts)
    if not has_ended(run):
        raise CommandFailed(f"RUN({call.run_id}) has not ended: {run['state']}")
    fields = {name: run.get(name) for name in (*TriggerMessage.__struct_fields__, "occasion", "initiation_q")}
    correl_id = (REPEATS + call.run_id.encode()).ljust(ID_LENGTH, b"\0")
    try:
        again = msgspec.convert(fields, _Again)
        trigger = msgspec.convert(fields, TriggerMessage)
        pack_tm(trigger)
    except Exception:  # a record is what its monitor wrote, and may hold anything
        again, trigger = _Again(), TriggerMessage(q_name="")
    if not again.initiation_q or len(correl_id) > ID_LENGTH:
        raise CommandFailed(f"RUN({call.run_id}): its record does not hold what it was started by")
    why = not_of_its_queue(trigger, facts)
    if why or facts.process is None:
        raise CommandFailed(f"RUN({call.run_id}) cannot be repeated: {why}")
    data = pack_tm(as_defined(trigger, facts.process))
    by = who(facts.connection)
    descriptor = trigger_descriptor(0, facts.q_mgr.name, ids.msg_id(ids.message()), now, again.occasion)
    # Somebody asked for it, once: unlike a trigger message that the next put would write again, it outlives a restart.
    asked = replace(descriptor, persistence=int(Persistence.PERSISTENT), correl_id=correl_id, user_identifier=by)
    errand = Deliver(q_name=again.initiation_q, descriptor=asked, data=data)
    event = OperatorAsked("run to be repeated", {"run": call.run_id, "by": by})
    return Decision(Done(), errands=[errand], events=(event,))


def decide_controls(call: Controls, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """What is paused, and which of its runs a monitor is to end."""
    cancel = sorted(run_id for run_id, monitor in facts.cancelling if monitor == call.monitor)
    return Decision(Values(values={"pauses": rows(facts.pauses), "cancel": cancel}))


def complete_controls(call: Controls, reply: Values, manager: ManagerState) -> Values:
    """Adds the number of the last news, by which a monitor sees that it missed none."""
    return replace(reply, values={**reply.values, "number": manager.news})


def decide_prune(call: Prune, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """A slice of what the ledger need not keep leaves it."""
    return Decision(
        Counted(count=len(facts.outdated), more=len(facts.outdated) >= SLICE), [DropRun(run) for run in facts.outdated]
    )


def repeated(descriptor: MessageDescriptor) -> str:
    """The run that a trigger message is to repeat; blank where it is an event's, or was not written by us.

    A report is ours as well, but its CorrelId is what a sender chose.
    """
    if not is_the_queue_managers(descriptor) or not descriptor.correl_id.startswith(REPEATS):
        return ""
    return descriptor.correl_id.removeprefix(REPEATS).rstrip(b"\0").decode(errors="replace")


def runs_limit(call: Runs) -> int:
    """How many runs one answer lists."""
    return max(1, min(call.limit, SLICE))


def checked_where(where: _Record) -> _Record:
    """The values to compare with. Raises OptionsError for what no field of a record can be."""
    for name, value in where.items():
        if not isinstance(value, str | int) or not -(2**63) <= (value if isinstance(value, int) else 0) < 2**63:
            raise OptionsError(f"runs where {name}: a text or a whole number, not {type(value).__name__}")
    return where


class _Again(msgspec.Struct):
    """What a record says of how its trigger message came, where it is one that a monitor wrote."""

    occasion: str = ""
    initiation_q: str = ""


def _found(run_id: str, facts: Facts) -> _Record:
    if facts.run is None:
        raise UnknownObjectName(f"RUN({run_id})")
    return facts.run


def fired_by(call: RecordRun) -> tuple[str, str]:
    """For which queue a run is, and on which occasion that fired."""
    return str(call.record.get("q_name", "")), str(call.record.get("occasion", ""))


def _joined(record: _Record, facts: Facts, now: int) -> tuple[_Record | None, list[AnyChange]]:
    """The record of a run that another one which waits does the work of; None where each is started for itself.

    A further try that waits is joined by the trigger message that the failed program's own close has brought. Where
    the definition has others join it too, it is tried for them from the first time on.
    """
    waiting = facts.waiting
    if waiting is None:
        return None, []
    loops = is_for_one(facts.queue)
    coalesces = facts.process is not None and facts.process.coalesce is Coalesce.YES
    if not (coalesces or (loops and waiting.get("retries"))):
        return None, []
    if any(waiting.get(name) != record.get(name) for name in _SAME):
        return None, []
    why = f"run {waiting['run_id']}, which waits, does the same: {waiting.get('why', '')}".rstrip(": ")
    begins_anew = waiting.get("retries") and not loops
    more: list[AnyChange] = [written({**waiting, "attempt": 1}, now, waiting)] if begins_anew else []
    return {**record, "state": JOINED, "joins": waiting["run_id"], "end_ms": now, "why": why}, more


def _held(record: _Record, why: str, facts: Facts) -> _Record:
    """The record of a run that was to be due; who paused it the listing says as long as it is so."""
    is_paused = why == paused(facts, record.get("q_name"), record.get("process_name"))
    return {**record, "state": HELD, "argv": [], "directory": "", "why": WAITS if is_paused else why}


def _as_cancelled(record: _Record, wanted: object, now: int) -> _Record:
    """The record of a run that operators had cancelled meanwhile: it does not start, or ends as cancelled."""
    if not record.get("cancelled_by"):
        return record
    if wanted in (DUE, HELD):
        return {**record, "state": CANCELLED, "end_ms": now, "why": f"{_cancelled(record)}; {NOT_STARTED}"}
    if has_ended(record) and record["state"] != CANCELLED:
        return {**record, "state": CANCELLED, "why": f"{_cancelled(record)}; {record.get('why') or 'it ended'}"}
    return record


def _served(record: _Record, facts: Facts) -> Serve:
    """A run that has, or may have, a program from now on, and whose it is."""
    itself = facts.itself or served_run(record, facts)
    return Serve(replace(itself, monitor=str(record.get("monitor", ""))))


def _cancelled(record: _Record) -> str:
    """By whom, when and why, for a person."""
    at = record.get("cancelled_ms")
    said = f"cancelled by {record.get('cancelled_by')}" + (f" at {moment(at)}" if isinstance(at, int) else "")
    return f"{said}: {record['cancel_reason']}" if record.get("cancel_reason") else said


def _recorded(record: _Record, why: str = "") -> Recorded:
    said = why or record.get("why")
    return Recorded(state=str(record.get("state", "")), why=said if isinstance(said, str) else "")


def _checked_record(fields: _Record) -> _Record:
    """What a record may hold, so that every store gives back what it was given. Raises OptionsError."""
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
