"""Values that many viewers look at: each is read at most once a second, however many they are.

A value that takes long to read is read more seldom, so that reading takes a twentieth of the time at most: where there
are thousands of queues, or clients at work, the pages move more slowly and cost no more.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

EVERY_S = 1.0
SHARE = 20
LONGEST_S = 10.0
"""A value that takes very long is read as often as this all the same."""
MOST_KEPT = 128


class _Kept:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.value: Any = None
        self.error: Exception | None = None
        self.read_at = float("-inf")
        self.good_for_s = 0.0


class SharedValues:
    """What was read last, by key; ``clock`` is in seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()

    async def get(self, key: Hashable, read: Callable[[], Awaitable[Any]]) -> Any:
        """Returns the value of a key, read anew where it is older than a second.

        Raises what ``read`` raised, for as long: a queue manager that does not answer is not asked more often.
        """
        kept = self._kept.setdefault(key, _Kept())
        self._kept.move_to_end(key)
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        async with kept.lock:  # who comes while it is read gets what is being read
            if self._clock() - kept.read_at >= kept.good_for_s:
                began = self._clock()
                kept.error = None
                try:
                    kept.value = await read()
                except Exception as error:
                    kept.error = error
                kept.read_at = self._clock()
                kept.good_for_s = min(LONGEST_S, max(EVERY_S, SHARE * (kept.read_at - began)))
            if kept.error is not None:
                raise kept.error
            return kept.value

    def forget(self) -> None:
        """Forgets all values, so that they are read anew: an action has changed something."""
        self._kept.clear()
