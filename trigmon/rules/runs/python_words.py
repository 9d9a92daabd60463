"""Where a Python program stands among the words of a command line: behind Python's own options. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

_PYTHON = re.compile(r"(?:.*/)?python(?:3(?:\.[0-9]+t?)?)?")
_FLAGS = re.compile(r"-[bBdEIOPqsSuv]+")
_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")


def program_at(words: Sequence[str]) -> int:
    """Returns the number of the word that is the program's file, or ``-m`` before its module; 0 where there is none.

    Python's own options may stand before it, but none that make of the program something else than a file or a module.
    """
    if not words or not _PYTHON.fullmatch(words[0]):
        return 0
    at = 1
    while at < len(words) and (
        words[at] in _WITH_VALUE or words[at][:2] in ("-W", "-X") or _FLAGS.fullmatch(words[at])
    ):
        at += 2 if words[at] in _WITH_VALUE else 1
    has_module = at + 1 < len(words) and words[at] == "-m"
    has_file = at < len(words) and words[at] != "" and not words[at].startswith("-")
    return at if has_module or has_file else 0
