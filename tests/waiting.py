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


def until_more(count, least):
    """Returns as soon as ``count()`` is higher by more than ``least``: under load, however slow the machine is."""
    first = count()
    until(lambda: count() > first + least)
