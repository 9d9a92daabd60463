"""Fields that a monitor changes in a run's record. Pure; what a record holds: :mod:`trigmon.mq.run`."""

from __future__ import annotations

import re
import signal
from typing import Unpack

from trigmon.mq.run import RunFields, RunState
from trigmon.rules.runs.error_output import telling_lines

_SPARK_LOG = re.compile(r"[0-9/]+ [0-9:]+ (TRACE|DEBUG|INFO|WARN|ERROR|FATAL) ")
# How every MQTMC2 begins: the structure's name and version.
_MQTMC2 = "TMC    2"
_LONGEST_LINE = 200
_OF_SIGNAL = 128
"""A shell, a Java machine and spark-submit add this to the number of the signal that ended them, or their program."""
_ENDING_SIGNALS = range(1, signal.SIGTERM + 1)
"""Each of them ends a process by default."""


def held_again(why: str) -> RunFields:
    """Returns the change of a run that could not be started now."""
    return {"state": RunState.HELD, "why": why}


def started(pid: int, start_ms: int, /, **more: Unpack[RunFields]) -> RunFields:
    """Returns the change of a run whose program has started."""
    begun: RunFields = {"state": RunState.STARTED, "pid": pid, "start_ms": start_ms, "why": ""}
    return begun | more


def failed(why: str, now_ms: int) -> RunFields:
    """Returns the change of a run that never became a process."""
    return {"state": RunState.FAILED, "end_ms": now_ms, "why": why}


def exited(
    return_code: int, stderr_tail: str, end_ms: int, ended_by: str = "", *, was_stopped: bool = False
) -> RunFields:
    """Returns the change of a run that ended.

    ``return_code`` is that of subprocess: negative for a signal. ``ended_by`` is what ended it, if not itself. Of one
    that failed by itself the reason ends with the last line that it wrote to standard error. After a signal that line
    is called the last output: it is no cause, and may be a mere warning.
    """
    by_signal = return_code < 0
    how = how_it_ended(return_code)
    if return_code > 0 and not ended_by and (line := last_line(stderr_tail)):
        how += f"; last output: {line}" if _signal_of(return_code) else f": {line}"
    return {
        "state": RunState.EXITED,
        "end_ms": end_ms,
        "exit_status": None if by_signal else return_code,
        "signal": -return_code if by_signal else None,
        "stderr_tail": stderr_tail,
        "why": f"ended by {ended_by}: {how}" if ended_by else how,
        "was_stopped": was_stopped,
    }


def unknown(why: str, stderr_tail: str, end_ms: int = 0) -> RunFields:
    """Returns the change of a run that ended without a known exit status; ``end_ms`` is 0 when not known either."""
    return {"state": RunState.UNKNOWN, "end_ms": end_ms, "stderr_tail": stderr_tail, "why": why}


def last_line(output: str) -> str:
    """Returns the last telling line of a program's output but Spark's log, without control characters, and short.

    One that quotes an MQTMC2 was written by a program that did not expect that argument: the remedy stands there then.
    """
    lines = [line for line in telling_lines(output) if not _SPARK_LOG.match(line)]
    lines = [line for line in lines if _MQTMC2 in line] or lines
    line = "".join(c if c.isprintable() else " " for c in lines[-1]) if lines else ""
    if _MQTMC2 in line:
        line = f"{line[: line.index(_MQTMC2)]}MQTMC2: this argument is not passed with TMCARG(NO)"
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}..."


def how_it_ended(return_code: int) -> str:
    """Returns a text: "ended with status 1", "killed by SIGKILL", "ended with status 137, as after SIGKILL"."""
    if return_code < 0:
        return f"killed by {_signal_name(-return_code)}"
    text = f"ended with status {return_code}"
    number = _signal_of(return_code)
    return f"{text}, as after {_signal_name(number)}" if number else text


def _signal_of(status: int) -> int:
    """Returns the signal that an exit status tells of, 0 where it tells of none."""
    number = status - _OF_SIGNAL
    return number if number in _ENDING_SIGNALS else 0


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
