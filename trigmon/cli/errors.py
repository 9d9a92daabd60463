"""What went wrong, as one sentence that names the object and the remedy, and as an exit code.

0 ok, 1 failed, 2 usage, 3 no such object, 4 not allowed, 5 wrong state or in use, 6 not reachable, 7 timed out.
"""

from __future__ import annotations

import sys

FAILED, USAGE, NO_SUCH_OBJECT, NOT_ALLOWED, WRONG_STATE, NOT_REACHABLE, TIMED_OUT = range(1, 8)

_CODES = {
    NO_SUCH_OBJECT: (2082, 2085, 2086),
    NOT_ALLOWED: (2035, 2063, 2217),
    WRONG_STATE: (2016, 2041, 2042, 2051, 2052, 2053, 2055, 2057, 2100, 3210, 4002, 4003, 4004, 4007),
    NOT_REACHABLE: (2009, 2025, 2058, 2059, 2161, 2162, 2202, 2203, 2223),
}
_CODE_OF = {reason: code for code, reasons in _CODES.items() for reason in reasons}

_REMEDIES = {
    2009: "whether the last call was done is unknown: look before you repeat it",
    2016: "allow gets: trigmon queue alter QUEUE GET=ENABLED",
    2042: "see who has it open: DISPLAY QSTATUS(QUEUE) TYPE(HANDLE) in trigmon mqsc",
    2051: "allow puts: trigmon queue alter QUEUE PUT=ENABLED",
    2053: "get messages, or raise the limit: trigmon queue alter QUEUE MAXDEPTH=NUMBER",
    2058: "name one of those that run with --qmgr",
    2059: "start it: trigmon run, or systemctl start trigmon@NAME",
    2082: "the alias points at no queue: trigmon queue alter ALIAS TARGET=QUEUE",
    2085: "trigmon queue list, process list and runs list show what there is",
    2100: "change it with alter, or say --replace",
    2192: "make room on the queue manager's disk",
    4002: "see its type: trigmon queue list",
}


def exit_for(error: Exception) -> tuple[int | None, list[str]]:
    """The exit code and the lines for standard error; None for what is a bug and deserves its traceback."""
    from trigmon.mq.errors import MQError

    if isinstance(error, MQError):
        return exit_code(error), [sentence(error)]
    # Only who has loaded these modules can have raised their errors, and loading them is what small commands spare.
    if isinstance(error, _class("trigmon.settings", "SettingsError")):
        return USAGE, str(error).splitlines()
    if isinstance(
        error, (_class("trigmon.definitions.read", "DefinitionError"), _class("trigmon.yaml12", "YamlError"))
    ):
        return FAILED, str(error).splitlines()
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        return FAILED, [f"{name}{error.strerror or error}"]
    return None, []


def _class(module: str, name: str) -> type[Exception] | tuple[()]:
    return getattr(sys.modules.get(module), name, ())


def exit_code(error: Exception) -> int:
    """The exit code of an MQError."""
    return _CODE_OF.get(int(getattr(error, "reason", 0)), FAILED)


def sentence(error: Exception) -> str:
    """The reason, the object and, where there is one, the remedy."""
    remedy = _REMEDIES.get(int(getattr(error, "reason", 0)))
    if "needs an administrator" in str(error):  # who was not let in at all hears what would help by another way
        remedy = "administration is for the daemon's user, root and the configured administrators"
    return f"{error}; {remedy}" if remedy else str(error)
