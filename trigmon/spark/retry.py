"""Retries while a resource is still in use by a job that died."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from trigmon.mq.errors import ObjectInUse

T = TypeVar("T")
IN_USE_S = 20.0
"""Seconds that a job waits for the queue manager to notice the death of the job before."""


def when_free(act: Callable[[], T], seconds: float = IN_USE_S) -> T:
    """Calls ``act``, again while it raises ObjectInUse, and returns its result.

    Raises MQError: ObjectInUse after that time.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return act()
        except ObjectInUse:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
