"""Waiting for what another process or thread brings about, as short as it takes and never for ever.

The deadline guards against hanging alone: a busy machine takes many times as long as a quiet one.
"""

from __future__ import annotations

import time


def until(found, timeout_s=600.0):
    """Returns what ``found()`` returns as soon as that is true."""
    deadline = time.monotonic() + timeout_s
    while not (value := found()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return value


def until_more(count, least, goes_on=lambda: True, timeout_s=600.0):
    """Returns as soon as ``count()`` is higher by more than ``least``, or nothing ``goes_on`` that could raise it."""
    first, deadline = count(), time.monotonic() + timeout_s
    while (more := count() - first) <= least and goes_on():
        assert time.monotonic() < deadline, f"{more}, where more than {least} were waited for"
        time.sleep(0.05)
