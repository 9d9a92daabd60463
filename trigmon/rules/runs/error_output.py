"""What a program wrote to its standard error, without what tells nobody the cause. Pure."""

from __future__ import annotations

import re

_FRAME = re.compile(
    r"\s+at [^\s(]+\([^)]*\)\s*|\s*\.\.\. \d+ (?:more|common frames omitted)\s*"
    r"|\s*Suppressed: .*|(?:JVM|Driver) stacktrace:\s*"
)
"""A frame of a Java stack trace, the end of one, what failed beside it, and the headings that Spark puts over one."""
_BEFORE = re.compile(r"(?:Caused by)?: ")
"""Java's words before a cause, and Py4J's before the text of an exception."""


def telling_lines(output: str) -> list[str]:
    """Returns the lines that are not empty and no frame of a Java stack trace, without space around them."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not _FRAME.fullmatch(line)]
    return [line[found.end() :] if (found := _BEFORE.match(line)) else line for line in lines]
