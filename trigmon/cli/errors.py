"""Exit codes, and error messages that name the object and the remedy.

0 ok, 1 failed, 2 usage, 3 no such object, 4 not allowed, 5 wrong state or in use, 6 not reachable, 7 timed out.
"""

from __future__ import annotations

import sys

from trigmon.console import error_text

FAILED, USAGE, NO_SUCH_OBJECT, NOT_ALLOWED, WRONG_STATE, NOT_REACHABLE, TIMED_OUT = range(1, 8)

_CODES = {
    NO_SUCH_OBJECT: (2018, 2082, 2085, 2086, 2087, 2196, 2197),
    NOT_ALLOWED: (2035, 2063, 2217),
    WRONG_STATE: (
        *(2016, 2041, 2042, 2048, 2051, 2052, 2053, 2055, 2057, 2091, 2092, 2100, 2184, 2198, 2199, 2201),
        *(3008, 3210, 4002, 4003, 4004, 4007),
    ),
    NOT_REACHABLE: error_text.NOT_REACHABLE,
}
_CODE_OF = {reason: code for code, reasons in _CODES.items() for reason in reasons}


def exit_for(error: Exception) -> tuple[int | None, list[str]]:
    """Returns the exit code and the lines for standard error; None for a bug, which is shown as a traceback."""
    from trigmon.mq.errors import MQError

    if isinstance(error, MQError):
        return exit_code(error), [error_text.sentence(error)]
    # Not imported here: an error of these modules is raised only where they are loaded, and small commands start
    # faster without them.
    named = _class("trigmon.settings", "SettingsError"), _class("trigmon.client.reconnect", "VariableError")
    if isinstance(error, named):
        return FAILED if getattr(error, "can_pass", False) else USAGE, str(error).splitlines()
    if isinstance(
        error,
        (
            _class("trigmon.definitions.definition_files", "DefinitionError"),
            _class("trigmon.yaml12", "YamlError"),
            _class("trigmon.tls.contexts", "TlsFileError"),
        ),
    ):
        return FAILED, str(error).splitlines()
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        return FAILED, [f"{name}{error.strerror or error}"]
    if isinstance(error, ImportError) and "pip install" in str(error):  # of a module that needs an extra
        return FAILED, [str(error)]
    return None, []


def _class(module: str, name: str) -> type[Exception] | tuple[()]:
    return getattr(sys.modules.get(module), name, ())


def exit_code(error: Exception) -> int:
    """Returns the exit code of an MQError."""
    return _CODE_OF.get(int(getattr(error, "reason", 0)), FAILED)
