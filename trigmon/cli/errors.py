"""Exit codes, and error messages that name the object and the remedy.

0 ok, 1 failed, 2 usage, 3 no such object, 4 not allowed, 5 wrong state or in use, 6 not reachable, 7 timed out.
"""

from __future__ import annotations

import re
import sys

FAILED, USAGE, NO_SUCH_OBJECT, NOT_ALLOWED, WRONG_STATE, NOT_REACHABLE, TIMED_OUT = range(1, 8)

_CODES = {
    NO_SUCH_OBJECT: (2082, 2085, 2086, 2087, 2196, 2197),
    NOT_ALLOWED: (2035, 2063, 2217),
    WRONG_STATE: (
        *(2016, 2041, 2042, 2048, 2051, 2052, 2053, 2055, 2057, 2091, 2092, 2100, 2184, 2198, 2199, 2201),
        *(3008, 3210, 4002, 4003, 4004, 4007),
    ),
    NOT_REACHABLE: (2009, 2025, 2058, 2059, 2161, 2162, 2202, 2203, 2223, 2345),
}
_CODE_OF = {reason: code for code, reasons in _CODES.items() for reason in reasons}

# {name} is the object that the reason is about. The queue manager's text for 2192 holds the remedy already.
_REMEDIES = {
    2009: "whether the last call was done is unknown: look before you repeat it",
    2016: "allow gets: trigmon queue alter {name} GET=ENABLED",
    2042: "see who has it open: DISPLAY QSTATUS({name}) TYPE(HANDLE) in trigmon mqsc",
    2048: "a temporary dynamic queue takes no persistent message: give --not-persistent",
    2051: "allow puts: trigmon queue alter {name} PUT=ENABLED",
    2053: "get messages, or raise the limit: trigmon queue alter {name} MAXDEPTH=NUMBER",
    2058: "name one of those that run with --qmgr",
    2059: "start it: trigmon run, or systemctl start trigmon@NAME",
    2082: "the alias points at no queue: trigmon queue alter {name} TARGET=QUEUE",
    2100: "change it with alter, or give --replace",
    2087: "name it and its transmission queue: trigmon queue alter {name} RQMNAME=NAME XMITQ=QUEUE",
    2092: "make it one: trigmon queue alter {name} USAGE=XMITQ",
    2345: "it comes back by itself; trigmon group of another member shows the group",
    4002: "see its type: trigmon queue list",
    4007: "see its type: trigmon queue list",
}
_UNKNOWN_NAME, _NOT_AUTHORIZED = 2085, 2035
_LISTS = {
    "": "trigmon queue list shows what there is",
    "PROCESS": "trigmon process list shows what there is",
    "DEADQ": "name one: ALTER QMGR DEADQ(SYSTEM.DEAD.LETTER.QUEUE) in trigmon mqsc, or give --queue",
    "MESSAGE": "trigmon dlq list shows what there is",
    "RESERVATION": "trigmon spark reservations list shows what there is",
    "RUN": "trigmon runs list --all shows what there is",
}
"""The command that lists the known names, by the kind of object."""


def exit_for(error: Exception) -> tuple[int | None, list[str]]:
    """Returns the exit code and the lines for standard error; None for a bug, which is shown as a traceback."""
    from trigmon.mq.errors import MQError

    if isinstance(error, MQError):
        return exit_code(error), [sentence(error)]
    # Not imported here: an error of these modules is raised only where they are loaded, and small commands start
    # faster without them.
    if isinstance(error, _class("trigmon.settings", "SettingsError")):
        return FAILED if getattr(error, "can_pass", False) else USAGE, str(error).splitlines()
    if isinstance(
        error,
        (_class("trigmon.definitions.definition_files", "DefinitionError"), _class("trigmon.yaml12", "YamlError")),
    ):
        return FAILED, str(error).splitlines()
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        return FAILED, [f"{name}{error.strerror or error}"]
    return None, []


def _class(module: str, name: str) -> type[Exception] | tuple[()]:
    return getattr(sys.modules.get(module), name, ())


def exit_code(error: Exception) -> int:
    """Returns the exit code of an MQError."""
    return _CODE_OF.get(int(getattr(error, "reason", 0)), FAILED)


def sentence(error: Exception) -> str:
    """Returns the reason, the object and, where there is one, the remedy."""
    reason, about = int(getattr(error, "reason", 0)), str(getattr(error, "about", ""))
    named = re.match(r"(?:[A-Z]+\()?([A-Za-z0-9./_%]+)", about)
    remedy = remedy_of(reason, named[1] if named else "QUEUE")
    if reason == _UNKNOWN_NAME:
        remedy = _LISTS.get(about.partition("(")[0], _LISTS[""])
    if reason == _NOT_AUTHORIZED and " needs a" in about:  # 2035 at the connect has another remedy
        remedy = "see server.administrators and server.monitors: trigmon config show; root and the daemon's user may"
    return f"{error}; {remedy}" if remedy else str(error)


def remedy_of(reason: int, name: str) -> str:
    """Returns what to do about a reason that concerns an object of this name, "" if there is no general remedy."""
    return _REMEDIES.get(reason, "").replace("{name}", name)
