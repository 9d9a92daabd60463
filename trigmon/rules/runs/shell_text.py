"""Definitions that want a shell: what only a shell understands, and the text that SHELL(YES) gives to one.

MQ's monitor hands ``APPLICID "MQTMC2" ENVRDATA`` to a shell. Here the words are executed as they are, so ``>`` or ``|``
is an argument like others, unless the definition says SHELL(YES): then the shell gets the text of the definition alone,
and every value from outside as a positional parameter. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trigmon.mq.attributes import Process
from trigmon.mq.enums import ApplType
from trigmon.rules.runs.code_words import PLACEHOLDER

PARAMETERS = ("queue", "trigdata", "userdata", "tmc")
"""The values of ``"$1"`` to ``"$4"``, named as placeholders."""

_ASSIGNMENT = re.compile(r"\s*[A-Za-z_][A-Za-z0-9_]*=")
_EXPANSION = re.compile(r"\$[A-Za-z_{(0-9@*#?$!]")
_OPERATORS = ("&&", "||", ">>", "<<", ">", "<", "|", ";")


def without_ampersand(text: str) -> str:
    """Returns the text without the ``&`` at its end, IBM's "do not wait": nothing here waits anyway."""
    text = text.rstrip()
    return text if text.endswith("&&") else text.removesuffix("&").rstrip()


def script(process: Process) -> str:
    """Returns the text that ``sh -c`` is given for a process with SHELL(YES), its MQTMC2 behind APPLICID as in MQ."""
    tmc = '"$4"' if process.tmc_argument else ""
    parts = (process.appl_id.strip(), tmc, process.env_data.strip())
    return without_ampersand(" ".join(part for part in parts if part))


def needs_shell(process: Process) -> str:
    """Returns what in APPLICID or ENVRDATA only a shell understands, "" for nothing: ``>`` or ``$HOME``, say."""
    if process.appl_type != ApplType.UNIX or process.shell:
        return ""
    if assigned := _ASSIGNMENT.match(process.appl_id):
        return assigned.group().strip()
    texts = (without_ampersand(process.appl_id), without_ampersand(process.env_data))
    return next((found for text in texts for found in _shell_syntax(text)), "")


def for_a_shell(text: str) -> str:
    """Returns a text whose placeholders are the positional parameters that hold their values."""
    return PLACEHOLDER.sub(lambda found: _parameter(found[1]), text)


def warning(process: Process) -> str:
    """Returns the sentence for a person who defines a process that only a shell would execute; "" for any other."""
    found = needs_shell(process)
    return (
        f"PROCESS {process.name} needs a shell for {found}, and no shell is run: SHELL(YES) runs one" if found else ""
    )


def _parameter(placeholder: str) -> str:
    if placeholder in PARAMETERS:
        return f'"${PARAMETERS.index(placeholder) + 1}"'
    return '"$TRIGMON_RUN"'


def _shell_syntax(text: str) -> Iterator[str]:
    """Yields what a shell would not take as a part of a word, from left to right."""
    quote = ""
    at = 0
    while at < len(text):
        character = text[at]
        if character == "\\" and quote != "'":
            at += 2
            continue
        if character == quote:
            quote = ""
        elif character in "'\"" and not quote:
            quote = character
        elif quote != "'" and (expansion := _EXPANSION.match(text, at)):
            yield re.split(r"[\s'\"]", text[expansion.start() :], maxsplit=1)[0]
        elif quote != "'" and character == "`":
            yield "`"
        elif not quote:
            yield from _unquoted(text, at)
        at += 1


def _unquoted(text: str, at: int) -> Iterator[str]:
    operator = next((each for each in _OPERATORS if text.startswith(each, at)), "")
    if operator:
        yield operator
    elif text[at] in "*?" and "://" not in (word := _word(text, at)):
        yield word


def _word(text: str, at: int) -> str:
    return re.split(r"\s", text[:at])[-1] + re.split(r"\s", text[at:], maxsplit=1)[0]
