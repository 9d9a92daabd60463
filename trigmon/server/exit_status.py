"""Why a daemon does not start, and the exit statuses of ``trigmon run`` and ``trigmon monitor``."""

from __future__ import annotations

from typing import NamedTuple

from trigmon.files import can_pass
from trigmon.store.port import AnothersStore, MayLose, UnsupportedVersion

STOPPED = 0
FAILED = 1
MISCONFIGURED = 2
IN_USE = 5
STORE_LOST = 6
"""A person decides: a backup is restored, or the loss is accepted."""
STORE_BROKEN = 70
"""EX_SOFTWARE of sysexits.h: what became of the last calls is unknown until the store is opened again."""


class Exit(NamedTuple):
    """One way in which a process ends: which, what was met, its status, and whether its unit starts it again.

    A ``status`` below zero is a signal's number, as subprocess gives it.
    """

    program: str
    met: str
    status: int
    is_tried_again: bool


EXITS = (
    Exit("run", "it was asked to stop, also while it started or waited for a database", STOPPED, False),
    Exit("run", "settings, a definition file or the command line cannot work", MISCONFIGURED, False),
    Exit("run", "the store is another queue manager's, or a later trigmon's", MISCONFIGURED, False),
    Exit("run", "the database may lose what it answers, and nobody accepted that", MISCONFIGURED, False),
    Exit("run", "the socket's directory is another user's, its path too long, its group unknown", MISCONFIGURED, False),
    Exit("run", "another process has the data, the socket or the TCP port", IN_USE, True),
    Exit("run", "the store cannot be opened now: full, read-only, I/O error, no right", STORE_BROKEN, True),
    Exit(
        "run",
        "something that was acknowledged is missing, and there is no --accept-loss",
        STORE_LOST,
        False,
    ),
    Exit("run", "the socket or the TCP port cannot be made now", STORE_BROKEN, True),
    Exit("run", "the store failed while it served, or at its orderly end", STORE_BROKEN, True),
    Exit("run", "another process took the store over", STORE_BROKEN, True),
    Exit("run", "a definition file cannot be read now", STORE_BROKEN, True),
    Exit("run", "settings cannot be read now, or a fault of the program itself (a traceback)", FAILED, True),
    Exit("run", "it was killed, or the watchdog was not fed", -9, True),
    Exit("monitor", "it was asked to stop, also while it waited for its queue manager", STOPPED, False),
    Exit("monitor", "settings or the command line cannot work", MISCONFIGURED, False),
    Exit("monitor", "its directory cannot be written, settings cannot be read now, no systemd is there", FAILED, True),
    Exit("monitor", "a fault of the program itself (a traceback), or a reason of MQ's without a row", FAILED, True),
    Exit("monitor", "there is no such initiation queue", 3, True),
    Exit("monitor", "it may not be a monitor", 4, True),
    Exit("monitor", "another application has its initiation queue for itself", 5, True),
    Exit("monitor", "the queue manager cannot be reached in a way that no waiting ends", 6, True),
    Exit("monitor", "it was killed, or the watchdog was not fed", -9, True),
)
"""Every way in which the two services end, before and after they are ready. A test holds the units to it."""


class CannotStart(Exception):  # noqa: N818 - it says what happened, as the reasons of MQ do
    """The daemon cannot start; ``exit_status`` is what the process ends with, the text is for its operator."""

    def __init__(self, text: str, exit_status: int = MISCONFIGURED) -> None:
        super().__init__(text)
        self.exit_status = exit_status


def status_of(error: Exception) -> int:
    """Returns the exit status of a start that met this error: 2 if a setting must change, 70 for what can pass."""
    if isinstance(error, OSError):
        return STORE_BROKEN if can_pass(error) else MISCONFIGURED
    return MISCONFIGURED if isinstance(error, AnothersStore | UnsupportedVersion | MayLose) else STORE_BROKEN
