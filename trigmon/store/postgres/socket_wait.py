"""The wait for a database: work in a greenlet is left meanwhile, so that its thread goes on; other work polls."""

from __future__ import annotations

import select
from typing import NamedTuple

from greenlet import getcurrent, greenlet


class Wait(NamedTuple):
    """What work waits for: that its session's socket can be read or, if it ``writes``, be written or read."""

    descriptor: int
    writes: bool


class WorkGreenlet(greenlet):
    """A piece of work. ``switch`` begins or resumes it; it returns the next Wait or, once ``dead``, the result."""


def wait(descriptor: int, *, writes: bool = False) -> None:
    """Returns when the socket may be ready."""
    current = getcurrent()
    if isinstance(current, WorkGreenlet) and current.parent is not None:
        current.parent.switch(Wait(descriptor, writes))
        return
    ready = select.poll()
    ready.register(descriptor, select.POLLIN | (select.POLLOUT if writes else 0))
    ready.poll()
