"""What a keeper says of its own troubles: on its standard error, else to syslog. Standard library only."""

from __future__ import annotations

import sys
import traceback
from contextlib import suppress


def report(what: str = "") -> None:
    """Writes a line, or without one the exception that is being handled. Never raises.

    Its standard error may be a file on a disk that is full: what is not taken there syslog is told.
    """
    text = what or traceback.format_exc()
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except Exception:
        with suppress(Exception):
            import syslog

            syslog.syslog(syslog.LOG_ERR, f"trigmon keeper: {text}")
