"""The table of rights: for each call of a client the rights that it needs, on which object.

The queue manager looks here once a call, before the verb decides; a call through a handle was judged by the open that
made the handle, as in MQ. What a call lists is cut down to what its user may display (``dsp``) where the verb lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from trigmon.mq import calls
from trigmon.mq.attributes import QUEUE_KINDS
from trigmon.mq.enums import ObjectType, OpenOption
from trigmon.mq.rights import SELF, Right
from trigmon.rules.model.access import is_of
from trigmon.rules.model.authority import Need, check_right, has_right
from trigmon.rules.model.facts import Facts, RunFacts, WideFacts
from trigmon.rules.model.resolve_name import object_type_of
from trigmon.rules.model.ticket import check_call_by_ticket

Needs = Callable[[Any, Any], Iterable[Need]]

_INPUT = (OpenOption.INPUT_AS_Q_DEF | OpenOption.INPUT_SHARED | OpenOption.INPUT_EXCLUSIVE).value
_OPTIONS = (
    (_INPUT, Right.GET),
    (OpenOption.BROWSE.value, Right.BROWSE),
    (OpenOption.OUTPUT.value, Right.PUT),
    (OpenOption.INQUIRE.value, Right.INQ),
    (OpenOption.SET.value, Right.SET),
)


def kind_of(object_type: ObjectType) -> str:
    """Returns the kind of object as records name it: every kind of queue is one."""
    return "queue" if object_type in QUEUE_KINDS else object_type.name.lower()


def may_see_queue(name: str, facts: Facts) -> bool:
    """Returns whether the user may display a queue."""
    return facts.records is None or has_right(Need(Right.DSP, "queue", name), facts.connection, facts.records)


def of_q_mgr(right: Right) -> Need:
    """Returns the need of a right on the queue manager itself."""
    return Need(right, "qmgr", SELF)


def _nothing(call: Any, facts: Facts) -> Iterable[Need]:
    """Returns no need: of every user, or judged by the open that made the handle, or by whose reservation it is."""
    return ()


def _monitor(call: Any, facts: Facts) -> Iterable[Need]:
    return (of_q_mgr(Right.MONITOR),)


def _administrator(call: Any, facts: Facts) -> Iterable[Need]:
    return (of_q_mgr(Right.SYSTEM),)


def _display_q_mgr(call: Any, facts: Facts) -> Iterable[Need]:
    return (of_q_mgr(Right.DSP),)


def _open(call: calls.Open, facts: Facts) -> Iterable[Need]:
    """Returns a need for each way of the open, on the object as it is named: an alias for itself, as in MQ."""
    kind = "queue" if call.object_type == "queue" else kind_of(object_type_of(call.object_type))
    name = SELF if kind == "qmgr" else call.object_name
    owner = facts.queue.definition.made_by if facts.queue is not None and facts.alias is None else ""
    return [Need(right, kind, name, owner) for bits, right in _OPTIONS if call.options & bits]


def _put(call: calls.Put | calls.PutMany, facts: Facts) -> Iterable[Need]:
    if call.handle:
        return ()
    owner = facts.queue.definition.made_by if facts.queue is not None and facts.alias is None else ""
    return (Need(Right.PUT, "queue", call.q_name, owner),)


def _get_many(call: calls.GetMany, facts: Facts) -> Iterable[Need]:
    """Returns the right to record runs, where the call asks for that; it was judged by the open else."""
    return () if call.runs is None else (of_q_mgr(Right.MONITOR),)


def _define(call: calls.Define, facts: WideFacts) -> Iterable[Need]:
    """Returns the right to create, or where the object is there and is replaced the right to change."""
    there = facts.named is not None or facts.of_group is not None
    return _on_definition(call.object_type, call.name, Right.CHG if there else Right.CRT)


def _alter(call: calls.Alter, facts: WideFacts) -> Iterable[Need]:
    return _on_definition(call.object_type, call.name, Right.CHG)


def _delete(call: calls.Delete, facts: WideFacts) -> Iterable[Need]:
    return (
        *_on_definition(call.object_type, call.name, Right.DLT),
        *(_on_definition(call.object_type, call.name, Right.CLR) if call.purge else ()),
    )


def _on_definition(object_type: str, name: str, right: Right) -> Iterable[Need]:
    which = object_type_of(object_type)
    if which is ObjectType.AUTHREC:
        return (of_q_mgr(Right.SYSTEM),)
    return (of_q_mgr(right),) if which is ObjectType.QMGR else (Need(right, kind_of(which), name),)


def _clear(call: calls.Clear, facts: Facts) -> Iterable[Need]:
    return (Need(Right.CLR, "queue", call.q_name),)


def _move(call: calls.Move, facts: Facts) -> Iterable[Need]:
    return Need(Right.CLR, "queue", call.q_name), Need(Right.PUT, "queue", call.to_q_name)


def _dead_letters(call: calls.AnySift, facts: Facts) -> Iterable[Need]:
    return Need(Right.BROWSE, "queue", _dead(call, facts)), Need(Right.CLR, "queue", _dead(call, facts))


def _retry_dead_letters(call: calls.RetryDeadLetters, facts: Facts) -> Iterable[Need]:
    yield Need(Right.CHG, "queue", _dead(call, facts))
    if call.to_q_name:
        yield Need(Right.PUT, "queue", call.to_q_name)


def _discard(call: calls.AnySift, facts: Facts) -> Iterable[Need]:
    return (Need(Right.CLR, "queue", _dead(call, facts)),)


def _dead(call: calls.AnySift, facts: Facts) -> str:
    return call.q_name or facts.q_mgr.dead_letter_q_name


def _generic(right: Right) -> Needs:
    """Returns a right on the one queue that is named, or for a generic name on the queue manager."""

    def needs(call: Any, facts: Facts) -> Iterable[Need]:
        name = call.name if isinstance(call, calls.Refresh) else call.q_name
        return (of_q_mgr(right) if name.endswith("*") else Need(right, "queue", name),)

    return needs


def _display(call: calls.Display, facts: Facts) -> Iterable[Need]:
    """Returns the right on the one object that is named; a generic name lists what the user may display."""
    which = "queue" if call.object_type == "queue" else kind_of(object_type_of(call.object_type))
    if which == "qmgr":
        return (of_q_mgr(Right.DSP),)
    return () if call.name.endswith("*") or which == "authrec" else (Need(Right.DSP, which, call.name),)


def _display_queue(call: calls.QueueStatus | calls.DisplayHandles | calls.Reservations, facts: Facts) -> Iterable[Need]:
    return () if call.q_name.endswith("*") else (Need(Right.DSP, "queue", call.q_name),)


def _explain(call: calls.Explain | calls.Rehearse, facts: Facts) -> Iterable[Need]:
    return (Need(Right.DSP, "queue", call.q_name),)


def _explain_rights(call: calls.ExplainRights, facts: Facts) -> Iterable[Need]:
    return () if call.user in ("", facts.connection.user) else (of_q_mgr(Right.DSP),)


def _control(call: calls.Pause | calls.Resume, facts: Facts) -> Iterable[Need]:
    kind = call.what.lower()
    if kind not in ("queue", "process", "schedule", "watch"):
        return (of_q_mgr(Right.CTRL),)
    return (Need(Right.CTRL, kind, call.name),)


def _run_schedule(call: calls.RunSchedule, facts: Facts) -> Iterable[Need]:
    return (Need(Right.CTRL, "schedule", call.name),)


def _run(call: calls.CancelRun | calls.RetryRun, facts: RunFacts) -> Iterable[Need]:
    """Returns the right on the queue for which the run is, or on its process where it is for none."""
    trigger = facts.run.trigger if facts.run is not None else None
    if trigger is None or not (name := trigger.q_name or trigger.process_name):
        return (of_q_mgr(Right.CTRL),)
    return (Need(Right.CTRL, "queue" if trigger.q_name else "process", name),)


def _runs(call: calls.Runs, facts: Facts) -> Iterable[Need]:
    q_name = call.where.get("q_name")
    return (Need(Right.DSP, "queue", q_name) if q_name and isinstance(q_name, str) else of_q_mgr(Right.DSP),)


def _read_reserved(call: calls.ReadReserved | calls.IssueTicket, facts: Facts) -> Iterable[Need]:
    reservation = facts.reservation
    if reservation is None or is_of(reservation, facts.connection):
        return ()
    return (Need(Right.GET, "queue", reservation.q_name),)


RIGHTS: dict[type[calls.Call], Needs] = {
    calls.Open: _open,
    calls.Close: _nothing,
    calls.Put: _put,
    calls.PutMany: _put,
    calls.Get: _nothing,
    calls.GetMany: _get_many,
    calls.BrowseMany: _nothing,
    calls.PlanBrowse: _nothing,
    calls.Inquire: _nothing,
    calls.Set: _nothing,
    calls.Commit: _nothing,
    calls.Backout: _nothing,
    calls.Disconnect: _nothing,
    calls.LostConnection: _nothing,
    calls.Outcome: _nothing,
    calls.Define: _define,
    calls.Alter: _alter,
    calls.Delete: _delete,
    calls.Clear: _clear,
    calls.Move: _move,
    calls.DeadLetters: _dead_letters,
    calls.RetryDeadLetters: _retry_dead_letters,
    calls.DiscardDeadLetters: _discard,
    calls.Refresh: _generic(Right.CTRL),
    calls.Display: _display,
    calls.DisplayHandles: _display_queue,
    calls.DisplayGroup: _display_q_mgr,
    calls.QueueStatus: _display_queue,
    calls.ResetQueueStatistics: _generic(Right.CTRL),
    calls.DisplayConnections: _display_q_mgr,
    calls.EndConnection: lambda call, facts: (of_q_mgr(Right.CTRL),),
    calls.Status: _display_q_mgr,
    calls.Statistics: _display_q_mgr,
    calls.Explain: _explain,
    calls.Rehearse: _explain,
    calls.SetAuthority: _administrator,
    calls.ExplainRights: _explain_rights,
    calls.Pause: _control,
    calls.Resume: _control,
    calls.RunSchedule: _run_schedule,
    calls.Pauses: _display_q_mgr,
    calls.BeginBackup: _administrator,
    calls.ReadBackup: _administrator,
    calls.EndBackup: _administrator,
    calls.Ping: _nothing,
    calls.RecordRun: _monitor,
    calls.RecordRuns: _monitor,
    calls.StartRuns: _monitor,
    calls.ChangeRun: _monitor,
    calls.Runs: _runs,
    calls.RunHistory: _display_q_mgr,
    calls.CancelRun: _run,
    calls.RetryRun: _run,
    calls.Controls: _monitor,
    calls.ReportWatches: _administrator,
    calls.ReportCopy: _administrator,
    calls.Reserve: _nothing,
    calls.ReadReserved: _read_reserved,
    calls.IssueTicket: _read_reserved,
    calls.Settle: _nothing,
    calls.Release: _nothing,
    calls.Attempt: _nothing,
    calls.Reject: _nothing,
    calls.Reservations: _display_queue,
}


ACTS = frozenset(
    (
        *(calls.Define, calls.Alter, calls.Delete, calls.Clear, calls.Move, calls.Set, calls.SetAuthority),
        *(calls.RetryDeadLetters, calls.DiscardDeadLetters, calls.Refresh, calls.ResetQueueStatistics),
        *(calls.Pause, calls.Resume, calls.RunSchedule, calls.CancelRun, calls.RetryRun),
        *(calls.EndConnection, calls.BeginBackup),
    )
)
"""The calls that are recorded for the audit when they have changed something, or have handed out everything."""


def check_call(call: calls.Call, facts: Facts, now: int) -> None:
    """Raises NotAuthorized (2035) where the user of a call, who is no administrator, lacks a right that it needs.

    Who came by a ticket has the right of the ticket, and no other.
    """
    connection = facts.connection
    if connection.ticket is not None:
        check_call_by_ticket(call, connection.ticket, facts.reservation, now)
        return
    for need in RIGHTS[type(call)](call, facts):
        check_right(need, connection, facts.records, str(call.__struct_config__.tag))
