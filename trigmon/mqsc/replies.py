"""Answers to text, as runmqsc prints it: MQ's message numbers, two columns of 40, counts at the end.

The numbers and the layout are those of real output; the sentences behind the numbers are our own. Times are UTC.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trigmon.mq.attributes import ATTRIBUTES, QUEUE_KINDS, STATUS
from trigmon.mq.calls import Define
from trigmon.mq.descriptors import date_and_time
from trigmon.mq.enums import ObjectType
from trigmon.mq.errors import MQError
from trigmon.mq.reasons import Reason
from trigmon.mqsc.commands import Command
from trigmon.mqsc.words import STATUS_WORDS

COLUMN = 40

_DONE = {
    ("ALTER", "QMGR"): (8005, "trigmon queue manager changed."),
    **{("DEFINE", kind.name): (8006, "trigmon queue created.") for kind in QUEUE_KINDS},
    **{("DELETE", kind.name): (8007, "trigmon queue deleted.") for kind in QUEUE_KINDS},
    **{("ALTER", kind.name): (8008, "trigmon queue changed.") for kind in QUEUE_KINDS},
    ("DEFINE", "PROCESS"): (8010, "trigmon process created."),
    ("DELETE", "PROCESS"): (8011, "trigmon process deleted."),
    ("ALTER", "PROCESS"): (8012, "trigmon process changed."),
    ("CLEAR", "QLOCAL"): (8022, "trigmon queue cleared."),
    ("PING", "QMGR"): (8415, "Ping trigmon Queue Manager command complete."),
}
_SHOWN = {
    "PROCESS": (8407, "Display Process details."),
    "QMGR": (8408, "Display Queue Manager details."),
    "QSTATUS": (8450, "Display queue status details."),
}
_REFUSED: dict[Reason, tuple[int, str]] = {
    Reason.NOT_AUTHORIZED: (8135, "Not authorized."),
    Reason.UNKNOWN_OBJECT_NAME: (8147, "trigmon object {name} not found."),
    Reason.OBJECT_IN_USE: (8148, "trigmon object {name} in use."),
    Reason.OBJECT_OPEN: (8148, "trigmon object {name} in use."),
    Reason.OBJECT_OPEN_FORCE: (8148, "trigmon object {name} in use."),
    Reason.OBJECT_DAMAGED: (8149, "trigmon object {name} damaged."),
    Reason.OBJECT_ALREADY_EXISTS: (8150, "trigmon object {name} already exists."),
    Reason.OBJECT_WRONG_TYPE: (8151, "trigmon object {name} has a different type."),
    Reason.LIKE_OBJECT_WRONG_TYPE: (8151, "The LIKE object has a different type."),
    Reason.Q_WRONG_TYPE: (8151, "trigmon object {name} has a different type."),
    Reason.Q_NOT_EMPTY: (8143, "trigmon queue {name} not empty."),
    Reason.Q_MGR_NOT_AVAILABLE: (8146, "trigmon queue manager not available."),
    Reason.Q_MGR_STOPPING: (8146, "trigmon queue manager not available."),
}
_WRONG = {
    8405: "Syntax error detected at or near end of command segment below:-",
    8411: "Duplicate Keyword Error.",
    8412: "Numeric Range Error.",
    8413: "String Length Error.",
    8424: "Error detected in a name keyword.",
}


def done(command: Command) -> str:
    """The line that says the command did what it was asked to."""
    number, sentence = _DONE[command.verb, command.noun]
    return f"AMQ{number}I: {sentence}"


def refused(command: Command, error: MQError) -> list[str]:
    """The lines of a command that the queue manager refused: MQ's number, then the reason in full."""
    number, sentence = _REFUSED.get(error.reason, (8101, "trigmon error {reason} has occurred."))
    name = _name_meant(command, error)
    return [f"AMQ{number}E: {sentence.format(name=name, reason=int(error.reason))}", f"   {error}"]


def _name_meant(command: Command, error: MQError) -> str:
    """The object a refusal is about: the LIKE object when it is that one which is not there."""
    call = command.calls[0]
    if isinstance(call, Define) and call.like and error.reason is Reason.UNKNOWN_OBJECT_NAME:
        return call.like
    return command.name or "QMGR"


def wrong(command: Command) -> list[str]:
    """The lines of a command that could not be read, with what is near."""
    error = command.error
    about = error.about if error is not None else ""
    return [f"AMQ{command.amq}E: {_WRONG[command.amq]}", f"   {about}"]


def missing(command: Command) -> str:
    """The line of a DISPLAY that found nothing."""
    return f"AMQ8147E: trigmon object {command.name} not found."


def displayed(command: Command, rows: Iterable[dict[str, Any]]) -> list[str]:
    """The blocks of a DISPLAY: a row of plain values by long names each."""
    number, sentence = _SHOWN.get(command.noun, (8409, "Display Queue details."))
    lines = []
    for row in rows:
        lines.append(f"AMQ{number}I: {sentence}")
        lines += in_columns(_pairs(command, row))
    return lines


def in_columns(pairs: Iterable[str]) -> list[str]:
    """Pairs in two columns behind three blanks; one too wide for its column has a line of its own."""
    lines: list[str] = []
    left = ""
    for pair in pairs:
        if len(pair) >= COLUMN:
            lines += [f"   {left}".rstrip()] if left else []
            lines.append(f"   {pair}")
            left = ""
        elif left:
            lines.append(f"   {left:<{COLUMN}}{pair}")
            left = ""
        else:
            left = pair
    return [*lines, f"   {left}"] if left else lines


def counts(read: int, wrong_ones: int, failed: int) -> list[str]:
    """The closing lines: commands read, with a syntax error, valid but not processed."""
    plural = "command" if read == 1 else "commands"
    lines = [f"{_number(read)} MQSC {plural} read."]
    verb = "has" if wrong_ones == 1 else "have"
    plural = "command" if wrong_ones == 1 else "commands"
    lines.append(f"{_number(wrong_ones)} {plural} {verb} a syntax error.")
    if failed:
        plural = "command" if failed == 1 else "commands"
        lines.append(f"{_number(failed)} valid MQSC {plural} could not be processed.")
    else:
        lines.append("All valid MQSC commands were processed.")
    return lines


def _number(count: int) -> str:
    return {0: "No", 1: "One"}.get(count, str(count))


def _pairs(command: Command, row: dict[str, Any]) -> list[str]:
    """``KEY(VALUE)`` of what is asked for: the name and type first, the rest in the alphabet's order."""
    if command.noun == "QSTATUS":
        words = _handle_words(row) if command.q_type == "HANDLE" else _status_words(row)
        head = [f"QUEUE({row['name']})", f"TYPE({command.q_type})"]
    else:
        words = object_words(row)
        head = _head(command, row)
    asked = sorted(words) if command.shows is None else sorted(w for w in set(command.shows) if w in words)
    return head + [words[word] for word in asked]


def _head(command: Command, row: dict[str, Any]) -> list[str]:
    if command.noun == "QMGR":
        return [f"QMNAME({row['name']})"]
    if command.noun == "PROCESS":
        return [f"PROCESS({row['name']})"]
    return [f"QUEUE({row['name']})", f"TYPE({row['object_type']})"]


def object_words(row: dict[str, Any]) -> dict[str, str]:
    """Each attribute of an object as MQSC shows it, by its word: ``DEPTH`` → ``TRIGTYPE(DEPTH)``."""
    which = ObjectType[row["object_type"]]
    words = {}
    for attribute in (*ATTRIBUTES[which].values(), *STATUS.values()):
        if attribute.name in row and attribute.name not in ("q_type", "uncommitted_msgs"):
            written = attribute.write(attribute.read(row[attribute.name], row["name"]))
            words[attribute.mqsc] = written if attribute.flags else f"{attribute.mqsc}({written or ' '})"
    for begin, key in (("CR", "created_ms"), ("ALT", "altered_ms")):
        if row.get(key):
            words |= _time_words(begin, int(row[key]))
    return words


def _time_words(begin: str, ms: int) -> dict[str, str]:
    day, clock = date_and_time(ms)
    return {
        f"{begin}DATE": f"{begin}DATE({day[:4]}-{day[4:6]}-{day[6:]})",
        f"{begin}TIME": f"{begin}TIME({clock[:2]}.{clock[2:4]}.{clock[4:6]})",
    }


def _status_words(row: dict[str, Any]) -> dict[str, str]:
    by_word = {a.mqsc: row.get(a.name, 0) for a in STATUS.values()}
    return {w: f"{w}({by_word[w] or 'NO' if w == 'UNCOM' else by_word[w]})" for w in STATUS_WORDS}


def _handle_words(row: dict[str, Any]) -> dict[str, str]:
    values = {
        "APPLTAG": row["application"],
        "INPUT": {"exclusive": "EXCL"}.get(row["input"], row["input"].upper()),
        "PID": row["pid"],
        "USERID": row["user"],
    } | {word: row[word.lower()] for word in ("BROWSE", "INQUIRE", "OUTPUT", "SET")}
    return {word: f"{word}({_shown(value)})" for word, value in values.items()}


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "YES" if value else "NO"
    return str(value) or " "
