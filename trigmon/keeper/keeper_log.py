"""The log of a keeper's own errors: its standard error, else syslog. Standard library only."""

from __future__ import annotations

import sys
import traceback
from contextlib import suppress


def report(what: str = "") -> None:
    """Writes a line, or without one the exception that is being handled. Never raises.

    Standard error may be a file on a full disk: what cannot be written there goes to syslog.
    """
    text = what or traceback.format_exc()
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except Exception:
        with suppress(Exception):
            import syslog

            syslog.syslog(syslog.LOG_ERR, f"trigmon keeper: {text}")
