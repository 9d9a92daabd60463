"""Checks of a process definition's command line: its texts as words, split as by a shell and run by none.

Pure, and the one copy: a definition is checked when it is made or altered, and a launch splits its words by it.
APPLICID and ENVRDATA mean what the application type makes of them, so they are checked only for types that a
monitor of ours starts. Attributes of ours mean one thing, and are checked whatever the type.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache

from trigmon.mq.attributes import ATTRIBUTES, Process
from trigmon.mq.enums import ApplType, ObjectType
from trigmon.mq.errors import AttrValueError
from trigmon.rules.runs import check_spark
from trigmon.rules.runs.check_spark import SECRET_NAME
from trigmon.rules.runs.code_words import PLACEHOLDER, code_from_outside
from trigmon.rules.runs.python_words import program_at
from trigmon.rules.runs.shell_text import for_a_shell, without_ampersand

_CHOSEN_BY_OTHERS = re.compile(r"\{(queue|trigdata)\}")

# As useradd(8) allows, and directories on a network: capitals, dots, a realm. No number: 0 would be root.
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.@-]*\$?")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_MQTMC2 = "{tmc}"
NOT_FROM_OUTSIDE = (
    "words in which no placeholder, and not the MQTMC2, is a program, its options or its script, also behind a wrapper "
    "such as timeout, env or sudo: it would run what comes from outside; write the script here and give it the value "
    "behind it, as in sh -c 'load \"$1\"' sh {trigdata}; a value that may begin with a dash stands behind --"
)


def split_words(text: str) -> list[str]:
    """Returns ``text`` split as by a shell. Raises ValueError for an open quote, or a backslash at its end."""
    return list(_split(text)) if text else []


@lru_cache(maxsize=16)
def _split(text: str) -> tuple[str, ...]:
    """Returns the words of a text; a process that is checked asks for the same ones again and again."""
    return tuple(shlex.split(text))


def environment_words(env_data: str) -> list[str]:
    """Returns ENVRDATA's words. A trailing ``&``, IBM's "do not wait", is dropped: nothing here waits anyway."""
    return split_words(without_ampersand(env_data))


def has_placeholder(words: list[str]) -> bool:
    """Returns whether any word asks to be filled."""
    return any(PLACEHOLDER.search(word) for word in words)


def path_words(process: Process) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yields where a placeholder from outside stands in a path: the attribute, its words, and the same words apart.

    A queue may be called ``..`` or ``/ETC/PASSWD``, and TRIGDATA is any text: such a word may lead anywhere.
    """
    names = ("appl_id", "env_data", "spark_arguments") if process.appl_type in _CHECKS else ("spark_arguments",)
    for name in names:
        text = getattr(process, name)
        try:
            words = environment_words(text) if name == "env_data" else split_words(text)
        except ValueError:
            continue
        apart = [part for word in words for part in _apart(word)]
        if apart != words:
            yield name, words, apart


def _apart(word: str) -> list[str]:
    found = _CHOSEN_BY_OTHERS.search(word)
    if found is None or "/" not in word:
        return [word]
    before = word[: found.start()].rstrip("/")
    return [before, found.group()] if before else [found.group()]


def makes_an_option(word: str) -> bool:
    """Returns whether a placeholder is part of an option's name, ``-{queue}`` or ``--with{queue}``, not its value."""
    before = word[: found.start()] if (found := PLACEHOLDER.search(word)) else ""
    return before.startswith("-") and (not before.strip("-") or (before.startswith("--") and "=" not in before))


def secret_names(text: str) -> list[str]:
    """Returns the names of SECRETS. Raises ValueError when one could not be a file's name."""
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    if wrong := [name for name in names if not SECRET_NAME.fullmatch(name)]:
        raise ValueError(f"{wrong[0]!r} is no name of a secret")
    return names


def template(process: Process, program: list[str], after: list[str]) -> list[str]:
    """Returns a UNIX program's words before they are filled: with the MQTMC2, unless a placeholder stands there.

    ``program`` are APPLICID's words, ``after`` ENVRDATA's. ``process`` says by TMCARG whether it wants the MQTMC2.
    """
    whole = program + after
    return whole if has_placeholder(whole) or not process.tmc_argument else [*program, _MQTMC2, *after]


def run_from_outside(words: list[str]) -> str:
    """Returns what is wrong with a program's words (:func:`template`) by which text from outside would run.

    "" where nothing is. It names the word, and the remedy.
    """
    number = code_from_outside(words)
    return f"{NOT_FROM_OUTSIDE}, not {words[number]!r} behind {words[number - 1]!r}" if number else ""


def faults(process: Process) -> Iterator[tuple[str, str]]:
    """Yields each attribute, by long name, from which no program could be started, and what it must be instead.

    A blank APPLICID is none: MQ allows a process that starts nothing yet.
    """
    found = []
    for name, check in (_CHECKS.get(process.appl_type, {}) | _OURS).items():
        try:
            wanted = check(getattr(process, name))
        except ValueError as error:
            wanted = f"words as a shell splits them ({str(error).lower()})"
        if not wanted and name in ("appl_id", "env_data"):
            wanted = _in_shell(process, name) or _run(process, name)
        if wanted:
            found.append(name)
            yield name, wanted
    if process.shell and process.appl_type == ApplType.SPARK:
        yield "shell", "no with APPLTYPE(SPARK): spark-submit runs the file, no shell does"
    if process.virtualenv and process.appl_type == ApplType.SPARK:
        yield "virtualenv", "blank with APPLTYPE(SPARK): PYSPARK_PYTHON in its environment names the Python of a job"
    if process.warm_interpreter and (wanted := _warm(process)):
        yield "warm_interpreter", wanted
    if not any(name.startswith("spark_") for name in found):
        yield from check_spark.contradictions(process)


def _warm(process: Process) -> str:
    """Returns what is to be instead of WARM(YES), where a process could never be forked."""
    if process.appl_type == ApplType.SPARK:
        return "no with APPLTYPE(SPARK): SPKSTART(CONNECT) is what keeps Spark warm"
    if process.shell:
        return "no with SHELL(YES): a shell would run Python"
    try:
        words = split_words(process.appl_id)
    except ValueError:
        return ""  # reported already
    if not words or program_at(words):
        return ""
    return (
        "no, or APPLICID python FILE or python -m MODULE: python, python3 or a path of it, and the file or the module"
    )


def _in_shell(process: Process, name: str) -> str:
    """Returns what is wrong with a text for SHELL(YES): no value from outside becomes a part of it."""
    text: str = getattr(process, name)
    if not process.shell or process.appl_type != ApplType.UNIX or not PLACEHOLDER.search(text):
        return ""
    return f"a text without placeholders: a shell has the values as positional parameters, as in {for_a_shell(text)!r}"


def _run(process: Process, name: str) -> str:
    """Returns what is wrong with a program's words, where it is this attribute that spoils them."""
    if process.appl_type != ApplType.UNIX:
        return ""
    try:
        program, after = split_words(process.appl_id), environment_words(process.env_data)
    except ValueError:
        return ""  # reported already
    if not program or not (number := code_from_outside(whole := template(process, program, after))):
        return ""
    is_its = (number < len(program) or not has_placeholder(program + after)) == (name == "appl_id")
    return run_from_outside(whole) if is_its else ""


def check_process(process: Process, named: Collection[str]) -> None:
    """Raises AttrValueError for the first fault in what a command named; a new type looks at everything anew.

    The attributes of Spark are checked as a whole: one part of it can contradict another.
    """
    whole = any(name.startswith("spark_") or name == "appl_id" for name in named)
    for name, wanted in faults(process):
        is_of_words = bool({"tmc_argument", "shell"} & {*named}) and name in ("appl_id", "env_data")
        is_of_python = name == "warm_interpreter" and bool({"appl_id", "shell"} & {*named})
        is_named = name in named or "appl_type" in named
        if is_named or is_of_words or is_of_python or (whole and name.startswith("spark_")):
            mqsc = ATTRIBUTES[ObjectType.PROCESS][name].mqsc
            value = ATTRIBUTES[ObjectType.PROCESS][name].write(getattr(process, name))
            raise AttrValueError(f"PROCESS({process.name}) {mqsc}({value}): {name} must be {wanted}")


def _program(text: str) -> str:
    words = split_words(text)
    if words and (not words[0] or has_placeholder(words[:1])):
        return "words of which the first is the program itself, no placeholder"
    return _options(words)


def _script(text: str) -> str:
    words = split_words(text)
    if words and (not words[0] or has_placeholder(words[:1]) or words[0].startswith("-")):
        return "words of which the first is the PySpark file itself, no option and no placeholder"
    return _options(words)


def _settings(text: str) -> str:
    wrong = [word for word in split_words(text) if "=" not in word.lstrip("=")]
    return f"words of the form key=value, not {wrong[0]!r}" if wrong else ""


def _plain(text: str) -> str:
    return _options(split_words(text))


def _after(text: str) -> str:
    return _options(environment_words(text))


def _options(words: list[str]) -> str:
    wrong = [word for word in words if makes_an_option(word)]
    return f"words in which a placeholder is an option's value, --name={{trigdata}}, not {wrong[0]!r}" if wrong else ""


def _directory(text: str) -> str:
    return "" if not text or text.startswith("/") else "an absolute path, or blank for the monitor's own directory"


def _user(text: str) -> str:
    if text and (not _USER.fullmatch(text) or text.lower() == "root"):
        return "the name of a user, no number, and never root"
    return ""


def _secrets(text: str) -> str:
    try:
        secret_names(text)
    except ValueError as error:
        return f"names of secrets divided by commas: letters, digits, . _ -, no leading dot ({error})"
    return ""


def _modules(text: str) -> str:
    wrong = [word for word in text.split() if not _MODULE.fullmatch(word)]
    return f"names of modules divided by blanks, not {wrong[0]!r}" if wrong else ""


_OURS: dict[str, Callable[[str], str]] = {
    "working_directory": _directory,
    "run_as": _user,
    "secrets": _secrets,
    "virtualenv": _directory,
    "warm_modules": _modules,
    "spark_conf": _settings,
    "spark_arguments": _plain,
    **check_spark.CHECKS,
}
_CHECKS: dict[int, dict[str, Callable[[str], str]]] = {
    ApplType.UNIX: {"appl_id": _program, "env_data": _after},
    ApplType.SPARK: {"appl_id": _script, "env_data": _after},
}
