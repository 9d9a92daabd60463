"""What a process definition says to start: its texts as words, lexed like a shell's and run by none.

Pure, and the one copy: a definition is held to it when it is made or altered, and a launch cuts its words by it. Only
application types that a monitor of ours starts are held to it; what others mean by their texts is theirs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator

from trigmon.mq.attributes import ATTRIBUTES, Process
from trigmon.mq.enums import ApplType, ObjectType
from trigmon.mq.errors import AttrValueError

PLACEHOLDER = re.compile(r"\{(tmc|queue|trigdata|userdata|run)\}")


def split_words(text: str) -> list[str]:
    """``text`` as a shell would split it. Raises ValueError when a quote is left open, or a backslash ends it."""
    return shlex.split(text)


def environment_words(env_data: str) -> list[str]:
    """ENVRDATA's words. A trailing ``&``, IBM's way to say "do not wait", is dropped: nothing here waits anyway."""
    return split_words(env_data.rstrip().removesuffix("&"))


def has_placeholder(words: list[str]) -> bool:
    """Whether any word asks to be filled."""
    return any(PLACEHOLDER.search(word) for word in words)


def faults(process: Process) -> Iterator[tuple[str, str]]:
    """Each attribute, by long name, from which no program could be started, and what it must be instead.

    A blank APPLICID is none: MQ allows a process that starts nothing yet.
    """
    for name, check in _CHECKS.get(process.appl_type, {}).items():
        try:
            wanted = check(getattr(process, name))
        except ValueError as error:
            wanted = f"words as a shell splits them ({str(error).lower()})"
        if wanted:
            yield name, wanted


def check_process(process: Process, named: Collection[str]) -> None:
    """Raises AttrValueError for the first fault in what a command named; a new type looks at everything anew."""
    for name, wanted in faults(process):
        if name in named or "appl_type" in named:
            mqsc = ATTRIBUTES[ObjectType.PROCESS][name].mqsc
            value = getattr(process, name)
            raise AttrValueError(f"PROCESS({process.name}) {mqsc}({value}): {name} must be {wanted}")


def _program(text: str) -> str:
    words = split_words(text)
    if words and (not words[0] or has_placeholder(words[:1])):
        return "words of which the first is the program itself, no placeholder"
    return ""


def _script(text: str) -> str:
    words = split_words(text)
    if words and (not words[0] or has_placeholder(words[:1]) or words[0].startswith("-")):
        return "words of which the first is the PySpark file itself, no option and no placeholder"
    return ""


def _settings(text: str) -> str:
    wrong = [word for word in split_words(text) if "=" not in word.lstrip("=")]
    return f"words of the form key=value, not {wrong[0]!r}" if wrong else ""


def _plain(text: str) -> str:
    split_words(text)
    return ""


def _after(text: str) -> str:
    environment_words(text)
    return ""


_CHECKS: dict[int, dict[str, Callable[[str], str]]] = {
    ApplType.UNIX: {"appl_id": _program, "env_data": _after},
    ApplType.SPARK: {"appl_id": _script, "env_data": _after, "spark_conf": _settings, "spark_arguments": _plain},
}
