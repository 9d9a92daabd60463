"""Why a message is a dead letter, or was put aside, as a sentence for a person."""

from __future__ import annotations

from trigmon.mq.enums import Feedback
from trigmon.mq.errors import MQError
from trigmon.mq.quantities import counted
from trigmon.mq.reasons import Reason

_BY_FEEDBACK = {
    Feedback.APPL_CANNOT_BE_STARTED: "the program of its process could not be started",
    Feedback.TM_ERROR: "it is no valid trigger message",
    Feedback.APPL_TYPE_ERROR: "no monitor starts programs of its application type",
}
_MOST_BACKOUTS = 99
"""A backout count of more stands as this one."""


def reason_text(reason: int, program_text: str, dest_q_name: str, backout_count: int) -> str:
    """Returns why a message is where it is: by what its program wrote, else by the reason of its dead-letter header."""
    if program_text:
        return f"its program set it aside: {program_text}"
    if reason == Reason.BACKOUT_THRESHOLD_REACHED:
        often = {0: "as often as BOTHRESH says", 1: "once", _MOST_BACKOUTS: f"{_MOST_BACKOUTS} times or more"}
        times = often.get(backout_count, counted(backout_count, "time"))
        return f"it was got from {dest_q_name or 'its queue'} and backed out {times}"
    if not reason:
        return "nothing says: it has no dead-letter header"
    if reason in _BY_FEEDBACK:
        return _BY_FEEDBACK[Feedback(reason)]
    if reason in Feedback._value2member_map_:
        text = Feedback(reason).name
    elif reason in Reason._value2member_map_:
        text = str(MQError.of(reason)).partition(": ")[2]
    else:
        return f"reason {reason}, which has no name here"
    return f"{dest_q_name or 'its queue'} did not take it: {text}"
