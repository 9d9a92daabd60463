"""One MQSC command over HTTPS, as MQ's resource ``admin/action/qmgr/QM/mqsc`` runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trigmon.console.rest.rest_request import RestError
from trigmon.mqsc.commands import read_script
from trigmon.mqsc.script import ALL_WELL, COULD_NOT_RUN, run

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

COMMAND_FAILED = 3008
"""MQRCCF_COMMAND_FAILED."""
_HEAD, _COUNTS = 4, 3
"""Lines of a script's report before and behind the answers."""
_BLOCKS = ("AMQ", "CSQ")


def command_of(body: str) -> str:
    """Returns the command that a body asks for. Raises RestError."""
    action = 'Send {"type": "runCommand", "parameters": {"command": "DISPLAY QLOCAL(*)"}}'
    try:
        asked: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise RestError(400, "The body is no JSON", action) from None
    if not isinstance(asked, dict) or asked.get("type") != "runCommand":
        raise RestError(400, "The type is runCommand; no other one is here", action)
    parameters = asked.get("parameters")
    text = parameters.get("command") if isinstance(parameters, dict) else None
    if not isinstance(text, str) or not text.strip():
        raise RestError(400, "parameters.command, the command as text, is missing", action)
    commands = read_script(text)
    if len(commands) != 1 or commands[0].ends:
        raise RestError(400, f"There are {len(commands)} commands in it", "Send one command")
    return text


def answer(qm: Connection, text: str) -> dict[str, Any]:
    """Returns the answer to a command, an element for each object that is displayed. Raises RestError."""
    lines: list[str] = []
    status = run(text.splitlines(), qm.call, lines.append, qm.q_mgr_name, echoes=False)
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
