"""The run record: what is written down of one launch, as plain JSON values, and how it changes.

===============  ======================================================================================
run_id           16 hexadecimal digits, ascending by the time they were made; the record's key
state            held (waits, why says for what), due (launched: about to start), started, serving (it has
                 opened its queue), drained (and closed it with nothing left), exited (status 0 or not, or a
                 signal), failed (never became a process), unknown (ended while nobody could see how),
                 cancelled (an operator had it ended; as exited where it was a process, and why tells by
                 whom), joined (another run that waited does the same)
q_name ...       q_name, process_name, trigger_data, appl_type, appl_id, env_data, user_data: as the
                 trigger message said; occasion: the row of the law that fired, "" if not told
verdict          what held when the queue last fired on this occasion, a line a condition; [] if not known
process          the definition as it was: what differs from the defaults; None where there was none
argv             what was executed, [] until started
directory        where stdout and stderr lie, on the monitor's host
user             as whom it was executed
pid              of the program, which leads its own process group; 0 until started
start_ms end_ms  milliseconds since 1970, 0 until it happened, and where nobody knows when it did
exit_status      0 to 255, None until ended or when a signal ended it; signal: its number or None
stderr_tail      the end of its stderr when it ended, 8 KiB at most; for Spark, half of it is stdout's,
                 where spark-submit writes its Python's stderr
application_id   of a Spark application, as soon as its log or its driver's web server tells; driver_id: of a
                 driver that a cluster's master was asked for; ui: the address of the driver's web server
progress         how far it was when last seen, an object: jobs, stages_done stages, tasks_done tasks
                 tasks_failed, rows_read rows_written, all of what Spark knew of by then
application_ms   when the application began, by its driver's clock, and first_rows_ms when the first of its
                 tasks that read or wrote rows was launched
why              for a person: why it is held, failed or unknown, or how it ended
was_stopped      it was ended by its monitor's stop: that says nothing of the program
monitor          which monitor: the id of its data directory, initiation queue, and its number among those there
host             the name of the host it ran on when it took the trigger message
recorded_ms      when the trigger message was taken
initiation_q     where from
repeats          the run whose trigger message was put once more for this one, "" for none
attempt          1, or which try this is; retries: the run before it in that row
joins            of a joined one: the run that does its work
first_open_ms    when it first opened its queue for input, and first_get_ms when it first got a message
taken ...        taken, committed, backed_out: messages it got from its queue, and what became of them;
                 put_aside: what was moved out of its way as poison
batches          reservations that it settled to their end, as a Spark job does; settled_ms: when the last
cancelled_by     who asked for its end, with cancelled_ms and cancel_reason; there from then on
===============  ======================================================================================

Pure but for :func:`new_run_id` and the name of the host.
"""

from __future__ import annotations

import secrets
import signal
import socket
from typing import Any

from trigmon.mq.descriptors import TriggerMessage
from trigmon.mq.run import RunState

Fields = dict[str, Any]


def new_run_id(now_ms: int, after: str = "0") -> str:
    """An id that sorts by time and that two monitors will not both make: 11 digits of time, 5 of chance.

    It sorts behind ``after``, the one made before.
    """
    made = (now_ms << 20) + secrets.randbelow(1 << 20)
    return f"{max(made, int(after, 16) + 1):016x}"


def recorded(
    run_id: str, trigger: TriggerMessage, *, state: str, monitor: str, now_ms: int, occasion: str = "", **more: Any
) -> Fields:
    """The whole record of a new run; ``more`` overrides what is not known yet."""
    return {
        "run_id": run_id,
        "state": state,
        "q_name": trigger.q_name,
        "process_name": trigger.process_name,
        "trigger_data": trigger.trigger_data,
        "appl_type": trigger.appl_type,
        "appl_id": trigger.appl_id,
        "env_data": trigger.env_data,
        "user_data": trigger.user_data,
        "occasion": occasion,
        "argv": [],
        "directory": "",
        "user": "",
        "pid": 0,
        "start_ms": 0,
        "end_ms": 0,
        "exit_status": None,
        "signal": None,
        "stderr_tail": "",
        "why": "",
        "monitor": monitor,
        "host": socket.gethostname(),
        "recorded_ms": now_ms,
        "initiation_q": "",
        "repeats": "",
        "attempt": 1,
    } | more


def trigger_of(record: Fields) -> TriggerMessage:
    """The trigger message that a record was written for."""
    return TriggerMessage(**{name: record[name] for name in TriggerMessage.__struct_fields__})


def held_again(why: str) -> Fields:
    """It could not be started now."""
    return {"state": RunState.HELD, "why": why}


def started(pid: int, now_ms: int, **more: Any) -> Fields:
    """It runs."""
    return {"state": RunState.STARTED, "pid": pid, "start_ms": now_ms, "why": "", **more}


def failed(why: str, now_ms: int) -> Fields:
    """It never became a process."""
    return {"state": RunState.FAILED, "end_ms": now_ms, "why": why}


def exited(return_code: int, stderr_tail: str, end_ms: int, ended_by: str = "", *, was_stopped: bool = False) -> Fields:
    """It ended; ``return_code`` is subprocess's: negative for a signal. ``ended_by``: what ended it, if not itself."""
    by_signal = return_code < 0
    how = how_it_ended(return_code)
    return {
        "state": RunState.EXITED,
        "end_ms": end_ms,
        "exit_status": None if by_signal else return_code,
        "signal": -return_code if by_signal else None,
        "stderr_tail": stderr_tail,
        "why": f"ended by {ended_by}: {how}" if ended_by else how,
        "was_stopped": was_stopped,
    }


def unknown(why: str, stderr_tail: str, end_ms: int = 0) -> Fields:
    """It ended, and nobody saw how; ``end_ms`` is 0 when nobody saw when either."""
    return {"state": RunState.UNKNOWN, "end_ms": end_ms, "stderr_tail": stderr_tail, "why": why}


def how_it_ended(return_code: int) -> str:
    """For a person: "ended with status 1", "killed by SIGKILL"."""
    if return_code >= 0:
        return f"ended with status {return_code}"
    try:
        return f"killed by {signal.Signals(-return_code).name}"
    except ValueError:
        return f"killed by signal {-return_code}"
