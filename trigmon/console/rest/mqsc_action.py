"""One MQSC command over HTTPS, as MQ's resource ``admin/action/qmgr/QM/mqsc`` runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

from trigmon.console.rest import json_command
from trigmon.console.rest.json_command import COMMAND_FAILED
from trigmon.console.rest.rest_request import RestError
from trigmon.mqsc.commands import each_command
from trigmon.mqsc.script import ALL_WELL, COULD_NOT_RUN, run

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

LARGEST_COMMAND = 64 << 10
"""Bytes of a body with a command: MQ's longest command has 32 KiB."""
_HEAD, _COUNTS = 4, 3
"""Lines of a script's report before and behind the answers."""
_BLOCKS = ("AMQ", "CSQ")
_ACTION = 'Send {"type": "runCommand", "parameters": {"command": "DISPLAY QLOCAL(*)"}}'


def action_of(body: str, version: int) -> Callable[[Connection], dict[str, Any]]:
    """Returns what a body asks for, to be done with a connection. Raises RestError."""
    try:
        asked: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise RestError(400, "The body is no JSON", _ACTION) from None
    kind = asked.get("type") if isinstance(asked, dict) else None
    if kind == "runCommandJSON" and version > 1:
        command = json_command.command_of(asked)
        return lambda qm: json_command.answer(qm, command)
    if kind != "runCommand":
        raise RestError(400, "The type is runCommand or, from v2 on, runCommandJSON", _ACTION)
    text = _text_of(asked)
    return lambda qm: _answer(qm, text)


def _text_of(asked: dict[str, Any]) -> str:
    """Returns the command of ``runCommand``. Raises RestError."""
    parameters = asked.get("parameters")
    text = parameters.get("command") if isinstance(parameters, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise RestError(400, "parameters.command, the command as text, is missing", _ACTION)
    # Of many, no more than the second is read.
    commands = list(islice(each_command(text), 2))
    if len(commands) != 1 or commands[0].ends:
        raise RestError(400, f"There is {'more than one' if len(commands) > 1 else 'no'} command in it", "Send one")
    return text


def _answer(qm: Connection, text: str) -> dict[str, Any]:
    """Returns the answer to a command, an element for each object that is displayed. Raises RestError."""
    lines: list[str] = []
    # Cut as the reader cuts, so that a line end of another kind begins no second command.
    status = run(text.split("\n"), qm.call, lines.append, qm.q_mgr_name, echoes=False)
    if status == COULD_NOT_RUN:
        raise RestError(503, "The queue manager was lost meanwhile", "Look whether the command was done", reason=2009)
    codes = (0, 0) if status == ALL_WELL else (2, COMMAND_FAILED)
    blocks: list[list[str]] = []
    for line in lines[_HEAD:-_COUNTS]:
        if line.startswith(_BLOCKS) or not blocks:
            blocks.append([])
        blocks[-1].append(line)
    return {
        "commandResponse": [
            {"completionCode": codes[0], "reasonCode": codes[1], "text": block} for block in blocks if any(block)
        ],
        "overallCompletionCode": codes[0],
        "overallReasonCode": codes[1],
    }
