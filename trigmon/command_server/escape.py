"""MQCMD_ESCAPE: a command of MQSC as text in a PCF message, answered with the text that runmqsc prints.

An Escape carries one command, as in MQ; more are refused before anything is done.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import islice

from trigmon.mq.calls import Call
from trigmon.mq.errors import MQError
from trigmon.mq.reasons import Reason
from trigmon.mq.replies import Reply
from trigmon.mqsc import reply_text
from trigmon.mqsc.commands import Command, each_command
from trigmon.mqsc.script import steps
from trigmon.pcf.numbers import Parameter, PcfReason
from trigmon.pcf.pcf_commands import reason_of
from trigmon.pcf.request import Answers, Ask, CommandFailedError, Request
from trigmon.pcf.structures import PcfError

MQSC = 1
"""MQET_MQSC, the only type of escape."""


def escape(request: Request, ask: Ask) -> Answers:
    """Answers an Escape command."""
    kind, text = request.integer(Parameter.ESCAPE_TYPE), request.text(Parameter.ESCAPE_TEXT)
    request.nothing_more()
    if kind != MQSC:
        raise PcfError(PcfReason.ESCAPE_TYPE_ERROR, f"type {kind}", Parameter.ESCAPE_TYPE)
    # Of many, no more than the second is read.
    commands = list(islice(each_command(text), 2))
    if len(commands) != 1 or commands[0].ends:
        found = "more than one command" if len(commands) > 1 else "no command"
        raise PcfError(PcfReason.PARM_SYNTAX_ERROR, found, Parameter.ESCAPE_TEXT)
    lines, failed = yield from performed(commands[0], ask)
    yield [(Parameter.ESCAPE_TYPE, MQSC), (Parameter.ESCAPE_TEXT, "\n".join(lines))]
    if failed:
        raise CommandFailedError(failed, " ".join(map(str.strip, lines)))


def performed(command: Command, ask: Ask) -> Generator[None, None, tuple[list[str], int]]:
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

    is_done = yield from steps(command, watched, lines.append)
    lines += [f"Skipped, {line}" for line in reply_text.skipped(command.skipped)]
    if is_done:
        return lines, 0
    return lines, reasons[-1] if reasons else int(Reason.UNKNOWN_OBJECT_NAME)
