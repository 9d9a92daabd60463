"""MQSC as JSON (``runCommandJSON``): verb, object and parameters by their words, and the answer by words and values.

The command is written as one line of MQSC, each value in quotes, and read and done as any other one. So a value means
what it says: a name keeps its case, and none ends its quotes.
Source: the manual's page of ``/admin/action/qmgr/{qmgrName}/mqsc``, "JSON formatted command".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from trigmon.command_server.escape import performed
from trigmon.console.rest.rest_request import RestError
from trigmon.mq.errors import ConnectionBroken, MQError
from trigmon.mq.reasons import Reason
from trigmon.mqsc.command_reader import OPPOSITES
from trigmon.mqsc.commands import Command, read_command
from trigmon.mqsc.keywords import QUEUES, attribute_of
from trigmon.mqsc.reply_text import missing, refused, skipped, texts_shown
from trigmon.mqsc.script import rows_of
from trigmon.pcf.pcf_commands import reason_of

if TYPE_CHECKING:
    from trigmon.client.connection import Connection

COMMAND_FAILED = 3008
"""MQRCCF_COMMAND_FAILED."""
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*\Z")
_FLAGS = {**OPPOSITES, **{yes: no for no, yes in OPPOSITES.items()}}
"""The parameters without a value, each with the word for its opposite."""
_BARE = ("ALL", "MONITOR")
"""Parameters without a value that have no opposite."""
_YES, _NO = ("YES", ""), ("NO",)
_COUNTS = frozenset(
    (
        *("CONNS", "CURFSIZE", "CURMAXFS", "HIQDEPTH", "MSGAGE", "MSGSIN", "MSGSOUT"),
        *("PID", "RESETINT", "UNCOM"),
    )
)
"""What is a number without being an attribute of an object."""
_ACTION = 'Send {"type": "runCommandJSON", "command": "display", "qualifier": "qlocal", "name": "*"}'


def command_of(asked: dict[str, Any]) -> Command:
    """Returns the command that the object of a body means. Raises RestError for one of another shape."""
    verb, noun = (_word(asked.get(key), key) for key in ("command", "qualifier"))
    if verb in ("END", "EXIT", "QUIT"):
        raise RestError(400, f"{verb} ends a script, and there is none", _ACTION)
    name, parameters, shown = asked.get("name"), asked.get("parameters", {}), asked.get("responseParameters", [])
    if not isinstance(name, str | None):
        raise RestError(400, "name is no text", _ACTION)
    if not isinstance(parameters, dict):
        raise RestError(400, "parameters is no object", _ACTION)
    if not isinstance(shown, list):
        raise RestError(400, "responseParameters is no list of words", _ACTION)
    words = [verb, noun if name is None else f"{noun}({_quoted(name)})"]
    words += [_parameter(_word(word, "parameters"), value) for word, value in parameters.items()]
    words += [_word(word, "responseParameters") for word in shown]
    return read_command(" ".join(word for word in words if word))


def answer(qm: Connection, command: Command) -> dict[str, Any]:
    """Returns the answer to a command, an element for each object that is displayed. Raises RestError."""
    try:
        found = _displayed(qm, command) if _shows(command) else [_done(qm, command)]
    except ConnectionBroken:
        action = "Look whether the command was done"
        raise RestError(503, "The queue manager was lost meanwhile", action, reason=2009) from None
    failed = any(each["completionCode"] for each in found)
    return {
        "commandResponse": found,
        "overallCompletionCode": 2 if failed else 0,
        "overallReasonCode": COMMAND_FAILED if failed else 0,
    }


def _shows(command: Command) -> bool:
    return command.error is None and command.verb in ("DISPLAY", "RESET") and bool(command.calls)


def _done(qm: Connection, command: Command) -> dict[str, Any]:
    work = performed(command, qm.call)
    while True:
        try:
            next(work)
        except StopIteration as end:
            return _message(*end.value)


def _displayed(qm: Connection, command: Command) -> list[dict[str, Any]]:
    try:
        rows = rows_of(command, command.calls[0], qm.call)
    except ConnectionBroken:
        raise
    except MQError as error:
        return [_message(refused(command, error), reason_of(error))]
    if not rows and command.q_type != "HANDLE":
        return [_message(missing(command), int(Reason.UNKNOWN_OBJECT_NAME))]
    found = [{"completionCode": 0, "reasonCode": 0, "parameters": _parameters(command, row)} for row in rows]
    notes = [f"Skipped, {line}" for line in skipped(command.skipped)]
    return [*found, _message(notes, 0)] if notes else found


def _message(lines: list[str], reason: int) -> dict[str, Any]:
    # What is no text, a lone surrogate of the JSON, would end the answer.
    shown = [line.encode(errors="backslashreplace").decode() for line in lines if line]
    return {"completionCode": 2 if reason else 0, "reasonCode": reason, "message": shown}


def _parameters(command: Command, row: dict[str, Any]) -> dict[str, Any]:
    """Returns what is shown of a row, by the words in lower case."""
    head, texts = texts_shown(command, row)
    noun = "QUEUE" if command.noun in QUEUES else command.noun
    shown = {word: _value(noun, word, text) for word, text in sorted(texts.items()) if word not in head}
    return {word.lower(): value for word, value in {**head, **shown}.items()}


def _value(noun: str, word: str, text: str) -> object:
    """Returns a number, a list of names, YES or NO for a word without a value, or the text."""
    attribute = attribute_of(noun, word)
    if attribute is None:
        return int(text) if word in _COUNTS and text.isdecimal() else text.strip()
    if attribute.flags:
        return "YES" if text == attribute.flags[1] else "NO"
    if attribute.is_names:
        return text.split(",") if text else []
    return int(text) if not attribute.is_text and _is_whole(text) else text


def _is_whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _word(word: object, where: str) -> str:
    """Returns a word of MQSC in upper case; any other character could end it."""
    if not isinstance(word, str) or not _WORD.match(word):
        raise RestError(400, f"{where} holds {word!a}, and no word of MQSC", _ACTION)
    return word.upper()


def _parameter(word: str, value: object) -> str:
    """Returns a parameter as MQSC has it; "yes", "no", true, false say whether one without a value is there."""
    text = ("YES" if value else "NO") if isinstance(value, bool) else value
    if word in _FLAGS or word in _BARE:
        answer = "" if text is None else str(text).upper()
        if answer not in (*_YES, *_NO):
            raise RestError(400, f"{word} is yes or no", _ACTION)
        return word if answer in _YES else _FLAGS.get(word, "")
    if text is None:
        return word
    values = text if isinstance(text, list) else str(text).split(maxsplit=2) if word == "WHERE" else [text]
    return f"{word}({' '.join(_quoted(each) for each in values)})"


def _quoted(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise RestError(400, f"{value!a} is no value of MQSC", "Send text, a number, or a list of them")
    return "'" + str(value).replace("'", "''") + "'"
