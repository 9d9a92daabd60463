"""Which Spark Connect servers of a monitor end by themselves again and again; the queue manager's status shows it."""

from __future__ import annotations

import threading
import time

from trigmon.mq.calls import LostServer

WITHIN_S = 600.0
TOO_OFTEN = 2
"""A server is reported that ended, or did not start, so often within WITHIN_S."""
_LONGEST = 200


class LostServers:
    """The ends of the last minutes, by master. One thread notes, another reads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: dict[str, list[float]] = {}
        self._last: dict[str, tuple[str, str]] = {}

    def note(self, master: str, why: str, stderr: str = "") -> None:
        """Notes that a server with this master ended, or could not start, without being asked to."""
        lines = stderr.strip().splitlines()
        with self._lock:
            self._ends.setdefault(master, []).append(time.time())
            self._last[master] = why[:_LONGEST], lines[-1].strip()[:_LONGEST] if lines else ""

    def found(self) -> list[LostServer]:
        """Returns those that ended too often lately."""
        after = time.time() - WITHIN_S
        with self._lock:
            self._ends = {m: kept for m, ends in self._ends.items() if (kept := [at for at in ends if at > after])}
            return [
                LostServer(master, len(ends), round(ends[0] * 1000), *self._last[master])
                for master, ends in sorted(self._ends.items())
                if len(ends) >= TOO_OFTEN
            ]
