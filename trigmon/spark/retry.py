"""Waiting for what a job that died still seems to hold."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from trigmon.mq.errors import ObjectInUse

T = TypeVar("T")
IN_USE_S = 20.0
"""How long a job that follows a killed one waits for the queue manager to notice that death."""


def when_free(act: Callable[[], T], seconds: float = IN_USE_S) -> T:
    """What ``act`` returns, tried again while another connection holds what it asks for.

    Raises MQError: ObjectInUse when it is still so after that time.
    """
    until = time.monotonic() + seconds
    while True:
        try:
            return act()
        except ObjectInUse:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
