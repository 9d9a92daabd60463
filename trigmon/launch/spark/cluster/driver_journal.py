"""The journal of a driver: the lines that its supervisor writes to standard output, and their parser.

``2026-11-21T20:01:02.123Z submitted driver-20261121200102-0000``: an instant, a word, and a value. The lines are for
people (``trigmon runs logs``), for the monitor that follows the run, and for a later supervisor of the same run, which
must find the driver and not submit another.

===========  =============================================================================================
asking       a master's address, and the time of the submission in milliseconds since 1970
submitted    the driver's id
refused      why the master submitted no driver
state        the driver's state and its worker
application  the Spark application's id
ui           the address of the driver's own web server
over         the driver's last state; ``UNKNOWN`` and the reason, when it cannot be known
===========  =============================================================================================

Standard library only: the supervisor imports it.
"""

from __future__ import annotations

import re
from typing import Final

ASKING, SUBMITTED, NOT_SUBMITTED = "asking", "submitted", "refused"
STATE, APPLICATION, UI, OVER = "state", "application", "ui", "over"
UNKNOWN = "UNKNOWN"
LARGEST: Final = 1 << 18
"""Bytes of a supervisor's output that are read at most: it writes only changes."""

_LINE = re.compile(r"^[0-9T:.-]{23}Z ([a-z]+) (.*)$", re.M)
_INSTANT = re.compile(r" ([0-9]{1,15})$")


class DriverRecord:
    """The content of a journal, which begins with ``asking``; "" for what is not in it."""

    def __init__(self, text: str = "") -> None:
        self.asked_ms = 0
        self.driver = ""
        self.state = ""
        self.application = ""
        self.ui = ""
        self.over = ""
        lines = _LINE.findall(text)
        if not lines or lines[0][0] != ASKING or not _LINE.match(text):
            return  # a job's own output
        for word, about in lines:
            self._take(word, about)

    @property
    def may_run(self) -> bool:
        """Whether a driver may be on the cluster still."""
        return bool(self.asked_ms or self.driver) and not self.over

    def _take(self, word: str, about: str) -> None:
        if word == ASKING:
            asked = _INSTANT.search(about)  # a job of another kind may have written anything
            self.asked_ms = int(asked[1]) if asked else 0
        elif word == NOT_SUBMITTED:
            self.asked_ms = 0
        elif word == SUBMITTED:
            self.driver = about
        elif word == STATE:
            self.state = about
        elif word == APPLICATION:
            self.application = about
        elif word == UI:
            self.ui = about
        elif word == OVER:
            self.over = about
