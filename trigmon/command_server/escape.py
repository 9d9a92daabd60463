"""MQCMD_ESCAPE: commands of MQSC as text in a PCF message, answered with the text that runmqsc prints."""

from __future__ import annotations

from trigmon.mq.calls import Call
from trigmon.mq.errors import MQError
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Reply
from trigmon.mqsc import reply_text
from trigmon.mqsc.commands import Command, read_script
from trigmon.mqsc.script import perform
from trigmon.pcf.numbers import Parameter, PcfReason
from trigmon.pcf.pcf_commands import EscapeError, reason_of
from trigmon.pcf.request import Answers, Ask, Request
from trigmon.pcf.structures import PcfError

MQSC = 1
"""MQET_MQSC, the only type of escape."""


def escape(request: Request, ask: Ask) -> Answers:
    """Answers an Escape command: a reply message for each command of the text."""
    kind, text = request.integer(Parameter.ESCAPE_TYPE), request.text(Parameter.ESCAPE_TEXT)
    request.nothing_more()
    if kind != MQSC:
        raise PcfError(PcfReason.ESCAPE_TYPE_ERROR, f"type {kind}", Parameter.ESCAPE_TYPE)
    failed = 0
    commands = [command for command in read_script(text) if not command.ends]
    for command in commands:
        lines, reason = _performed(command, ask)
        failed = reason or failed
        yield [(Parameter.ESCAPE_TYPE, MQSC), (Parameter.ESCAPE_TEXT, "\n".join(lines))]
    if not commands:
        raise PcfError(PcfReason.PARM_SYNTAX_ERROR, "no command", Parameter.ESCAPE_TEXT)
    if failed:
        raise EscapeError(failed)


def _performed(command: Command, ask: Ask) -> tuple[list[str], int]:
    """Returns what runmqsc prints for a command, and the reason for which it failed; 0 for none."""
    if command.error is not None:
        is_wrong = command.is_syntax_error
        reason = int(PcfReason.PARM_SYNTAX_ERROR) if is_wrong else int(command.error.reason)
        return reply_text.wrong(command), reason
    lines: list[str] = []
    reasons: list[int] = []

    def watched(call: Call) -> Reply:
        try:
            return ask(call)
        except MQError as error:
            reasons.append(reason_of(error))
            raise

    is_done = perform(command, watched, lines.append)
    lines += [f"Skipped, {line}" for line in reply_text.skipped(command.skipped)]
    if is_done:
        return lines, 0
    return lines, reasons[-1] if reasons else int(Reason.UNKNOWN_OBJECT_NAME)
