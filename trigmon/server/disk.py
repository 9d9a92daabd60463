"""Room on the disk: puts are refused before the store can fail, so that what makes room can still work.

The reserve has to hold what one turn may write, and the write-ahead log's copy into the database.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from trigmon.rules.model.manager_state import Disk

LEAST = 8 << 20
"""A smaller reserve counts as this: a turn and its copy, with which the store can still be emptied when it is full."""

LOOK_S = 0.01
"""So long a measurement of the free space holds: a fast disk takes less than LEAST in that time."""

NARROW = 64 << 20
"""With less room than this, the store's log is kept short: several times what it has elsewhere."""


class DiskReserve:
    """Says whether puts are allowed: while ``directory``'s file system has more than ``reserve`` bytes free.

    What the store's file has ``reusable`` counts as free, as long as half the reserve is really there: so what was got
    makes room, and the log of the next turns still has its own. When the answer changes, ``on_change`` is called with
    the answer and the free bytes.
    """

    def __init__(self, directory: Path, reserve: int, on_change: Callable[[bool, int], None]) -> None:
        self._directory = directory
        self._reserve = max(reserve, LEAST)
        self._on_change = on_change
        self.reusable: Callable[[], int] = lambda: 0
        self._looked_s = float("-inf")
        self._allowed = True

    def puts_allowed(self) -> bool:
        """Returns whether there is room for puts, as it was measured LOOK_S ago at most."""
        now = time.monotonic()
        if now - self._looked_s > LOOK_S:
            self._looked_s = now
            free = self.free()
            allowed = free > self._reserve or (free > self._reserve // 2 and free + self.reusable() > self._reserve)
            if allowed != self._allowed:
                self._allowed = allowed
                self._on_change(allowed, free)
        return self._allowed

    def state(self) -> Disk:
        """Returns the free space and the reserve as they are now."""
        return Disk(self.free(), self._reserve)

    def free(self) -> int:
        """Returns bytes a user without privileges may still write."""
        found = os.statvfs(self._directory)
        return found.f_bavail * found.f_frsize
