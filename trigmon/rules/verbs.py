"""The table of verbs: for each call the facts it needs, the messages it selects, and its decision."""

from __future__ import annotations

from typing import Any

from trigmon.mq import calls
from trigmon.mq.enums import ObjectType
from trigmon.mq.run import read_run
from trigmon.rules.backup_calls import complete_begin_backup, complete_end_backup, complete_read_backup, decide_backup
from trigmon.rules.copies import complete_report_copy, decide_report_copy
from trigmon.rules.dead_letters.backout_requeue import (
    decide_get,
    decide_hand_out,
    decide_put_aside,
    decide_put_part,
    look_for_hand_out,
    look_for_put_aside,
)
from trigmon.rules.dead_letters.dead_letter import decide_dead_letter
from trigmon.rules.dead_letters.manage import (
    decide_dead_letters,
    decide_discard,
    decide_retry,
    decide_send_back,
    look_for_dead_letters,
)
from trigmon.rules.dead_letters.newest import decide_newest, look_for_newest
from trigmon.rules.dead_letters.reject import decide_put_off, decide_reject, look_for_reject
from trigmon.rules.dead_letters.undelivered import decide_report, decide_undelivered
from trigmon.rules.display import (
    complete_display,
    complete_status,
    decide_display,
    decide_display_handles,
    decide_ping,
    decide_status,
)
from trigmon.rules.display_connections import (
    complete_end_connection,
    decide_display_connections,
    decide_end_connection,
)
from trigmon.rules.display_group import decide_display_group
from trigmon.rules.event_messages.event_put import decide_put_event
from trigmon.rules.event_messages.look_around import decide_look_around
from trigmon.rules.event_messages.queue_events import decide_queue_event
from trigmon.rules.explain import RUNS_LOOKED_AT, complete_explain, decide_explain, look_for_explain
from trigmon.rules.messages.browse_many import (
    decide_browse_many,
    decide_plan_browse,
    look_for_browse_many,
    look_for_plan_browse,
)
from trigmon.rules.messages.expiry import decide_expire, decide_look_through, decide_refresh, look_for_expire
from trigmon.rules.messages.get import look_for_get, look_for_get_many
from trigmon.rules.messages.put import decide_deliver, decide_put, wants_put
from trigmon.rules.messages.put_many import decide_put_many
from trigmon.rules.messages.units_of_work import decide_abandon, decide_backout, decide_commit, decide_outcome
from trigmon.rules.model.facts import LedgerWants, RunWants, Wants, WorldWants
from trigmon.rules.model.internal_calls import (
    Abandon,
    Attend,
    Awake,
    DeadLetter,
    Deliver,
    Expire,
    Forget,
    HandOut,
    JudgeMoved,
    JudgeRun,
    JudgeShared,
    LeaveReservation,
    LookAround,
    LookThrough,
    MakeQueue,
    NewestMessage,
    Prune,
    PutAside,
    PutEvent,
    PutOff,
    PutPart,
    ReachMoment,
    Reap,
    Rearmed,
    RecordJudged,
    Report,
    ReportQueueEvent,
    Seal,
    SendBack,
    StartRun,
    Sweep,
    TakeCopy,
    TakeIn,
    Tend,
    Undelivered,
)
from trigmon.rules.model.resolve_name import object_type_of
from trigmon.rules.model.verb import Verb
from trigmon.rules.objects.authority_records import (
    complete_explain_rights,
    decide_explain_rights,
    decide_set_authority,
)
from trigmon.rules.objects.close import (
    decide_close,
    decide_disconnect,
    decide_forget,
    decide_lost_connection,
    decide_reap,
)
from trigmon.rules.objects.define import (
    DEFAULT_OBJECTS,
    decide_alter,
    decide_clear,
    decide_define,
    decide_delete,
    decide_move,
    decide_take_copy,
    look_for_clear,
    look_for_move,
)
from trigmon.rules.objects.inquire_set import decide_inquire, decide_set
from trigmon.rules.objects.open import decide_make_queue, decide_open, look_for_open
from trigmon.rules.objects.schedule_moments import decide_reach_moment, decide_run_schedule, wants_schedule
from trigmon.rules.objects.timed_triggers import decide_awake, decide_rearmed, decide_tend, look_for_tend
from trigmon.rules.queue_status import (
    complete_queue_status,
    complete_reset,
    decide_queue_status,
)
from trigmon.rules.rehearsal import decide_rehearse, look_for_rehearse
from trigmon.rules.reservations.display_reservations import decide_reservations
from trigmon.rules.reservations.end_reservation import (
    decide_leave_reservation,
    decide_release,
    decide_settle,
    decide_sweep,
    look_for_sweep,
)
from trigmon.rules.reservations.read_reserved import (
    complete_issue_ticket,
    decide_attempt,
    decide_issue_ticket,
    decide_read_reserved,
    look_for_read_reserved,
)
from trigmon.rules.reservations.reserve import (
    decide_reserve,
    decide_seal,
    decide_take_in,
    look_for_reserve,
    look_for_take_in,
)
from trigmon.rules.runs.admission import MOST_AT_ONCE, decide_start_run, decide_start_runs
from trigmon.rules.runs.outcome import decide_judge_run, look_for_judge_run
from trigmon.rules.runs.pause import decide_pause, decide_pauses, decide_resume, wants_pause
from trigmon.rules.runs.program_tracking import decide_attend
from trigmon.rules.runs.run_history import decide_run_history, wants_history
from trigmon.rules.runs.run_ledger import (
    complete_controls,
    decide_cancel_run,
    decide_change_run,
    decide_controls,
    decide_prune,
    decide_record_run,
    decide_record_runs,
    decide_retry_run,
    decide_runs,
    fired_by,
    wants_runs,
)
from trigmon.rules.shared_triggers import decide_judge_moved, decide_judge_shared, decide_record_judged
from trigmon.rules.statistics import complete_statistics, decide_statistics
from trigmon.rules.triggered_runs import decide_get_many
from trigmon.rules.watches import complete_report_watches, decide_report_watches


def _by_handle_or_name(call: Any, connection: int) -> Wants:
    return Wants(connection, call.q_name, None, call.handle)


def _by_handle(call: Any, connection: int) -> Wants:
    return Wants(connection, handle=call.handle)


def _by_q_name(call: Any, connection: int) -> Wants:
    return Wants(connection, call.q_name)


def _local_queue(call: calls.Rehearse, connection: int) -> WorldWants:
    return WorldWants(connection, call.q_name, object_type_of("QLOCAL"))


def _unit(call: calls.Put | calls.PutMany) -> int:
    return call.unit


def _explain(call: calls.Explain, connection: int) -> LedgerWants:
    return LedgerWants(connection, call.q_name, limit=RUNS_LOOKED_AT, of_queue=True)


def _nothing(call: Any, connection: int) -> Wants:
    return Wants(connection)


def _everything(call: Any, connection: int) -> WorldWants:
    return WorldWants(connection)


def _status(call: calls.Status, connection: int) -> WorldWants:
    return WorldWants(connection, of_failures=True)


def _group(call: calls.DisplayGroup, connection: int) -> WorldWants:
    return WorldWants(connection, of_group=True)


def _open(call: calls.Open, connection: int) -> Wants:
    object_type = None if call.object_type == "queue" else object_type_of(call.object_type)
    return Wants(connection, call.object_name, object_type)


def _record(call: calls.SetAuthority, connection: int) -> Wants:
    return Wants(connection, call.name, ObjectType.AUTHREC)


def _named_object(call: calls.ExplainRights, connection: int) -> Wants:
    return Wants(connection, call.name if call.object_type == "queue" else "")


def _new_queue(call: MakeQueue, connection: int) -> Wants:
    return Wants(connection, call.definition.name)


def _definition(call: Any, connection: int) -> WorldWants:
    object_type = object_type_of(call.object_type)
    like = ""
    if isinstance(call, calls.Define) and not (like := call.like):
        like = default if (default := DEFAULT_OBJECTS.get(object_type, "")) != call.name else ""
    return WorldWants(connection, call.name, object_type, like=like)


def _dead_letter(call: Any, connection: int) -> Wants:
    return Wants(connection, dead_letter=True)


def _report(call: Report, connection: int) -> Wants:
    return Wants(connection, call.q_name, q_mgr_name=call.q_mgr_name)


def _put_aside(call: PutAside | PutPart, connection: int) -> Wants:
    return Wants(connection, call.to_q_name, dead_letter=not call.to_q_name)


def _hand_out(call: HandOut, connection: int) -> Wants:
    return Wants(connection, handle=call.get.handle)


def _send_back(call: SendBack, connection: int) -> Wants:
    return Wants(connection, call.to_q_name)


def _dead_letters(call: Any, connection: int) -> WorldWants:
    return WorldWants(connection, call.q_name, dead_letter=not call.q_name)


def _move(call: calls.Move, connection: int) -> Wants:
    return Wants(connection, call.q_name, target=call.to_q_name)


def _outcome(call: calls.Outcome, connection: int) -> Wants:
    return Wants(connection, client_id=call.client_id, unit=call.unit)


def _reservation(call: Any, connection: int) -> Wants:
    return Wants(connection, reservation=call.reservation)


def _put_off(call: PutOff, connection: int) -> Wants:
    return Wants(connection, call.to_q_name, dead_letter=not call.to_q_name, reservation=call.reservation)


def _run(call: Any, connection: int) -> RunWants:
    return RunWants(connection, run_id=call.run_id)


def _new_run(call: calls.RecordRun, connection: int) -> RunWants:
    return RunWants(connection, run_id=call.run_id, run_of=read_run(call.record))


def _lines(call: calls.StartRuns, connection: int) -> LedgerWants:
    return LedgerWants(connection, line_of=call.initiation_q, limit=max(1, min(call.limit, MOST_AT_ONCE)))


def _prune(call: Prune, connection: int) -> LedgerWants:
    return LedgerWants(connection, keep_count=call.keep_count, ended_before_ms=call.ended_before_ms)


VERBS: dict[type[calls.Call], Verb] = {
    calls.Open: Verb(_open, decide_open, look_for_open, is_wide=True),
    calls.Close: Verb(_by_handle, decide_close),
    calls.Put: Verb(wants_put, decide_put, put_unit=_unit, needs_space=True),
    calls.PutMany: Verb(_by_handle_or_name, decide_put_many, put_unit=_unit, needs_space=True),
    calls.Get: Verb(_by_handle, decide_get, look_for_get, can_wait=True),
    calls.GetMany: Verb(_by_handle, decide_get_many, look_for_get_many, can_wait=True),
    calls.BrowseMany: Verb(_by_handle, decide_browse_many, look_for_browse_many, can_wait=True),
    calls.PlanBrowse: Verb(_by_handle, decide_plan_browse, look_for_plan_browse),
    calls.Inquire: Verb(_by_handle, decide_inquire, is_wide=True),
    calls.Set: Verb(_by_handle, decide_set, is_wide=True),
    calls.Commit: Verb(_nothing, decide_commit),
    calls.Backout: Verb(_nothing, decide_backout),
    calls.Disconnect: Verb(_nothing, decide_disconnect),
    calls.LostConnection: Verb(_nothing, decide_lost_connection, ends_wait=True),
    calls.Outcome: Verb(_outcome, decide_outcome, is_wide=True),
    calls.Define: Verb(_definition, decide_define, is_wide=True),
    calls.Alter: Verb(_definition, decide_alter, is_wide=True),
    calls.Delete: Verb(_definition, decide_delete, is_wide=True),
    calls.Clear: Verb(_by_q_name, decide_clear, look_for_clear, is_wide=True),
    calls.Move: Verb(_move, decide_move, look_for_move, is_wide=True),
    calls.DeadLetters: Verb(_dead_letters, decide_dead_letters, look_for_dead_letters, is_wide=True),
    calls.RetryDeadLetters: Verb(_dead_letters, decide_retry, look_for_dead_letters, is_wide=True),
    calls.DiscardDeadLetters: Verb(_dead_letters, decide_discard, look_for_dead_letters, is_wide=True),
    calls.Refresh: Verb(_everything, decide_refresh, is_wide=True),
    calls.Display: Verb(_everything, decide_display, complete=complete_display, is_wide=True),
    calls.DisplayHandles: Verb(_everything, decide_display_handles, is_wide=True),
    calls.DisplayGroup: Verb(_group, decide_display_group, is_wide=True),
    calls.QueueStatus: Verb(_everything, decide_queue_status, complete=complete_queue_status, is_wide=True),
    calls.ResetQueueStatistics: Verb(_everything, decide_queue_status, complete=complete_reset, is_wide=True),
    calls.DisplayConnections: Verb(_everything, decide_display_connections, is_wide=True),
    calls.EndConnection: Verb(_everything, decide_end_connection, complete=complete_end_connection, is_wide=True),
    calls.Status: Verb(_status, decide_status, complete=complete_status, is_wide=True),
    calls.Statistics: Verb(_everything, decide_statistics, complete=complete_statistics, is_wide=True),
    calls.Explain: Verb(_explain, decide_explain, look_for_explain, complete_explain, is_wide=True),
    calls.Rehearse: Verb(_local_queue, decide_rehearse, look_for_rehearse, is_wide=True),
    calls.SetAuthority: Verb(_record, decide_set_authority, is_wide=True),
    calls.ExplainRights: Verb(_named_object, decide_explain_rights, complete=complete_explain_rights, is_wide=True),
    calls.Pause: Verb(wants_pause, decide_pause, is_wide=True),
    calls.Resume: Verb(wants_pause, decide_resume, is_wide=True),
    calls.RunSchedule: Verb(wants_schedule, decide_run_schedule, is_wide=True),
    calls.Pauses: Verb(_nothing, decide_pauses, is_wide=True),
    calls.BeginBackup: Verb(_nothing, decide_backup, complete=complete_begin_backup),
    calls.ReadBackup: Verb(_nothing, decide_backup, complete=complete_read_backup),
    calls.EndBackup: Verb(_nothing, decide_backup, complete=complete_end_backup),
    calls.ReportWatches: Verb(_nothing, decide_report_watches, complete=complete_report_watches),
    calls.ReportCopy: Verb(_nothing, decide_report_copy, complete=complete_report_copy),
    calls.Ping: Verb(_nothing, decide_ping),
    calls.RecordRun: Verb(_new_run, decide_record_run, fired_by=fired_by, is_wide=True),
    calls.RecordRuns: Verb(_nothing, decide_record_runs),
    calls.StartRuns: Verb(_lines, decide_start_runs, is_wide=True),
    calls.ChangeRun: Verb(_run, decide_change_run, is_wide=True),
    calls.Runs: Verb(wants_runs, decide_runs, is_wide=True),
    calls.RunHistory: Verb(wants_history, decide_run_history, is_wide=True),
    calls.CancelRun: Verb(_run, decide_cancel_run, is_wide=True),
    calls.RetryRun: Verb(_run, decide_retry_run, is_wide=True),
    calls.Controls: Verb(_nothing, decide_controls, complete=complete_controls, is_wide=True, hears_news=True),
    calls.Reserve: Verb(_by_handle, decide_reserve, look_for_reserve, is_wide=True),
    calls.ReadReserved: Verb(_reservation, decide_read_reserved, look_for_read_reserved, is_wide=True),
    calls.IssueTicket: Verb(_reservation, decide_issue_ticket, complete=complete_issue_ticket, is_wide=True),
    calls.Settle: Verb(_reservation, decide_settle, is_wide=True),
    calls.Release: Verb(_reservation, decide_release, is_wide=True),
    calls.Attempt: Verb(_reservation, decide_attempt, is_wide=True),
    calls.Reject: Verb(_reservation, decide_reject, look_for_reject, is_wide=True),
    calls.Reservations: Verb(_everything, decide_reservations, is_wide=True),
    PutOff: Verb(_put_off, decide_put_off),
    TakeIn: Verb(_reservation, decide_take_in, look_for_take_in),
    Seal: Verb(_reservation, decide_seal),
    Sweep: Verb(_reservation, decide_sweep, look_for_sweep),
    LeaveReservation: Verb(_reservation, decide_leave_reservation),
    Deliver: Verb(_by_q_name, decide_deliver, needs_space=True),
    Report: Verb(_report, decide_report),
    Undelivered: Verb(_dead_letter, decide_undelivered),
    LookThrough: Verb(_everything, decide_look_through, is_wide=True),
    Expire: Verb(_by_q_name, decide_expire, look_for_expire),
    DeadLetter: Verb(_dead_letter, decide_dead_letter),
    PutAside: Verb(_put_aside, decide_put_aside, look_for_put_aside),
    PutPart: Verb(_put_aside, decide_put_part),
    SendBack: Verb(_send_back, decide_send_back),
    HandOut: Verb(_hand_out, decide_hand_out, look_for_hand_out),
    Abandon: Verb(_nothing, decide_abandon),
    Awake: Verb(_everything, decide_awake, is_wide=True),
    Rearmed: Verb(_by_q_name, decide_rearmed, is_wide=True),
    ReachMoment: Verb(wants_schedule, decide_reach_moment, is_wide=True),
    NewestMessage: Verb(_by_q_name, decide_newest, look_for_newest),
    Tend: Verb(_by_q_name, decide_tend, look_for_tend),
    MakeQueue: Verb(_new_queue, decide_make_queue, is_wide=True),
    Reap: Verb(_by_q_name, decide_reap),
    JudgeMoved: Verb(_nothing, decide_judge_moved),
    TakeCopy: Verb(_definition, decide_take_copy, is_wide=True),
    JudgeShared: Verb(_by_q_name, decide_judge_shared, is_wide=True),
    RecordJudged: Verb(_nothing, decide_record_judged),
    Attend: Verb(_run, decide_attend, is_wide=True),
    StartRun: Verb(_run, decide_start_run, is_wide=True),
    JudgeRun: Verb(_run, decide_judge_run, look_for_judge_run, is_wide=True),
    PutEvent: Verb(_by_q_name, decide_put_event),
    ReportQueueEvent: Verb(_by_q_name, decide_queue_event),
    LookAround: Verb(_everything, decide_look_around, is_wide=True),
    Prune: Verb(_prune, decide_prune, is_wide=True),
    Forget: Verb(_nothing, decide_forget),
}
