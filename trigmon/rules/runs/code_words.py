"""Where among a program's words another program, or the text of one, stands: no placeholder may stand there.

What a placeholder brings in comes from outside the definition. A shell, an interpreter, and what starts another program
would run it. Pure. The tables (:mod:`trigmon.rules.runs.code_tables`) are closed: a program in none of them is
checked for the options that mean code in most programs, and for a shell or an interpreter among its words.

In doubt a word is refused. What stands behind a script's text or file reaches the script as an argument, and is
not run.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from enum import Enum, auto

from trigmon.rules.runs.code_tables import (
    BUNDLES,
    CODE,
    CODE_OF,
    COMMON,
    EXECUTES,
    INTERPRETERS,
    JOINS,
    LOADER,
    MODULES,
    POWERSHELL,
    POWERSHELL_FLAGS,
    POWERSHELL_VALUES,
    RUNNERS,
    SHELLS,
    TEXT_OF,
    Interpreter,
    Runner,
)

PLACEHOLDER = re.compile(r"\{(tmc|queue|trigdata|userdata|run)\}")
_LEADING = re.compile(r"\{(trigdata|userdata)\}")
"""What such a word begins with may be a dash or a plus: then it is an option. A queue's name begins with neither."""
_VERSION = re.compile(r"(?<=[a-zA-Z])-?[0-9][0-9.]*([dmtu]*|-.*)$")
_TO_A_SHELL = re.compile(r"-[eiluvx]+c")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")


class _Kind(Enum):
    """What a word is to the program before it; CODE is the value of an option that brings a program's text."""

    OPTION = auto()
    VALUE = auto()
    CODE = auto()
    OPERAND = auto()


def code_from_outside(words: list[str]) -> int:
    """Returns the number of the word by which text from outside would run as a program or its text; 0 for none."""
    return _command(words, 0) if words else 0


def _command(words: list[str], at: int) -> int:
    """Returns the number of the wrong word among words of which that at ``at`` is a program."""
    if _is_filled(words[at]):
        return at
    name = _name(words[at])
    if name == "runuser" and not any(re.match(r"-[a-zA-Z]*u|--u", word) for word in words[at + 1 :]):
        name = "su"
    if name in JOINS or (name == "su" and "--" in words[at:]):  # what stands behind it are options of the shell
        return _first_filled(words, at)
    if name in POWERSHELL or name == "dotnet":
        end_of_code = _end_of_dotnet if name == "dotnet" else _end_of_powershell
        return _first_filled(words[: end_of_code(words, at + 1)], at)
    if name in RUNNERS:
        return _run_by(RUNNERS[name], words, at + 1)
    if name in INTERPRETERS:
        return _interpreted(INTERPRETERS[name], words, at + 1, is_shell=name in SHELLS)
    return _unknown(words, at)


def _run_by(runner: Runner, words: list[str], at: int) -> int:
    """Checks that all up to the command is the definition's own, but values of plain variables; then the command."""
    left = runner.operands
    for kind, number in _parts(runner, words, at):
        if kind is _Kind.CODE:  # cut into words, or a shell's line: what follows may belong to it
            return _first_filled(words, number)
        assigned = _ASSIGNMENT.match(words[number]) if _sets_variable(kind, words, number) else None
        if kind is _Kind.OPERAND and not left and not assigned:
            return _command(words, number)
        if _is_filled(words[number]) and not (assigned and not LOADER.fullmatch(assigned[1])):
            return number
        left -= kind is _Kind.OPERAND and not assigned
    return 0


def _interpreted(how: Interpreter, words: list[str], at: int, *, is_shell: bool) -> int:
    """Checks that all up to the script is the definition's own: its text behind an option, or the first operand."""
    left, has_text = how.skip, False
    if how.permutes and (number := _first_leading(words, at)):
        return number
    for kind, number in _parts(how, words, at, is_shell=is_shell):
        word = words[number]
        is_data = has_text and not is_shell if kind is _Kind.OPERAND else _assigns(how, words, number)
        if _is_filled(word) and (not is_data or (has_text and not is_shell and _is_leading(words, at, number))):
            return number
        if kind is _Kind.CODE:
            has_text = True
            if how.ends:
                module = word.partition("m")[2] if _is_option(word) else word
                return _first_filled(words, number) if module in MODULES else 0
        elif kind is _Kind.OPERAND and left:
            left -= word != "-"
        elif kind is _Kind.OPERAND:
            return 0 if is_shell and has_text else _unknown(words, number, is_file=not has_text)
    return 0


def _end_of_powershell(words: list[str], at: int) -> int:
    """Returns the number of the first word that reaches a script as an argument; none does behind ``-Command``."""
    while at < len(words):
        option = words[at].lower()
        if option in ("-file", "-f"):
            return at + 2
        if not _is_option(option):
            return at + 1
        if option not in POWERSHELL_FLAGS and option not in POWERSHELL_VALUES:
            break
        at += 2 if option in POWERSHELL_VALUES else 1
    return len(words)


def _end_of_dotnet(words: list[str], at: int) -> int:
    """Returns the number of the first word that reaches the program of ``dotnet`` as an argument."""
    if at < len(words) and words[at].endswith((".dll", ".exe")):
        return at + 1
    return words.index("--", at) if "--" in words[at:] else len(words)


def _unknown(words: list[str], at: int, *, is_file: bool = False) -> int:
    """Checks a program in no table, at ``at``, and its arguments. ``is_file``: a script, whose options are its own."""
    name = _name(words[at])
    is_open = name in CODE_OF and not is_file
    first = words[at + 1] if at + 1 < len(words) else ""
    is_bundle = is_open and name in BUNDLES and not _is_option(first)
    if is_bundle and (_is_filled(first) or any(letter in CODE_OF[name].split() for letter in first)):
        return _first_filled(words, at + 1)
    for number in range(at + 1, len(words)):
        word, before = words[number], words[number - 1]
        if before in EXECUTES:
            return _command(words, number)
        if _is_filled(word):
            if not is_file and (_is_code(name, before, word) or (is_open and _is_leading(words, at, number))):
                return number
        elif not _is_option(word) and _is_program(words, number):
            return _command(words, number)
    return 0


def _is_code(name: str, before: str, word: str) -> bool:
    """Returns whether a word that a placeholder is part of is code by the option it is, or stands behind.

    Of a program that has a line in the table the letters stand behind others too, and long options are shortened.
    """
    own, has_line = CODE_OF.get(name, "").split(), name in CODE_OF
    longs = [code for code in (*CODE, *own) if code.startswith("--")] if has_line else []
    for each in (before, word.partition("=")[0]):
        if each in own or (each in CODE and (len(each) > 2 or name not in TEXT_OF)):
            return True
        if len(each) > 4 and any(code.startswith(each) for code in longs):
            return True
    start = PLACEHOLDER.search(word)
    letters = word[1 : start.start()] if start and word[0] == "-" and word[1] != "-" else ""
    if word[0] == "+":
        return True
    if has_line:
        return (_is_short(before) and before[-1] in own) or any(letter in own for letter in letters)
    return name not in TEXT_OF and (_TO_A_SHELL.fullmatch(before) is not None or letters in ("c", "e", "E", "S"))


def _is_short(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and word[1] != "-"


def _is_leading(words: list[str], at: int, number: int) -> bool:
    """Returns whether text from outside decides that this word is an option: no ``--`` stands before it."""
    return _LEADING.match(words[number]) is not None and "--" not in words[at:number]


def _first_leading(words: list[str], at: int) -> int:
    return next((number for number in range(at, len(words)) if _is_leading(words, at, number)), 0)


def _sets_variable(kind: _Kind, words: list[str], number: int) -> bool:
    """Returns whether NAME=VALUE sets a variable of the command: before it, or behind -E or --setenv."""
    return kind is _Kind.OPERAND or words[number - 1] in ("-E", "--setenv")


def _first_filled(words: list[str], at: int) -> int:
    return next((number for number in range(at, len(words)) if _is_filled(words[number])), 0)


def _parts(
    how: Runner | Interpreter, words: list[str], at: int, *, is_shell: bool = False
) -> Iterator[tuple[_Kind, int]]:
    """Yields what each word is. A shell's -c takes no value: its text is the first operand."""
    has_options = True
    while at < len(words):
        word = words[at]
        if has_options and word == "--":
            has_options = False
        elif has_options and _is_option(word):
            kind, takes_next = _option(how, word)
            yield _Kind.OPTION, at
            if is_shell and word[1] != "-":  # -co: each o and O takes a word, and the text comes behind them
                kind = _Kind.CODE if "c" in word else _Kind.OPTION
                values = range(at + 1, min(at + 1 + word.count("o") + word.count("O"), len(words)))
                yield from ((_Kind.VALUE, number) for number in values)
                at += len(values)
            else:
                at += takes_next
            if kind is not _Kind.OPTION and at < len(words):
                yield kind, at
        else:
            yield _Kind.OPERAND, at
        at += 1


def _option(how: Runner | Interpreter, word: str) -> tuple[_Kind, bool]:
    """Returns what an option brings, and whether that is the next word."""
    name, equals, _ = word.partition("=")
    codes, longs = how.code.split(), how.longs.split()
    if name in codes or name in longs:
        return (_Kind.CODE if name in codes else _Kind.VALUE), not equals
    if len(name) > 2 and name.startswith("--"):  # may be shortened
        for each in (*codes, *longs):
            if each.startswith(name):
                return (_Kind.CODE if each in codes else _Kind.VALUE), not equals
    if word.startswith("--"):
        return _Kind.OPTION, False
    for place, letter in enumerate(word[1:], 2):
        if letter in codes or letter in how.values:
            return (_Kind.CODE if letter in codes else _Kind.VALUE), place == len(word)
    return _Kind.OPTION, False


def _assigns(how: Interpreter, words: list[str], number: int) -> bool:
    """Returns whether an option gives a name of the definition's a value from outside: awk's -v, Java's -D."""
    name, equals, _ = words[number].partition("=")
    option = name if name.startswith("-") else words[number - 1]
    return bool(how.data and equals) and not _is_filled(name) and option.startswith(f"-{how.data}")


def _name(word: str) -> str:
    """Returns what a program is called in the tables: without its directory and its version."""
    name = posixpath.basename(word)
    return name if name in RUNNERS or name in INTERPRETERS or name in JOINS else _VERSION.sub("", name)


def _is_filled(word: str) -> bool:
    return PLACEHOLDER.search(word) is not None


def _is_option(word: str) -> bool:
    return len(word) > 1 and word[0] in "-+"


def _is_program(words: list[str], at: int) -> bool:
    """Returns whether an argument of an unknown program runs others; a common word does where options follow."""
    name = _name(words[at])
    if name in COMMON and not (at + 1 < len(words) and _is_option(words[at + 1])):
        return False
    return name in JOINS or name in RUNNERS or name in INTERPRETERS or name in POWERSHELL or name == "dotnet"
