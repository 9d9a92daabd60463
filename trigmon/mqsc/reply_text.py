"""Answers to text, as runmqsc prints it: MQ's message numbers, two columns of 40, counts at the end.

The numbers and the layout are those of real output; the sentences behind the numbers are our own. Times are UTC.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trigmon.mq.calls import Define
from trigmon.mq.errors import FunctionNotSupported, MQError
from trigmon.mq.reasons import Reason
from trigmon.mqsc.authority_commands import fields
from trigmon.mqsc.command_reader import Skipped
from trigmon.mqsc.commands import Command
from trigmon.mqsc.display_values import connection_id, pair, texts_of
from trigmon.mqsc.keywords import OURS, QUEUES, VERBS, full_word, is_ours
from trigmon.mqsc.syntax import valid_syntax

COLUMN = 40

_DONE = {
    ("ALTER", "QMGR"): (8005, "trigmon queue manager changed."),
    **{("DEFINE", queue): (8006, "trigmon queue created.") for queue in QUEUES},
    **{("DELETE", queue): (8007, "trigmon queue deleted.") for queue in QUEUES},
    **{("ALTER", queue): (8008, "trigmon queue changed.") for queue in QUEUES},
    ("DEFINE", "NAMELIST"): (8552, "trigmon namelist created."),
    ("DELETE", "NAMELIST"): (8553, "trigmon namelist deleted."),
    ("ALTER", "NAMELIST"): (8551, "trigmon namelist changed."),
    ("DEFINE", "PROCESS"): (8010, "trigmon process created."),
    ("DELETE", "PROCESS"): (8011, "trigmon process deleted."),
    ("ALTER", "PROCESS"): (8012, "trigmon process changed."),
    **{("DEFINE", noun): (8006, f"trigmon {noun.lower()} created.") for noun in OURS},
    **{("DELETE", noun): (8007, f"trigmon {noun.lower()} deleted.") for noun in OURS},
    **{("ALTER", noun): (8008, f"trigmon {noun.lower()} changed.") for noun in OURS},
    ("CLEAR", "QLOCAL"): (8022, "trigmon queue cleared."),
    ("SET", "AUTHREC"): (8862, "trigmon authority record set."),
    ("DELETE", "AUTHREC"): (8863, "trigmon authority record deleted."),
    ("PING", "QMGR"): (8415, "Ping trigmon Queue Manager command complete."),
}
_SHOWN = {
    "NAMELIST": "AMQ8550I: Display namelist details.",
    "PROCESS": "AMQ8407I: Display Process details.",
    # MQ has no such objects, and so no number.
    "SCHEDULE": "Display Schedule details.",
    "WATCH": "Display Watch details.",
    "QMGR": "AMQ8408I: Display Queue Manager details.",
    "QSTATUS": "AMQ8450I: Display queue status details.",
    "QMSTATUS": "AMQ8705I: Display Queue Manager Status Details.",
    "AUTHREC": "AMQ8864I: Display authority record details.",
    "CONN": "AMQ8276I: Display Connection details.",
    "QSTATS": "CSQM201I: RESET QSTATS details.",  # MQ has this on z/OS only, and in PCF
}
_REFUSED: dict[Reason, tuple[int, str]] = {
    Reason.NOT_AUTHORIZED: (8135, "Not authorized."),
    Reason.UNKNOWN_OBJECT_NAME: (8147, "trigmon object {name} not found."),
    Reason.OBJECT_IN_USE: (8148, "trigmon object {name} in use."),
    Reason.OBJECT_ALREADY_EXISTS: (8150, "trigmon object {name} already exists."),
    Reason.OBJECT_WRONG_TYPE: (8151, "trigmon object {name} has a different type."),
    Reason.LIKE_OBJECT_WRONG_TYPE: (8151, "The LIKE object has a different type."),
    Reason.Q_WRONG_TYPE: (8151, "trigmon object {name} has a different type."),
    Reason.Q_NOT_EMPTY: (8143, "trigmon queue {name} not empty."),
    Reason.Q_MGR_NOT_AVAILABLE: (8146, "trigmon queue manager not available."),
    Reason.Q_MGR_STOPPING: (8146, "trigmon queue manager not available."),
}
_WRONG = {
    8405: "AMQ8405I: Syntax error detected at or near end of command segment below:-",
    8411: "AMQ8411E: Duplicate Keyword Error.",
    8412: "AMQ8412E: Numeric Range Error.",
    8413: "AMQ8413E: String Length Error.",
    8424: "AMQ8424E: Error detected in a name keyword.",
    8569: "AMQ8569E: Error in filter specification.",
}


def done(command: Command) -> str:
    """Returns the line that says the command did what it was asked to."""
    if command.verb == "REFRESH":
        # MQ has this on z/OS only, so the answer is the one that is given there.
        return "CSQ9022I: REFRESH QMGR normal completion; expired messages are being discarded."
    number, sentence = _DONE[command.verb, command.noun]
    return f"AMQ{number}I: {sentence}"


def refused(command: Command, error: MQError) -> list[str]:
    """Returns the lines of a command that the queue manager refused: MQ's number, then the reason in full."""
    number, sentence = _REFUSED.get(error.reason, (8101, "trigmon error {reason} has occurred."))
    name = _name_meant(command, error)
    return [f"AMQ{number}E: {sentence.format(name=name, reason=int(error.reason))}", f"   {error}"]


def _name_meant(command: Command, error: MQError) -> str:
    """Returns the object a refusal is about: the LIKE object when it is that one which is not there."""
    call = command.calls[0]
    if isinstance(call, Define) and call.like and error.reason is Reason.UNKNOWN_OBJECT_NAME:
        return call.like
    return command.name or command.noun


def wrong(command: Command) -> list[str]:
    """Returns the lines of a command that could not be read: its text up to there, the fault, the remedy."""
    error = command.error
    about = f"   {error.about}" if error is not None else ""
    if isinstance(error, FunctionNotSupported):
        return [f"AMQ8101E: trigmon error {int(error.reason)} has occurred.", about]
    lines = [_WRONG[command.amq], *_clipped(command.segment), about]
    verb = command.text.split(maxsplit=1)[0].upper()
    if command.amq == 8405 and full_word(verb, VERBS) is None:
        lines += ["AMQ8426I: Valid MQSC commands are:", "", *(f"    {verb}" for verb in VERBS)]
    elif command.amq == 8405 and command.noun:
        lines += ["AMQ8427I: Valid syntax for the MQSC command:", "", *valid_syntax(command.verb, command.noun)]
    return lines


def _clipped(segment: str) -> list[str]:
    """Returns the end of a command's text: what is wrong stands there."""
    return [f"...{segment[-200:]}" if len(segment) > 200 else segment] if segment else []


def skipped_line(skipped: Skipped) -> str:
    """Returns what was skipped, in one line: its place, what it is, and why it means nothing here."""
    what = f"{skipped.what} {skipped.parameter}".strip()
    return f"line {skipped.line}: {what}: {skipped.why}"


def skipped(parts: Iterable[Skipped]) -> list[str]:
    """Returns a line for each ignored part with a value, and one for all of an object at MQ's default."""
    lines: list[str] = []
    defaults: dict[str, list[Skipped]] = {}
    for part in parts:
        if part.is_default:
            defaults.setdefault(part.what, []).append(part)
        else:
            lines.append(skipped_line(part))
    for what, those in defaults.items():
        first, last = min(p.line for p in those), max(p.line for p in those)
        where = f"line {first}" if first == last else f"lines {first} to {last}"
        named = " ".join(p.parameter.partition("(")[0].strip() for p in those)
        lines.append(f"{where}: {what} at MQ's default, without meaning here: {named}")
    return lines


def all_skipped(parts: list[Skipped]) -> list[str]:
    """Returns the list of everything in a script that has no meaning here; nothing when there was nothing."""
    if not parts:
        return []
    commands = sum(not part.parameter for part in parts)
    attributes = len(parts) - commands
    counted = f"{_number(commands)} command{'s' * (commands != 1)} and {attributes} attribute{'s' * (attributes != 1)}"
    by_command: dict[str, list[Skipped]] = {}
    for part in parts:
        by_command.setdefault(part.what, []).append(part)
    return [
        f"Skipped, since they have no meaning here: {counted}.",
        *(f"   {line}" for those in by_command.values() for line in skipped(those)),
        "",
    ]


def missing(command: Command) -> list[str]:
    """Returns the lines of a DISPLAY that found nothing; records, which have no name, by what chose them."""
    chosen = (f"{field}({value})" for field, value in command.chosen)
    lines = [f"AMQ8147E: trigmon object {command.name or ' '.join((command.noun, *chosen))} not found."]
    if command.noun == "AUTHREC" and not command.chosen:
        lines.append("   there is no authority record, or none that this user may display")
    return lines


def nothing_to_delete(command: Command) -> str:
    """Returns the line of a DELETE with IGNSTATE(YES) whose object is not there."""
    return f"AMQ8147I: trigmon object {command.name} not found, as IGNSTATE(YES) allows."


def displayed(command: Command, rows: Iterable[dict[str, Any]]) -> list[str]:
    """Returns the blocks of a DISPLAY: a row of plain values by long names each."""
    lines = []
    for row in rows:
        lines.append(_SHOWN.get(command.noun, "AMQ8409I: Display Queue details."))
        lines += in_columns(_pairs(command, row))
    return lines


def in_columns(pairs: Iterable[str]) -> list[str]:
    """Pairs in two columns behind three blanks; one too wide for its column has a line of its own."""
    lines: list[str] = []
    left = ""
    for one in pairs:
        if len(one) >= COLUMN:
            lines += [f"   {left}".rstrip()] if left else []
            lines.append(f"   {one}")
            left = ""
        elif left:
            lines.append(f"   {left:<{COLUMN}}{one}")
            left = ""
        else:
            left = one
    return [*lines, f"   {left}"] if left else lines


def counts(read: int, wrong_ones: int, failed: int) -> list[str]:
    """Returns the closing lines: commands read, with a syntax error, valid but not processed."""
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
    """Returns ``KEY(VALUE)`` of what is asked for: name and type, MQ's words as they are shown, then ours."""
    head, texts = texts_shown(command, row)
    shown = sorted((is_ours(command.noun, word), pair(word, text)) for word, text in texts.items())
    return [*(f"{word}({text})" for word, text in head.items()), *(text for _, text in shown)]


def texts_shown(command: Command, row: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the words and texts by which a row is known, and those that the command asks for."""
    texts = texts_of(row, command.noun, command.q_type)
    if command.shows is not None:
        texts = {word: texts[word] for word in command.shows if word in texts}
    return _head(command, row), texts


def _head(command: Command, row: dict[str, Any]) -> dict[str, str]:
    if command.noun in ("QMSTATUS", "QMGR"):
        return {"QMNAME": row.get("q_mgr_name") or row["name"]}
    if command.noun == "CONN":
        return {"CONN": connection_id(row), "TYPE": "CONN"}
    if command.noun == "QSTATS":
        return {"QSTATS": row["name"]}
    if command.noun == "AUTHREC":
        return fields(row)
    if command.noun in ("NAMELIST", "PROCESS", *OURS):
        return {command.noun: row["name"]}
    return {"QUEUE": row["name"], "TYPE": command.q_type if command.noun == "QSTATUS" else row["object_type"]}
