"""The level of MQ's commands that trigmon answers like, and what a program asks of the queue manager by it.

Programs, exporters and playbooks ask CMDLEVEL first and by it decide which words they may use. The level says how
trigmon's commands and calls answer; it names no product of IBM's, whose functions beyond the documentation of trigmon
are not here. Numbers: the header's selectors and constants, as documented.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

COMMAND_LEVEL: Final = 940
"""``MQIA_COMMAND_LEVEL``: the first level that has every attribute of MQ's that trigmon has; CAPEXPRY is the newest."""
VERSION: Final = "09040000"
"""``MQCA_VERSION``: the version of that level, two digits each of version, release, modification and fix."""
CODED_CHAR_SET_ID: Final = 1208
"""``MQIA_CODED_CHAR_SET_ID``: the queue manager's own text is UTF-8."""
COMMAND_INPUT_Q: Final = "SYSTEM.ADMIN.COMMAND.QUEUE"
"""``MQCA_COMMAND_INPUT_Q_NAME``: where the command server reads."""


class Platform(IntEnum):
    """``MQPL_*``: the platform whose rules hold where MQ's platforms differ in what they answer."""

    UNIX = 3


class CommandServerControl(IntEnum):
    """``MQSVC_CONTROL_*``: whether the command server runs with the queue manager, or not at all."""

    Q_MGR = 0
    MANUAL = 2
