"""Runs for queues elsewhere: how one is repeated, since no initiation queue here has a trigger message for it."""

from __future__ import annotations

from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.replies import Done
from trigmon.mq.run import Run, RunFields, RunState
from trigmon.rules.model.changes import WriteRun
from trigmon.rules.model.decision import Decision, Ids
from trigmon.rules.model.events import OperatorAsked
from trigmon.rules.model.facts import WideFacts
from trigmon.rules.runs.admission import as_recorded
from trigmon.rules.runs.pause import who

KEPT = (
    *TriggerMessage.__struct_fields__,
    *("occasion", "traceparent", "initiation_q", "monitor", "host"),
    *("bridge", "remote_q_mgr", "remote_initiation_q", "remote_msg_id", "bridged_by", "remote_before"),
)
"""The fields of a record that another run for the same trigger message has as well."""
BLANK: RunFields = {"argv": [], "directory": "", "user": "", "pid": 0, "start_ms": 0, "end_ms": 0}
BLANK |= {"exit_status": None, "signal": None, "stderr_tail": "", "repeats": ""}


def repeated_bridged(run: Run, trigger: TriggerMessage, facts: WideFacts, now: int, ids: Ids) -> Decision:
    """Returns the decision that holds a further run, which any monitor of the initiation queue starts."""
    run_id = f"{now:011x}{ids.message() & 0xFFFFF:05x}"
    by = who(facts.connection)
    fields: RunFields = BLANK | {
        "run_id": run_id,
        "state": RunState.HELD,
        "why": f"run {run.run_id} is repeated for {by}",
        "repeats": run.run_id,
        "attempt": 1,
        "recorded_ms": now,
        "process": as_recorded(facts.process),
        "appl_type": trigger.appl_type,
        "appl_id": trigger.appl_id,
        "env_data": trigger.env_data,
        "user_data": trigger.user_data,
    }
    event = OperatorAsked("run to be repeated", {"run": run.run_id, "by": by})
    return Decision(Done(), [WriteRun(run_id, run.only(KEPT).changed(**fields), is_news=True)], events=(event,))
