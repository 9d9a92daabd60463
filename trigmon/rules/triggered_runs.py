"""A monitor's get: trigger messages of the queue manager's own become runs in the very call that gets them.

So a put that fires, its trigger message, the get of it and the record of its run are one turn and one sync.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from trigmon.mq.calls import GetMany, NewRuns, RecordRuns
from trigmon.mq.descriptors import FORMAT_TRIGGER, TriggerMessage, control_character, unpack_tm
from trigmon.mq.errors import OptionsError, TmError
from trigmon.mq.replies import Reply, WasGot, WereGot, WereRecorded
from trigmon.mq.run import Run, RunFields
from trigmon.rules.dead_letters.backout_requeue import decide_get
from trigmon.rules.messages.units_of_work import SYNCPOINT
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.facts import Facts
from trigmon.rules.model.run_program import is_the_queue_managers
from trigmon.rules.model.stored_messages import Found
from trigmon.rules.runs.new_run_record import as_recorded, new_run_id, recorded
from trigmon.rules.runs.run_ledger import MOST_RECORDS, cause_of

_RUN_ID = re.compile("[0-9a-f]{1,16}")


def decide_get_many(call: GetMany, facts: Facts, found: Found | None, now: int, ids: Ids) -> Decision:
    """Gets several messages; records and commits the runs that they are to become, where the call asks for it."""
    new = call.runs
    if new is not None:
        _check(call, new)
    decision = decide_get(call, facts, found, now, ids)
    if new is None or not isinstance(decision.reply, WereGot):
        return decision
    assert facts.handle is not None  # it has got something
    runs = _runs_of(decision.reply.messages, facts.handle.q_name, new, now)
    if not runs:
        return decision
    record = RecordRuns(records=[run.json for run in runs], unit=call.unit, caps=new.caps)
    return replace(
        decision, internal_calls=[*decision.internal_calls, record], gather=lambda replies: _as_recorded(runs, replies)
    )


def _check(call: GetMany, new: NewRuns) -> None:
    if not (call.unit and call.options & SYNCPOINT and call.count <= MOST_RECORDS):
        raise OptionsError(f"get_many that records runs takes SYNCPOINT, a unit and a count of {MOST_RECORDS} at most")
    if not _RUN_ID.fullmatch(new.after):
        raise OptionsError(f"{new.after[:20]!r} is no id of a run")


def _runs_of(messages: list[WasGot], initiation_q: str, new: NewRuns, now: int) -> list[Run]:
    """Returns the new runs of these messages; none where one of them is for the monitor to look at."""
    runs: list[Run] = []
    after = new.after
    for got in messages:
        trigger = own_trigger(got)
        if trigger is None or trigger.appl_type not in new.appl_types:
            return []
        after = new_run_id(now, got.descriptor.msg_id, after)
        known: RunFields = {"monitor": new.monitor, "host": new.host, "initiation_q": initiation_q}
        known |= cause_of(got.descriptor)
        runs.append(recorded(after, trigger, now_ms=now, **known))
    return runs


def own_trigger(got: WasGot) -> TriggerMessage | None:
    """Returns the trigger message that the queue manager wrote, None where this is none."""
    if got.descriptor.format != FORMAT_TRIGGER or not is_the_queue_managers(got.descriptor):
        return None
    try:
        trigger = unpack_tm(got.data)
    except TmError:
        return None
    return None if control_character(trigger) else trigger


def _as_recorded(runs: list[Run], replies: list[Reply]) -> WereGot:
    """Returns the runs as the ledger has them behind the last of these replies."""
    were = replies[-1]
    assert isinstance(were, WereRecorded)
    return WereGot(messages=[], runs=[as_recorded(*each).json for each in zip(runs, were.runs, strict=True)])
